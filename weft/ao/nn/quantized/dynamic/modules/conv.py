"""Convolutions of floats with quantized weights."""

from __future__ import annotations

from typing import Any

from ......core.tensor import Tensor
from ......library.namespaces import ops
from ...modules import conv

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic(conv._ConvNd):
    """The input is quantized with parameters that suit it. The result is of floats."""

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:  # type: ignore[override]
        self._check_dims(input)
        call = getattr(ops.quantized, f"{self._kind}{self._dims}d_dynamic")
        return call(self._padded(input), self._packed_params, reduce_range)

    def _get_name(self) -> str:
        return f"Dynamic{super()._get_name()}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a layer of floats, whose weight is quantized as its QConfig says."""
        return cls._like(*cls._observed(mod, use_precomputed_fake_quant), 1.0, 0)


class Conv1d(_Dynamic, conv.Conv1d):
    """A convolution [N, C, length] of floats with a quantized weight."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
        reduce_range: bool = True,
    ):  # fmt: skip
        geometry = kernel_size, stride, padding, dilation
        super().__init__(in_channels, out_channels, *geometry, groups, bias, padding_mode, device, dtype)


class Conv2d(_Dynamic, conv.Conv2d):
    """A convolution [N, C, height, width] of floats with a quantized weight."""


class Conv3d(_Dynamic, conv.Conv3d):
    """A convolution [N, C, depth, height, width] of floats with a quantized weight."""


class ConvTranspose1d(_Dynamic, conv.ConvTranspose1d):
    """A transposed convolution [N, C, length] of floats with a quantized weight."""


class ConvTranspose2d(_Dynamic, conv.ConvTranspose2d):
    """A transposed convolution [N, C, height, width] of floats with a quantized weight."""


class ConvTranspose3d(_Dynamic, conv.ConvTranspose3d):
    """A transposed convolution [N, C, depth, height, width] of floats with a quantized weight."""
