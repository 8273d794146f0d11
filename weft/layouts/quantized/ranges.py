"""The scales and zero points of observed tensors: PyTorch's formulas for observers, and for tensors that are quantized when they are used.

`ops/elementwise/qparams.py` has the formula for one range, which the dynamic functions share with fake quantization.
"""

from __future__ import annotations

import numpy as np

from ...core.dtype import DType, float32, int32, int64
from ...core.qscheme import SCHEMES, qscheme
from ...core.tensor import Tensor
from ...families.array_op import host_array
from ...ops.elementwise.qparams import QParams, choose_qparams
from .numbers import RANGES, quantize_per_tensor

# The least scale of an observer.
EPSILON = float(np.finfo(np.float32).eps)

_SYMMETRIC = (SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_symmetric"])


def observed_qparams(
    least: Tensor,
    most: Tensor,
    low: int,
    high: int,
    scheme: qscheme,
    middle: int = 0,
    epsilon: float = EPSILON,
) -> tuple[Tensor, Tensor]:
    """The scales (float32) and zero points of observed ranges, with which the integers `low` to `high` hold 0 exactly.

    least, most: the ends of each range, float32. middle: the zero point of symmetric schemes, which is 0 for signed integers.
    With `per_channel_affine_float_qparams` a range need not hold 0, and the zero points are float32; else they are int64, or int32
    where they were computed.
    """
    if scheme is SCHEMES["per_channel_affine_float_qparams"]:
        scale = (most - least) / float(high - low)
        scale = scale.where(scale > epsilon, 1.0)
        return scale, -1 * least / scale
    below, above = least.clamp(max=0), most.clamp(min=0)
    if scheme in _SYMMETRIC:
        scale = above.maximum(-below) / ((high - low) / 2)
        return scale.clamp(min=epsilon), scale.new_full(scale.shape, middle, dtype=int64)
    scale = ((above - below) / float(high - low)).clamp(min=epsilon)
    return scale, (low - (below / scale).round().to(int32)).clamp(low, high)


def dynamic_qparams(input: Tensor, dtype: DType, reduce_range: bool = False) -> QParams:
    """Return the scale and the zero point for the numbers of a float32 tensor, in integers of `dtype`."""
    if input.numel() == 0:
        return choose_qparams(0.0, 0.0, *RANGES[dtype], reduce_range=reduce_range)
    least, most = input.aminmax()
    return choose_qparams(least.item(), most.item(), *RANGES[dtype], reduce_range=reduce_range)


def quantize_dynamic(input: Tensor, dtype: DType, reduce_range: bool = False) -> tuple[Tensor, QParams]:
    """Return the integers of a float32 tensor, and the scale and zero point that suit it."""
    by = dynamic_qparams(input, dtype, reduce_range)
    return quantize_per_tensor(input, *by, dtype), by


# ---- The range with the least error ----------------------------------------------------------------------------------


def optimized_range(input: Tensor, bins: int, ratio: float, bits: int) -> tuple[float, float]:
    """The range, most and least, that integers of `bits` bits represent a vector of float32 with the least error, by greedy search.

    The range shrinks by one of `bins` steps from the end where this costs less, until `ratio` of it is gone. The result is the last
    local minimum of the error that is lower than those before it.
    """
    values = host_array(input.to(float32).contiguous())
    with np.errstate(all="ignore"):
        least, most = values.min(), values.max()
        step = (most - least) / np.float32(bins)
        kept = np.float32(int(bins * (1.0 - np.float32(ratio)))) * step
        best = error = _error(values, least, most, bits)
        start, stop = least, most
        while start + kept < stop:
            by_start = _error(values, start + step, stop, bits)
            by_stop = _error(values, start, stop - step, bits)
            if error < min(by_start, by_stop, best):
                best, least, most = error, start, stop
            if by_start < by_stop:
                start, error = start + step, by_start
            else:
                stop, error = stop - step, by_stop
    return float(most), float(least)


def _error(values: np.ndarray, least: np.float32, most: np.float32, bits: int) -> np.float32:
    """The Euclidean distance of values and what is left of them. Like PyTorch's, it holds the scale and the least number in float16."""
    least = np.float32(np.float16(least))
    width, steps = most - least, np.float32(2**bits - 1)
    scale = np.float32(1) if width == 0 else np.float32(np.float16(width / steps))
    inverse = np.float32(1) if scale == 0 else np.float32(1) / scale
    integers = np.clip(np.rint((values - least) * inverse), np.float32(0), steps)
    rest = values - (integers * scale + least)
    # PyTorch adds up in order.
    return np.sqrt(np.cumsum(rest * rest, dtype=np.float32)[-1])
