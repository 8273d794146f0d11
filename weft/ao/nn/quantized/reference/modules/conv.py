"""The reference layers of convolutions."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......core.tensor import Tensor
from ....layers import conv_arguments
from ...modules.conv import _transposed_arguments
from .utils import ReferenceQuantizedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Reference(ReferenceQuantizedModule):
    """A convolution of floats whose weight is rounded to the numbers of the quantized one."""

    _float: Any
    # Of a convolution of floats, the arguments for the constructor of this class.
    _arguments: Any = staticmethod(conv_arguments)

    def forward(self, x: Tensor) -> Tensor:
        return self._computed(self._float, ("weight",), x)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    @classmethod
    def from_float(cls, float_conv: Any, weight_qparams: dict[str, Any] | None) -> Any:
        """The reference layer of a layer of floats, with the parameters of the weight."""
        made = cls(*cls._arguments(float_conv), weight_qparams=weight_qparams)  # type: ignore[call-arg]
        made.weight = nn.Parameter(float_conv.weight.detach())  # type: ignore[attr-defined]
        if float_conv.bias is not None:
            made.bias = nn.Parameter(float_conv.bias.detach())  # type: ignore[attr-defined]
        return made


class _Conv(_Reference):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        geometry = kernel_size, stride, padding, dilation, groups
        super().__init__(in_channels, out_channels, *geometry, bias, padding_mode, device, dtype)  # type: ignore[call-arg]
        self._init_weight_qparams(weight_qparams, device)


class _ConvTranspose(_Reference):
    _arguments = staticmethod(_transposed_arguments)

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        geometry = kernel_size, stride, padding, output_padding, groups
        super().__init__(in_channels, out_channels, *geometry, bias, dilation, padding_mode, device, dtype)  # type: ignore[call-arg]
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return self._computed(self._float, ("weight",), x, output_size)


class Conv1d(_Conv, nn.Conv1d):
    """A convolution [N, C, length] with a rounded weight."""

    _float = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """A convolution [N, C, height, width] with a rounded weight."""

    _float = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """A convolution [N, C, depth, height, width] with a rounded weight."""

    _float = nn.Conv3d


class ConvTranspose1d(_ConvTranspose, nn.ConvTranspose1d):
    """A transposed convolution [N, C, length] with a rounded weight."""

    _float = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTranspose, nn.ConvTranspose2d):
    """A transposed convolution [N, C, height, width] with a rounded weight."""

    _float = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTranspose, nn.ConvTranspose3d):
    """A transposed convolution [N, C, depth, height, width] with a rounded weight."""

    _float = nn.ConvTranspose3d
