"""A quantized tensor: integers in strided memory, and the quantizer that says which numbers they stand for.

The plain tensor of the integers shares the memory, so views and copies of integers are those of the quantized tensor.
quint4x2 and quint2x4 have several integers in a byte; their plain tensor is the vector of the bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...core.device import device as Device
from ...core.dtype import QUANTIZED as STORED
from ...core.dtype import DType, float32
from ...core.layout import strided, suggested_format
from ...core.layout_spec import LayoutSpec, layout_spec
from ...core.spec import contiguous_spec, contiguous_stride, make_spec
from ...core.tensor import Tensor, make
from ...ops.elementwise.qparams import QParams
from ..parts import bare
from . import numbers
from .quantizers import PerChannel, Quantizer
from .rules import QUANTIZED

# Bits of each integer, where a byte has several.
BITS = {dtype: int(dtype.name[5]) for dtype in STORED if "x" in dtype.name}


def is_quantized(x: Any) -> bool:
    return isinstance(x, Tensor) and type(x.spec) is LayoutSpec and x.spec.rules is QUANTIZED


def quantizer_of(x: Tensor) -> Quantizer:
    """Return the quantizer of a quantized tensor.

    Raises: RuntimeError for a tensor that is not quantized.
    """
    if not is_quantized(x):
        raise RuntimeError(
            f"expected a quantized tensor, but got one of {x.dtype}: write torch.quantize_per_tensor(x, scale, zero_point, dtype)"
        )
    spec: Any = x.spec
    return spec.detail


def plain(x: Tensor) -> Tensor:
    """Return the integers, in the memory of the quantized tensor."""
    spec = x.spec
    stored = STORED[spec.dtype]
    if spec.dtype in BITS:
        each = 8 // BITS[spec.dtype]
        found = contiguous_spec((-(-spec.numel // each),), stored, spec.device)
    else:
        found = make_spec(spec.shape, spec.stride, stored, spec.device)
    result = make(x._storage, x._byte_offset, found)
    result._base = x._base
    return result


def _new_spec(shape: Sequence[int], stride: tuple[int, ...], dtype: DType, place: Device, by: Quantizer):
    return layout_spec(shape, stride, dtype, place, strided, QUANTIZED, by)


# Interned specs are weak references. This cache keeps some alive, because creating one takes 4 us.
_kept_spec = functools.lru_cache(maxsize=1024)(_new_spec)


def quantized(
    integers: Tensor, quantizer: Quantizer, dtype: DType, shape: Sequence[int] | None = None
) -> Tensor:
    """Return the quantized tensor in the memory of its integers. shape: of dtypes with several integers in a byte."""
    if integers.spec.neg:
        integers = integers.resolve_neg()
    spec = integers.spec
    sizes, strides = (spec.shape, spec.stride) if shape is None else (tuple(shape), contiguous_stride(shape))
    make_spec_ = _kept_spec if isinstance(quantizer, QParams) else _new_spec
    found = make_spec_(sizes, strides, dtype, spec.device, quantizer)
    result = make(integers._storage, integers._byte_offset, found)
    result._base = integers._base
    return result


def like(x: Tensor, integers: Tensor) -> Tensor:
    """Return the quantized tensor of these integers with the dtype and the quantizer of `x`."""
    return quantized(integers, quantizer_of(x), x.dtype)


def take(target: Tensor, integers: Tensor, quantizer: Quantizer) -> Tensor:
    """`target` with the metadata of these integers, which are in its memory, and this quantizer."""
    found = quantized(integers, quantizer, target.dtype)
    target.spec, target._byte_offset = found.spec, found._byte_offset
    return target


def per_tensor(x: Tensor, function: str) -> QParams:
    """The scale and the zero point of a tensor that has one of each.

    Raises: RuntimeError for a tensor that has several.
    """
    quantizer = quantizer_of(x)
    if isinstance(quantizer, PerChannel):
        raise RuntimeError(
            f"{function}: expected a tensor with one scale and one zero point (torch.per_tensor_affine), but this one has them per channel: "
            "write x.dequantize() to compute with the numbers"
        )
    return quantizer


# ---- Between numbers and integers ------------------------------------------------------------------------------------


def integers_of(numbers_: Tensor, quantizer: Quantizer, dtype: DType) -> Tensor:
    """Return the integers of float32 numbers; packed in bytes for dtypes with several in a byte."""
    stored, bits = STORED[dtype], BITS.get(dtype)
    if isinstance(quantizer, QParams):
        if bits is None:
            return numbers.quantize_per_tensor(numbers_, *quantizer, stored)
        return numbers.pack_bits(numbers.quantize_in_bits(numbers_, *quantizer, bits), bits)
    scales, points = quantizer.scales_on(numbers_.device), quantizer.zero_points_on(numbers_.device)
    if not quantizer.has_floats:
        return numbers.quantize_per_channel(numbers_, scales, points, quantizer.axis, stored)
    found = numbers.quantize_per_float_channel(
        numbers_, scales.to(float32), points, quantizer.axis, stored, bits or 8
    )
    return found if bits is None else numbers.pack_bits(found, bits)


def quantize(numbers_: Tensor, quantizer: Quantizer, dtype: DType) -> Tensor:
    """The quantized tensor of float32 numbers, contiguous in the memory format that the numbers have."""
    dense = bare(numbers_)
    if not dense.spec.is_contiguous:
        dense = dense.contiguous(memory_format=suggested_format(dense.spec))
    integers = integers_of(dense, quantizer, dtype)
    return quantized(integers, quantizer, dtype, numbers_.shape if dtype in BITS else None)


def dequantize(x: Tensor) -> Tensor:
    """Return the float32 numbers of a quantized tensor."""
    quantizer, integers = quantizer_of(x), plain(x)
    if x.dtype in BITS:
        integers = numbers.unpack_bits(integers, BITS[x.dtype], x.shape)
    if isinstance(quantizer, QParams):
        return numbers.dequantize_per_tensor(integers, *quantizer)
    scales, points = quantizer.scales_on(x.device), quantizer.zero_points_on(x.device)
    convert = numbers.dequantize_per_float_channel if quantizer.has_floats else numbers.dequantize_per_channel
    return convert(integers, scales, points, quantizer.axis)
