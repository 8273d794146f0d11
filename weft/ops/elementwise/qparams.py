"""The scale and the zero point for a range of numbers: PyTorch's choice, to the bit.

The ends of a range are float32. Quotients are computed in float64, but for those that PyTorch rounds to float32 on the way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

# The least scale that is chosen: a smaller one would lose the integers' precision in PyTorch's kernels.
_LEAST_SCALE = np.float32(6.1e-5)


class QParams(NamedTuple):
    """How integers stand for numbers: `(integer - zero_point) * scale`."""

    scale: float
    zero_point: int


def choose_qparams(
    least: float, most: float, low: int, high: int, symmetric: bool = False, reduce_range: bool = False
) -> QParams:
    """The scale and the zero point with which the integers `low` to `high` hold the numbers `least` to `most`, and 0 exactly.

    symmetric: a range with numbers on both sides of 0 is widened so that 0 lies in its middle. reduce_range: use half of the integers.

    Raises: RuntimeError if the range is empty or an end is NaN.
    """
    if not least <= most:
        raise RuntimeError(
            f"In ChooseQuantizationParams, min should be less than or equal to max, but they are {least} and {most}"
        )
    with np.errstate(all="ignore"):
        return _chosen(np.float32(least), np.float32(most), low, high, symmetric, reduce_range)


def _chosen(
    least: np.float32, most: np.float32, low: int, high: int, symmetric: bool, reduce_range: bool
) -> QParams:
    if reduce_range:
        low, high = int(low / 2), int(high / 2)
    centred = symmetric and least < 0 < most
    if centred:
        half = (high - low) // 2
        step = max(float(abs(least / np.float32(half + 1))), float(abs(most / np.float32(half))))
        least, most = np.float32(step * -(half + 1)), np.float32(step * half)
    least, most = min(least, np.float32(0)), max(most, np.float32(0))
    scale = (float(most) - float(least)) / (high - low)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    if scale < _LEAST_SCALE:
        least, most = _widened(least, most, np.float32(scale), high - low)
        scale = float(_LEAST_SCALE)
    if centred:
        return QParams(scale, _nearest((low + high) / 2, low, high))
    from_least, from_most = float(least) / scale, float(most) / scale
    # The end with the smaller error decides.
    near_least = abs(low) - abs(from_least) < abs(high) - abs(from_most)
    return QParams(scale, _nearest(low - from_least if near_least else high - from_most, low, high))


def _widened(
    least: np.float32, most: np.float32, scale: np.float32, steps: int
) -> tuple[np.float32, np.float32]:
    """The range for `_LEAST_SCALE` in place of `scale`."""
    if least == 0:
        return least, _LEAST_SCALE * np.float32(steps)
    if most == 0:
        return -_LEAST_SCALE * np.float32(steps), most
    factor = _LEAST_SCALE / scale
    return least * factor, most * factor


def _nearest(value: float, low: int, high: int) -> int:
    """The nearest integer between the bounds, of two the even one. NaN, of infinite ranges, becomes the least int32."""
    if math.isnan(value):
        return -(2**31)
    return round(min(max(value, low), high))
