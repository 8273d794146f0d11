"""The line search of L-BFGS finds a step that satisfies the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, with the safeguards of
Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.tensor import Tensor

DECREASE = 1e-4  # the part of the predicted decrease that a step must achieve
CURVATURE = 0.9  # the part of the slope that may remain


class Point(NamedTuple):
    """A step along the direction, with the loss, the gradient and the slope at its end."""

    step: Any  # a number or a 0-dim tensor
    loss: float
    grad: Tensor
    slope: Any  # of the loss along the direction


def strong_wolfe(
    evaluate: Callable[[Any], Point], step: Any, start: Point, longest: Any, tolerance: float, limit: int
) -> tuple[Point, int]:
    """Return the best point that the search finds, and the number of evaluations.

    `start` is the point at step 0, `step` the first step to try. `longest` is the largest component of the direction:
    the search ends when the bracket is shorter than `tolerance` in every component, or after 1 + `limit` evaluations.
    """
    conditions = _Conditions(start)
    bracket, trials = _bracket(evaluate, step, conditions, limit)
    if len(bracket) == 1:
        return bracket[0], trials + 1
    return _zoom(evaluate, bracket, conditions, longest, tolerance, trials, limit)


class _Conditions(NamedTuple):
    """Tests points along a direction from `start` for the strong Wolfe conditions."""

    start: Point

    def too_high(self, point: Point) -> bool:
        return bool(point.loss > self.start.loss + DECREASE * point.step * self.start.slope)

    def flat(self, point: Point) -> bool:
        return bool(abs(point.slope) <= -CURVATURE * self.start.slope)


def _bracket(
    evaluate: Callable[[Any], Point], step: Any, conditions: _Conditions, limit: int
) -> tuple[list[Point], int]:
    """Lengthen the step until a good point must lie before its end. Returns the points around it, or the good point.

    The second result is the number of evaluations after the first.
    """
    start = conditions.start
    before, point = start, evaluate(step)
    trials = 0
    while trials < limit:
        if conditions.too_high(point) or trials > 1 and point.loss >= before.loss:
            return [before, point], trials
        if conditions.flat(point):
            return [point], trials
        if point.slope >= 0:
            return [before, point], trials
        bounds = point.step + 0.01 * (point.step - before.step), point.step * 10
        step = _minimum_of_cubic(before, point, bounds)
        before, point = point, evaluate(step)
        trials += 1
    return [start, point], trials


def _zoom(
    evaluate: Callable[[Any], Point],
    bracket: list[Point],
    conditions: _Conditions,
    longest: Any,
    tolerance: float,
    trials: int,
    limit: int,
) -> tuple[Point, int]:
    """Shorten the bracket, whose low end has the lower loss. Returns the best point and the number of evaluations."""
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    stuck = False
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
        if conditions.too_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        if conditions.flat(point):
            return point, trials + 1
        if point.slope * (bracket[high].step - bracket[low].step) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low], trials + 1


def _minimum_of_cubic(a: Point, b: Point, bounds: tuple[Any, Any]) -> Any:
    """Return where the cubic through two points with their slopes is lowest within bounds, or their middle."""
    if b.step < a.step:
        a, b = b, a
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = mean * mean - a.slope * b.slope
    if square < 0:
        return (bounds[0] + bounds[1]) / 2.0
    root = square**0.5
    step = b.step - (b.step - a.step) * ((b.slope + root - mean) / (b.slope - a.slope + 2 * root))
    return min(max(step, bounds[0]), bounds[1])
