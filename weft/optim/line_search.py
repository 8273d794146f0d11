"""A line search for steps that satisfy the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, with the safeguards of Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.tensor import Tensor

DECREASE = 1e-4  # how much of the predicted decrease a step must bring
CURVATURE = 0.9  # how much of the slope may be left


class Point(NamedTuple):
    """A step along the direction, and what is found there."""

    step: Any  # a number or a 0-dim tensor
    loss: float
    grad: Tensor
    slope: Any  # of the loss along the direction


def strong_wolfe(
    evaluate: Callable[[Any], Point], step: Any, start: Point, longest: Any, tolerance: float, limit: int
) -> tuple[Point, int]:
    """The point found, and the number of evaluations.

    `start` is the point at step 0, `step` the first step to try. `longest` is the largest component of the direction:
    the search ends when the bracket is shorter than `tolerance` in every component, or after 1 + `limit` evaluations.
    """

    def too_high(point: Point) -> bool:
        return bool(point.loss > start.loss + DECREASE * point.step * start.slope)

    def flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -CURVATURE * start.slope)

    # Lengthen the step until it brackets a good one: [a point before, a point behind].
    before, point = start, evaluate(step)
    trials = 0
    bracket = [start, point]
    while trials < limit:
        bracket = [before, point]
        if too_high(point) or trials > 1 and point.loss >= before.loss:
            break
        if flat(point):
            return point, trials + 1
        if point.slope >= 0:
            break
        bounds = point.step + 0.01 * (point.step - before.step), point.step * 10
        step = _minimum_of_cubic(before, point, bounds)
        before, point = point, evaluate(step)
        trials += 1
        bracket = [start, point]

    # Shorten the bracket; its low end has the lower loss.
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    stuck = False
    evaluations = trials + 1
    while trials < limit:
        first, last = sorted(each.step for each in bracket)
        if abs(last - first) * longest < tolerance:
            break
        step = _minimum_of_cubic(bracket[0], bracket[1], (first, last))
        margin = 0.1 * (last - first)
        close = min(last - step, step - first) < margin
        if close and (stuck or step >= last or step <= first):
            step = last - margin if abs(step - last) < abs(step - first) else first + margin
            close = False
        stuck = bool(close)
        point = evaluate(step)
        trials += 1
        evaluations += 1
        if too_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        if flat(point):
            return point, evaluations
        if point.slope * (bracket[high].step - bracket[low].step) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low], evaluations


def _minimum_of_cubic(a: Point, b: Point, bounds: tuple[Any, Any]) -> Any:
    """Where the cubic through two points with their slopes is lowest, within bounds; their middle if nowhere."""
    if b.step < a.step:
        a, b = b, a
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = mean * mean - a.slope * b.slope
    if square < 0:
        return (bounds[0] + bounds[1]) / 2.0
    root = square**0.5
    step = b.step - (b.step - a.step) * ((b.slope + root - mean) / (b.slope - a.slope + 2 * root))
    return min(max(step, bounds[0]), bounds[1])
