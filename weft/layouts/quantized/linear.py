"""Linear layers of quantized tensors, as functions of their integers.

PyTorch computes the scales of the results in float32, in this order, and so do these functions.

Shapes: a [..., groups * terms], or its sums [..., groups * columns] (see `products.py`) -> [..., groups * columns]; weight_scales [groups * columns] or [1], bias [groups * columns], both float32.
"""

from __future__ import annotations

from ...core.dtype import DType, uint8
from ...core.tensor import Tensor
from ...ops.elementwise.qparams import QParams
from .products import Image, Packed, floating, requantized
from .ranges import quantize_dynamic


def scaling(
    scale: float, packed: Packed, weight_scales: Tensor, bias: Tensor | None, result_scale: float
) -> tuple[Tensor, Tensor]:
    """The multipliers and the addends of `requantized` for a layer, by the scales of its input and of its result."""
    scales = weight_scales * scale
    multipliers = (scales / result_scale).expand(len(packed.sums)).contiguous()
    addends = multipliers.new_zeros(len(packed.sums)) if bias is None else bias / scales
    return multipliers, addends


def linear(
    a: Tensor | Image,
    by: QParams,
    packed: Packed,
    weight_scales: Tensor,
    bias: Tensor | None,
    result: QParams,
    relu: bool = False,
    dtype: DType = uint8,
) -> Tensor:
    """Return the layer of integers, as integers of `dtype`."""
    of_columns = scaling(by.scale, packed, weight_scales, bias, result.scale)
    return requantized(a, by.zero_point, packed, *of_columns, (dtype, result.zero_point), relu)


def linear_to_float(
    a: Tensor | Image,
    by: QParams,
    packed: Packed,
    weight_scales: Tensor,
    bias: Tensor | None,
    relu: bool = False,
) -> Tensor:
    """Return the layer of integers, as float32."""
    multipliers = (weight_scales * by.scale).expand(len(packed.sums))
    addends = multipliers.new_zeros(len(packed.sums)) if bias is None else bias
    return floating(a, by.zero_point, packed, multipliers, addends, relu)


def linear_dynamic(
    input: Tensor,
    packed: Packed,
    weight_scales: Tensor,
    bias: Tensor | None,
    reduce_range: bool = False,
    relu: bool = False,
) -> Tensor:
    """The layer of float32 numbers, which are quantized with the scale and the zero point that suit them."""
    integers, by = quantize_dynamic(input, uint8, reduce_range)
    return linear_to_float(integers, by, packed, weight_scales, bias, relu)
