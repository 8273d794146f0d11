"""`torch.ao.nn.quantized.functional`: functions of quantized tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ....core.dtype import qint8, quint8
from ....core.names import named
from ....core.registry import FUNCTIONS
from ....core.tensor import Tensor
from ....core.warn import user_level
from ....library.namespaces import ops

__all__ = [
    "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "conv1d", "conv2d", "conv3d", "interpolate",
    "linear", "max_pool1d", "max_pool2d", "celu", "leaky_relu", "hardtanh", "hardswish", "threshold", "elu",
    "hardsigmoid", "clamp", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _check_quantized(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _refuse_indices(return_indices: bool) -> None:
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")


# ---- Pooling and images ----------------------------------------------------------------------------------------------


def _average_pooling(dims: int, of: str) -> Callable[..., Tensor]:
    name = f"avg_pool{dims}d"

    @named(name, of=of)
    def pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        """The averages of windows of {of}, with the scale and the zero point of the input."""
        _check_quantized(input, name)
        options = stride, padding, ceil_mode, count_include_pad, divisor_override
        return FUNCTIONS[f"nn.functional.{name}"](input, kernel_size, *options)

    return pool


avg_pool2d, avg_pool3d = _average_pooling(2, "images"), _average_pooling(3, "volumes")


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """As many averages of windows of images as asked for."""
    _check_quantized(input, "functional.adaptive_avg_pool2d")
    return FUNCTIONS["nn.functional.adaptive_avg_pool2d"](input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """As many averages of windows of volumes as asked for."""
    _check_quantized(input, "functional.adaptive_avg_pool3d")
    return FUNCTIONS["nn.functional.adaptive_avg_pool3d"](input, output_size)


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The maxima of windows of sequences."""
    _refuse_indices(return_indices)
    return FUNCTIONS["nn.functional.max_pool1d"](input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The maxima of windows of images."""
    _refuse_indices(return_indices)
    return FUNCTIONS["nn.functional.max_pool2d"](
        input, kernel_size, stride or None, padding, dilation, ceil_mode
    )


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Images of another size, with the scale and the zero point of the input."""
    _check_quantized(input, "interpolate")
    return FUNCTIONS["nn.functional.interpolate"](input, size, scale_factor, mode, align_corners)


def _warn_deprecated(name: str) -> None:
    warnings.warn(
        f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.",
        stacklevel=user_level(),
    )


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """As `interpolate`."""
    _warn_deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """As `interpolate` with the mode "bilinear" and aligned corners."""
    _warn_deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """As `interpolate` with the mode "nearest"."""
    _warn_deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


# ---- Layers ----------------------------------------------------------------------------------------------------------


def _convolution(dims: int) -> Callable[..., Tensor]:
    sizes = ", ".join("DHW"[-dims:] if dims > 1 else "L")

    @named(f"conv{dims}d", sizes=sizes)
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = quint8,
    ) -> Tensor:  # fmt: skip
        """The convolution [N, C, {sizes}] of a quint8 input and a qint8 weight; the bias is of floats."""
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        for each, wanted, kind in ((input, quint8, "activation"), (weight, qint8, "weight")):
            if each.dtype is not wanted:
                raise NotImplementedError(f"Only {wanted} is supported for {kind} tensor!")
        if input.dim() != dims + 2:
            raise ValueError(f"Input shape must be `(N, C, {sizes})`!")
        steps = (
            each if isinstance(each, (tuple, list)) else (each,) * dims
            for each in (stride, padding, dilation)
        )
        packed = getattr(ops.quantized, f"conv{dims}d_prepack")(weight, bias, *steps, groups)
        return getattr(ops.quantized, f"conv{dims}d")(input, packed, scale, zero_point)

    return conv


conv1d, conv2d, conv3d = (_convolution(dims) for dims in (1, 2, 3))


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """input @ weight.T + bias, with the scale and the zero point of the input unless others are given."""
    packed = ops.quantized.linear_prepack(weight, bias)
    by = input.q_scale() if scale is None else scale
    return ops.quantized.linear(input, packed, by, input.q_zero_point() if zero_point is None else zero_point)


# ---- Activations -----------------------------------------------------------------------------------------------------


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    _check_quantized(input, "celu")
    return ops.quantized.celu(input, scale, zero_point, alpha)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x) - 1))."""
    _check_quantized(input, "elu")
    return ops.quantized.elu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:  # fmt: skip
    """max(0, x) + negative_slope * min(0, x)."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return ops.quantized.leaky_relu(input, negative_slope, False, scale, zero_point)
    return FUNCTIONS["nn.functional.leaky_relu"](input, negative_slope, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x between two bounds."""
    _check_quantized(input, "hardtanh")
    return FUNCTIONS["nn.functional.hardtanh"](input, min_val, max_val, inplace)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """x * min(max(0, x + 3), 6) / 6."""
    _check_quantized(input, "hardswish")
    return ops.quantized.hardswish(input, scale, zero_point)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above the threshold, else the value."""
    _check_quantized(input, "threshold")
    for name, each in (("threshold", threshold), ("value", value)):
        if each is None:
            raise ValueError(f"Input to '{name}' must be specified!")
    return FUNCTIONS["nn.functional.threshold"](input, threshold, value)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x + 3), 6) / 6."""
    _check_quantized(input, "hardsigmoid")
    return FUNCTIONS["nn.functional.hardsigmoid"](input, inplace)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """x between two bounds."""
    _check_quantized(input, "clamp")
    return input.clamp(min_, max_)
