"""Convolutions."""

from __future__ import annotations

from typing import Any

from .._builder import Builder
from .base import per_dim, translates


def _same_padding(sizes: list[int], dilation: list[int]) -> list[int]:
    total = [d * (k - 1) for k, d in zip(sizes, dilation)]
    return [each // 2 for each in total] + [each - each // 2 for each in total]


@translates("conv1d", "conv2d", "conv3d")
def conv(
    b: Builder,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> str:
    count = b.meta(weight).dim() - 2
    dilations = per_dim(dilation, count)
    if padding == "same":
        pads = _same_padding(list(b.meta(weight).shape[2:]), dilations)
    else:
        pads = per_dim(0 if padding == "valid" else padding, count) * 2
    value, batched = b.tensor(input), b.meta(input).dim() == count + 2
    value = value if batched else b.op("Unsqueeze", value, b.axes(0))
    found = b.op("Conv", value, b.tensor(weight), b.tensor(bias), strides=per_dim(stride, count), pads=pads,
                 dilations=dilations, group=groups)  # fmt: skip
    return found if batched else b.op("Squeeze", found, b.axes(0))


@translates("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    b: Builder, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> str:  # fmt: skip
    count = b.meta(weight).dim() - 2
    return b.op("ConvTranspose", b.tensor(input), b.tensor(weight), b.tensor(bias), strides=per_dim(stride, count),
                pads=per_dim(padding, count) * 2, output_padding=per_dim(output_padding, count), group=groups,
                dilations=per_dim(dilation, count))  # fmt: skip
