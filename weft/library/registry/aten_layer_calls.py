"""Calls of layers as calls of aten operators, like those of `aten_calls.py`: normalization, resizing, attention, pooling."""

from __future__ import annotations

import math
from typing import Any

from ...core.dispatch import PLAIN
from ...core.dtype import float64, uint8
from ...core.layout import strided
from ...core.tensor import Tensor
from ..namespaces import ops
from .aten_calls import _call_rows, _calls, _listed
from .aten_derivatives import reshaped

aten = ops.aten

# ---- Normalization -------------------------------------------------------------------------------------------------------


@_calls("batch_norm")
def _batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: Any = False, momentum: float = 0.1, eps: float = 1e-5, *others: Any,
) -> Any:  # fmt: skip
    if others or isinstance(training, Tensor):
        return PLAIN  # `torch.batch_norm`, which has another order of arguments
    aten.empty([0], dtype=uint8, layout=strided, device=input.device)  # PyTorch's space for GPUs
    return aten.native_batch_norm(
        input, weight, bias, running_mean, running_var, bool(training), momentum, eps
    )[0]


@_calls("group_norm")
def _group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    *others: Any,
) -> Any:  # fmt: skip
    if input.ndim < 2 or input.shape[1] % num_groups:
        return PLAIN
    n, channels, *rest = input.shape
    if not input.is_contiguous():
        input = aten.clone(input, memory_format=None)
    return aten.native_group_norm(input, weight, bias, n, channels, math.prod(rest), num_groups, eps)[0]


@_calls("instance_norm")
def _instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5, *others: Any,
) -> Any:  # fmt: skip
    if others or running_mean is not None or running_var is not None or not use_input_stats:
        return PLAIN
    n, channels, *rest = input.shape
    weight, bias = (None if each is None else aten.repeat(each, [n]) for each in (weight, bias))
    channels_first = aten.view(input.contiguous(), [1, n * channels, *rest])
    return aten.view(
        _batch_norm(channels_first, None, None, weight, bias, True, momentum, eps), list(input.shape)
    )


# ---- Resizing ------------------------------------------------------------------------------------------------------------

_RESIZING = {
    ("nearest", 3): "upsample_nearest1d", ("nearest", 4): "upsample_nearest2d", ("nearest", 5): "upsample_nearest3d",
    ("linear", 3): "upsample_linear1d", ("bilinear", 4): "upsample_bilinear2d", ("bicubic", 4): "upsample_bicubic2d",
    ("trilinear", 5): "upsample_trilinear3d",
}  # fmt: skip


@_calls("interpolate")
def _interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Any:  # fmt: skip
    name = _RESIZING.get((mode, input.ndim))
    if name is None or antialias or (size is None) is (scale_factor is None):
        return PLAIN
    n = input.ndim - 2
    scales = [] if scale_factor is None else [float(each) for each in _listed(scale_factor, n)]
    sizes = (
        [math.floor(length * scale) for length, scale in zip(input.shape[2:], scales, strict=True)]
        if size is None
        else _listed(size, n)
    )
    given = [] if recompute_scale_factor else scales
    corners = () if mode == "nearest" else (bool(align_corners),)
    return getattr(aten, name)(input, sizes, *corners, *given)


# ---- Attention -----------------------------------------------------------------------------------------------------------


@_calls("scaled_dot_product_attention")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    shapes = [each.shape for each in (query, key, value)]
    # Of other calls PyTorch composes the formula, and so does weft.
    if query.device.type not in ("cpu", "meta"):
        return PLAIN
    if dropout_p or enable_gqa or any(len(each) != 4 for each in shapes) or key.shape != value.shape:
        return PLAIN
    if query.shape[-1] != value.shape[-1] or attn_mask is not None and attn_mask.requires_grad:
        return PLAIN
    options = {"attn_mask": attn_mask, "scale": scale}
    given = {name: each for name, each in options.items() if each is not None}
    flash = aten._scaled_dot_product_flash_attention_for_cpu
    return flash(query, key, value, *((0.0, True) if is_causal else ()), **given)[0]


# ---- Pooling and convolution -----------------------------------------------------------------------------------------------


@_calls("adaptive_avg_pool2d")
def _adaptive_average(input: Tensor, output_size: Any) -> Any:
    sizes = [
        length if size is None else size
        for size, length in zip(_listed(output_size, 2), input.shape[-2:], strict=True)
    ]
    if sizes == [1, 1]:
        return aten.mean(input, [-1, -2], True)
    return aten._adaptive_avg_pool2d(input, sizes)


@_calls("max_pool1d")
def _max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    if return_indices:
        return PLAIN
    rows = aten.unsqueeze(input, -2)
    result = aten.max_pool2d_with_indices(
        rows, [1, *_listed(kernel_size, 1)], [1, *_listed(kernel_size if stride is None else stride, 1)],
        [0, *_listed(padding, 1)], [1, *_listed(dilation, 1)], ceil_mode,
    )[0]  # fmt: skip
    return aten.squeeze(result, -2)


@_calls("avg_pool1d")
def _avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    result = aten.avg_pool2d(
        aten.unsqueeze(input, -2), [1, *_listed(kernel_size, 1)],
        [1, *_listed(kernel_size if stride is None else stride, 1)], [0, *_listed(padding, 1)], ceil_mode,
        count_include_pad,
    )  # fmt: skip
    return aten.squeeze(result, -2)


def _transposed_convolution(n: int) -> None:
    def function(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        if input.ndim != n + 2:
            return PLAIN
        steps = (_listed(each, n) for each in (stride, padding, dilation))
        return aten.convolution(input, weight, bias, *steps, True, _listed(output_padding, n), groups)

    _calls(f"conv_transpose{n}d")(function)


for _n in (1, 2, 3):
    _transposed_convolution(_n)


@_calls("nn.functional.unfold")
def _unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1, **others: Any
) -> Any:
    if others or not isinstance(stride, (int, tuple, list)) or input.ndim not in (3, 4):
        return PLAIN
    return aten.im2col(input, *(_listed(each, 2) for each in (kernel_size, dilation, padding, stride)))


# ---- Activations -----------------------------------------------------------------------------------------------------------


_call_rows(
    {
        "logsigmoid": lambda input: aten.log_sigmoid_forward(input)[0],
        "softsign": lambda input: aten.div(input, aten.add(aten.abs(input), 1)),
    }
)


@_calls("prelu")
def _prelu(input: Tensor, weight: Tensor) -> Any:
    if weight.ndim == 1 and input.ndim != 1:
        weight = reshaped(weight, [weight.shape[0] if dim == 1 else 1 for dim in range(input.ndim)])
    return aten._prelu_kernel(input, weight)


@_calls("float_power")
def _float_power(input: Any, exponent: Any) -> Any:
    if not isinstance(input, Tensor) or isinstance(exponent, (Tensor, complex)) or input.dtype.is_complex:
        return PLAIN
    return aten.pow(input if input.dtype is float64 else aten._to_copy(input, dtype=float64), float(exponent))
