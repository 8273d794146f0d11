"""Quantized tensors in files, pickles and copies. The content of a file is untrusted."""

from __future__ import annotations

import copy
import math
from typing import Any

from ...core.dtype import DType
from ...core.qscheme import qscheme
from ...core.spec import contiguous_stride
from ...core.tensor import Tensor
from ...ops.elementwise.qparams import QParams
from .quantizers import PER_CHANNEL, PER_FLOAT_CHANNEL, PER_TENSOR, Quantizer, checked_channels
from .rules import QUANTIZED
from .tensors import BITS, plain, quantized, quantizer_of

rule = QUANTIZED.rule


def bytes_of(shape: tuple[int, ...], stride: tuple[int, ...], dtype: DType) -> int | None:
    """Return the bytes of a tensor with several integers in a byte; None for other dtypes."""
    if dtype not in BITS:
        return None
    if stride != contiguous_stride(shape):
        raise ValueError(f"a tensor of {dtype} is contiguous, but has the strides {stride}")
    return -(-math.prod(shape) * BITS[dtype] // 8)


def rebuilt_tensor(integers: Tensor, dtype: DType, shape: tuple[int, ...], quantizer: tuple) -> Tensor:
    """The quantized tensor of these integers. quantizer: (scheme, scale, zero point) or (scheme, scales, zero points, axis).

    Raises: TypeError and ValueError for others; RuntimeError if the parameters do not fit the shape.
    """
    found = _quantizer(quantizer, shape)
    return quantized(integers, found, dtype, shape if dtype in BITS else None)


def _quantizer(parts: tuple, shape: tuple[int, ...]) -> Quantizer:
    kinds = tuple(type(each) for each in parts)
    if kinds == (qscheme, float, int) and parts[0] is PER_TENSOR:
        if not -(2**63) <= parts[2] < 2**63:
            raise ValueError(f"a zero point has 64 bits, not the value {parts[2]}")
        return QParams(*parts[1:])
    if kinds == (qscheme, Tensor, Tensor, int) and parts[0] in (PER_CHANNEL, PER_FLOAT_CHANNEL):
        _, scales, zero_points, axis = parts
        return checked_channels(scales, zero_points, axis, shape)
    raise TypeError(f"a quantizer has a scheme and its parameters, not {[kind.__name__ for kind in kinds]}")


@rule("__reduce_ex__")
def _reduce(self: Tensor, protocol: Any) -> tuple:
    return _rebuilt, (plain(self), quantizer_of(self), self.dtype, self.shape)


def _rebuilt(integers: Tensor, quantizer: Quantizer, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    return quantized(integers, quantizer, dtype, shape if dtype in BITS else None)


@rule("__deepcopy__")
def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    if id(self) not in memo:
        integers = copy.deepcopy(plain(self), memo)
        memo[id(self)] = _rebuilt(integers, quantizer_of(self), self.dtype, self.shape)
    return memo[id(self)]
