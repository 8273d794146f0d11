"""The recursion of connectionist temporal classification: how likely the alignments are that are in a state at a step.

Source: Graves et al. 2006, "Connectionist temporal classification", equations 6 and 10.
"""

from __future__ import annotations

import functools
import math

from ..core.dtype import DType
from .approx import exp, log
from .expr import Expr, load, select
from .kernel import Launch, prepare_map
from .loops import Result
from .steps import Operand, Steps

# Multiplications that take as long as one state of a step: three exponentials and a logarithm.
_WORK = 64


@functools.lru_cache(maxsize=64)
def alignment_steps(steps: int, batch: int, states: int, dtype: DType) -> Launch:
    """Call `entry(paths, emitted, start, skips, meta, count)` with contiguous arrays of one float dtype.

    paths [steps + 1, batch, 2 + states]: logarithms of probabilities. The first step and the first two columns are given, -inf
    for none; the others are computed. A state is reached from itself, from the state before it, and, where `skips` [batch, states]
    is 0 instead of -inf, from the one before that; or it is the first one, with the logarithm `start` [steps, batch, states].
    `emitted` [steps, batch, states] is added.
    """
    size = dtype.itemsize
    row, wide_row = states * size, (2 + states) * size
    rows = [wide_row, wide_row, wide_row, wide_row, row, row, row]
    launch = prepare_map(
        [Result((step_of_alignments(dtype),))],
        [dtype] * 6,
        [],
        (batch, states),
        [(stride, size) for stride in rows],
    )
    paths, emitted, start, skips = range(4)
    operands = [
        Operand(paths, wide_row, batch * wide_row + 2 * size),
        *[Operand(paths, wide_row, shift * size) for shift in (2, 1, 0)],
        Operand(skips),
        Operand(start, row),
        Operand(emitted, row),
    ]
    order = Steps([batch] * steps, range(0, steps * batch, batch), [({batch: launch}, operands)])
    return order.as_one(4, 1, steps * batch * states * _WORK)


def step_of_alignments(dtype: DType) -> Expr:
    """One state after a step. Inputs: the same state and the two before it at the step before, then skip, start and emitted."""
    before, one, two, skip, first, score = (load(k, dtype) for k in range(6))
    value = _reached(before, one, two + skip)
    return select(value < first, first, value) + score


def _reached(*ways: Expr) -> Expr:
    """Return the logarithm of a sum of probabilities, given their logarithms."""
    largest = functools.reduce(lambda a, b: select(a < b, b, a), ways)
    base = select(largest > -math.inf, largest, 0.0)
    first, *others = (exp(each - base) for each in ways)
    return log(functools.reduce(lambda a, b: a + b, others, first)) + base
