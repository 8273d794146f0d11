"""Convolutions of quantized tensors."""

from __future__ import annotations

from typing import Any, ClassVar

from .....core.dtype import qint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....nn import Conv1d as FloatConv1d
from .....nn import Conv2d as FloatConv2d
from .....nn import Conv3d as FloatConv3d
from .....nn import ConvTranspose1d as FloatConvTranspose1d
from .....nn import ConvTranspose2d as FloatConvTranspose2d
from .....nn import ConvTranspose3d as FloatConvTranspose3d
from .....ops.creation.creation import zeros
from ...layers import conv_arguments
from .utils import WeightedQuantizedModule, observed_weight

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvNd(WeightedQuantizedModule):
    _dims = 0
    _relu = False
    _kind = "conv"  # how the names of its operators begin

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        geometry = kernel_size, stride, padding, dilation, 0
        self._set_up(in_channels, out_channels, geometry, groups, bias, padding_mode, False)

    def _set_up(
        self, in_channels: int, out_channels: int, geometry: tuple, groups: int, bias: bool, padding_mode: str,
        transposed: bool,
    ) -> None:  # fmt: skip
        """Make the weight. geometry: the kernel's sizes, stride, padding, dilation and output_padding, as numbers or one for each dim."""
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.padding_mode, self.transposed = padding_mode, transposed
        self.kernel_size, self.stride, self.padding, self.dilation, self.output_padding = (
            tuple(each) if isinstance(each, (tuple, list)) else (each,) * self._dims for each in geometry
        )
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = [first, second // groups, *self.kernel_size]
        weight = FUNCTIONS["_empty_affine_quantized"](shape, scale=1.0, zero_point=0, dtype=qint8)
        self.set_weight_bias(weight, zeros(out_channels) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return f"QuantizedConv{'ReLU' if self._relu else ''}{self._dims}d"

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        for name, default in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (default,) * self._dims:
                text += f", {name}={getattr(self, name)}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias() is None else "")

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Prepare a weight and a bias."""
        prepack = getattr(ops.quantized, f"{self._kind}{self._dims}d_prepack")
        # A border of another kind than zeros is put around the input before.
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        more = (self.output_padding,) if self.transposed else ()
        self._packed_params = prepack(w, b, self.stride, padding, *more, self.dilation, self.groups)

    def _unpacked(self) -> tuple[Tensor, Tensor | None]:
        return getattr(ops.quantized, f"{self._kind}{self._dims}d_unpack")(self._packed_params)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._unpacked()[0]

    def bias(self) -> Tensor | None:
        """The bias, in floats."""
        return self._unpacked()[1]

    def _check_dims(self, input: Tensor) -> None:
        if input.dim() != self._dims + 2:
            sizes = ", ".join("DHW"[-self._dims :] if self._dims > 1 else "L")
            raise ValueError(f"Input shape must be `(N, C, {sizes})`!")

    def _padded(self, input: Tensor) -> Tensor:
        """The input with a border of another kind than zeros."""
        if self.padding_mode == "zeros":
            return input
        border = [width for each in reversed(self.padding) for width in (each, each)]
        return FUNCTIONS["nn.functional.pad"](input, border, mode=self.padding_mode)

    def forward(self, input: Tensor) -> Tensor:
        self._check_dims(input)
        call = getattr(ops.quantized, f"{self._kind}{self._dims}d{'_relu' if self._relu else ''}")
        return call(self._padded(input), self._packed_params, self.scale, self.zero_point)

    def _entries(self) -> dict[str, Any]:
        return {"weight": self.weight(), "bias": self.bias(), **super()._entries()}

    def _set_entries(self, entries: dict[str, Any]) -> None:
        super()._set_entries(entries)
        self.set_weight_bias(entries["weight"], entries["bias"])

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed, or trained with rounded numbers."""
        conv, weight, bias = cls._observed(mod, use_precomputed_fake_quant)
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(f"{cls.__name__}.from_float: the layer must have an observer of its result")
        return cls._like(conv, weight, bias, *mod.activation_post_process.calculate_qparams())

    @classmethod
    def get_qconv(cls, mod: Any, activation_post_process: Any, weight_post_process: Any = None) -> Any:
        """The quantized layer of a layer of floats, by the observers of its result and of its weight."""
        observer = mod.qconfig.weight() if weight_post_process is None else weight_post_process
        weight = observed_weight(mod.weight, observer)
        return cls._like(mod, weight, mod.bias, *activation_post_process.calculate_qparams())

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer, with the parameters of the result."""
        return cls._like(
            ref_qconv, ref_qconv.get_quantized_weight(), ref_qconv.bias, output_scale, output_zero_point
        )

    @classmethod
    def _like(cls, conv: Any, weight: Tensor, bias: Tensor | None, scale: Any, zero_point: Any) -> Any:
        made = cls(*cls._arguments(conv))
        made.set_weight_bias(weight, bias)
        made._set_parameters(scale, zero_point)
        return made

    # Of a convolution of floats, the arguments for the constructor of this class.
    _arguments = staticmethod(conv_arguments)


class Conv1d(_ConvNd):
    """A convolution [N, C, length]: quantized input, weight and result."""

    _dims = 1
    _FLOAT_MODULE: ClassVar[Any] = FloatConv1d


class Conv2d(_ConvNd):
    """A convolution [N, C, height, width]: quantized input, weight and result."""

    _dims = 2
    _FLOAT_MODULE: ClassVar[Any] = FloatConv2d


class Conv3d(_ConvNd):
    """A convolution [N, C, depth, height, width]: quantized input, weight and result."""

    _dims = 3
    _FLOAT_MODULE: ClassVar[Any] = FloatConv3d


def _transposed_arguments(conv: Any) -> tuple[Any, ...]:
    geometry = conv.kernel_size, conv.stride, conv.padding, conv.output_padding
    rest = conv.groups, conv.bias is not None, conv.dilation, conv.padding_mode
    return conv.in_channels, conv.out_channels, *geometry, *rest


class _ConvTransposeNd(_ConvNd):
    _kind = "conv_transpose"
    _arguments = staticmethod(_transposed_arguments)

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        WeightedQuantizedModule.__init__(self)
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        geometry = kernel_size, stride, padding, dilation, output_padding
        self._set_up(in_channels, out_channels, geometry, groups, bias, padding_mode, True)

    def _get_name(self) -> str:
        return f"QuantizedConvTranspose{self._dims}d"


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution [N, C, length]: quantized input, weight and result."""

    _dims = 1
    _FLOAT_MODULE: ClassVar[Any] = FloatConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution [N, C, height, width]: quantized input, weight and result."""

    _dims = 2
    _FLOAT_MODULE: ClassVar[Any] = FloatConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution [N, C, depth, height, width]: quantized input, weight and result."""

    _dims = 3
    _FLOAT_MODULE: ClassVar[Any] = FloatConvTranspose3d
