"""Defines the scale and the zero point for a range of numbers: PyTorch's choice, to the bit.

The ends of a range are float32. Quotients are computed in float64, but for those that PyTorch rounds to float32 on the way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...engine.expr import to_float32

# The least scale that is chosen, because a smaller one would lose the precision of integers in PyTorch's kernels.
_LEAST_SCALE = to_float32(6.1e-5)
# Scales up to this one have no reciprocal in float32.
_NO_RECIPROCAL = 2.0**-128


class QParams(NamedTuple):
    """How integers stand for numbers: `(integer - zero_point) * scale`."""

    scale: float
    zero_point: int


def choose_qparams(
    least: float,
    most: float,
    low: int,
    high: int,
    symmetric: bool = False,
    reduce_range: bool = False,
    in_float32: bool = False,
) -> QParams:
    """The scale and the zero point with which the integers `low` to `high` hold the numbers `least` to `most`, and 0 exactly.

    symmetric: a range with numbers on both sides of 0 is widened so that 0 lies in its middle. reduce_range: use half of the integers.
    in_float32: round the scale before the zero point is chosen, as FBGEMM does. This decides between two integers that are as near.

    Raises: RuntimeError if the range is empty or an end is NaN.
    """
    if not least <= most:
        raise RuntimeError(
            f"In ChooseQuantizationParams, min should be less than or equal to max, but they are {least} and {most}"
        )
    if reduce_range:
        low, high = int(low / 2), int(high / 2)
    centred = symmetric and least < 0 < most
    if centred:
        half = (high - low) // 2
        step = max(to_float32(-least / (half + 1)), to_float32(most / half))
        least, most = to_float32(step * -(half + 1)), to_float32(step * half)
    least, most = min(least, 0.0), max(most, 0.0)
    scale = (most - least) / (high - low)
    if in_float32:
        scale = to_float32(scale)
    if scale < _LEAST_SCALE:
        if to_float32(scale) <= _NO_RECIPROCAL:
            scale = 0.1
        else:
            least, most = _widened(least, most, to_float32(scale), high - low)
            scale = _LEAST_SCALE
    if centred:
        return QParams(scale, _nearest((low + high) / 2, low, high))
    from_least, from_most = least / scale, most / scale
    # The end with the smaller error decides.
    near_least = abs(low) - abs(from_least) < abs(high) - abs(from_most)
    return QParams(scale, _nearest(low - from_least if near_least else high - from_most, low, high))


def _widened(least: float, most: float, scale: float, steps: int) -> tuple[float, float]:
    """Return the range for `_LEAST_SCALE` in place of `scale`."""
    if least == 0:
        return least, to_float32(_LEAST_SCALE * steps)
    if most == 0:
        return -to_float32(_LEAST_SCALE * steps), most
    factor = to_float32(_LEAST_SCALE / scale)
    return to_float32(least * factor), to_float32(most * factor)


def _nearest(value: float, low: int, high: int) -> int:
    """The nearest integer between the bounds, of two the even one. NaN, of infinite ranges, becomes the least int32."""
    if math.isnan(value):
        return -(2**31)
    return round(min(max(value, low), high))
