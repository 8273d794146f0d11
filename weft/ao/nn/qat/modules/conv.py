"""Convolutions for quantization-aware training."""

from __future__ import annotations

from typing import Any, ClassVar

from .....core.tensor import Tensor
from .....nn import Conv1d as FloatConv1d
from .....nn import Conv2d as FloatConv2d
from .....nn import Conv3d as FloatConv3d
from .....nn import Module, Sequential
from ...layers import conv_arguments
from .fake_quantized_weight import FakeQuantizedWeight


class _ConvNd(FakeQuantizedWeight):
    # The convolution of floats.
    _CONV: ClassVar[type[Module]]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        geometry = kernel_size, stride, padding, dilation, groups, bias, padding_mode
        super().__init__(in_channels, out_channels, *geometry, device, dtype)
        self._set_qconfig(qconfig, factory_kwargs={"device": device, "dtype": dtype})

    def forward(self: Any, input: Tensor) -> Tensor:
        return self._conv_forward(input, self._rounded_weight(), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a convolution of floats with a QConfig, whose parameters it shares."""
        qconfig = cls._qconfig_of(mod)
        conv = mod[0] if isinstance(mod, Sequential) else mod
        make: Any = cls  # which is a class of convolutions, too
        made = make(*conv_arguments(conv), qconfig)
        made.weight, made.bias = conv.weight, conv.bias
        return made

    def to_float(self) -> Any:
        """The convolution of floats with the same parameters."""
        return self._copy_to(self._CONV(*conv_arguments(self)))


class Conv1d(_ConvNd, FloatConv1d):
    """Conv1d whose weight is rounded.

    >>> import weft as torch
    >>> qconfig = torch.ao.quantization.default_qat_qconfig
    >>> torch.ao.nn.qat.Conv1d(2, 3, 3, qconfig=qconfig)(torch.rand(1, 2, 5)).shape
    torch.Size([1, 3, 3])
    """

    _FLOAT_MODULE: ClassVar[Any] = FloatConv1d
    _CONV = FloatConv1d


class Conv2d(_ConvNd, FloatConv2d):
    """Conv2d whose weight is rounded."""

    _FLOAT_MODULE: ClassVar[Any] = FloatConv2d
    _CONV = FloatConv2d


class Conv3d(_ConvNd, FloatConv3d):
    """Conv3d whose weight is rounded."""

    _FLOAT_MODULE: ClassVar[Any] = FloatConv3d
    _CONV = FloatConv3d
