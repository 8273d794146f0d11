"""Convolutions of quantized tensors."""

from __future__ import annotations

from typing import Any

from ....._ops import ops
from .....compat.missing import module_getattr
from .....core.dtype import qint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import Sequential
from .....ops.creation.creation import zeros
from .....ops.creation.from_data import tensor
from .utils import WeightedQuantizedModule, observed_weight


class _ConvNd(WeightedQuantizedModule):
    _dims = 0
    _relu = False
    scale: float
    zero_point: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels,
            out_channels,
            groups,
            padding_mode,
        )
        self.kernel_size, self.stride, self.padding, self.dilation = (
            tuple(each) if isinstance(each, (tuple, list)) else (each,) * self._dims
            for each in (kernel_size, stride, padding, dilation)
        )
        self.transposed, self.output_padding = False, (0,) * self._dims
        shape = [out_channels, in_channels // groups, *self.kernel_size]
        weight = FUNCTIONS["_empty_affine_quantized"](shape, scale=1.0, zero_point=0, dtype=qint8)
        self.set_weight_bias(weight, zeros(out_channels) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return f"QuantizedConv{'ReLU' if self._relu else ''}{self._dims}d"

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        for name, default in (("padding", 0), ("dilation", 1)):
            if getattr(self, name) != (default,) * self._dims:
                text += f", {name}={getattr(self, name)}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias() is None else "")

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Prepare a weight and a bias."""
        prepack = getattr(ops.quantized, f"conv{self._dims}d_prepack")
        # A border of another kind than zeros is put around the input before.
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        self._packed_params = prepack(w, b, self.stride, padding, self.dilation, self.groups)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._packed_params.weight

    def bias(self) -> Tensor | None:
        """The bias, in floats."""
        return self._packed_params.bias

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            border = [width for each in reversed(self.padding) for width in (each, each)]
            input = FUNCTIONS["nn.functional.pad"](input, border, mode=self.padding_mode)
        call = getattr(ops.quantized, f"conv{self._dims}d{'_relu' if self._relu else ''}")
        return call(input, self._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self.weight(), self.bias()
        destination[prefix + "scale"] = tensor(self.scale)
        destination[prefix + "zero_point"] = tensor(self.zero_point)

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        *rest: Any,
    ) -> None:
        absent = [
            prefix + name
            for name in ("weight", "bias", "scale", "zero_point")
            if prefix + name not in state_dict
        ]
        missing_keys += absent
        if not absent:
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
            self.scale = float(state_dict.pop(prefix + "scale"))
            self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed, or trained with rounded numbers."""
        conv = mod[0] if isinstance(mod, Sequential) else mod
        observer = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        return cls.get_qconv(conv, mod.activation_post_process, observer)

    @classmethod
    def get_qconv(cls, mod: Any, activation_post_process: Any, weight_post_process: Any = None) -> Any:
        """The quantized layer of a layer of floats, by the observers of its result and of its weight."""
        observer = mod.qconfig.weight() if weight_post_process is None else weight_post_process
        return cls._like(
            mod, observed_weight(mod.weight, observer), *activation_post_process.calculate_qparams()
        )

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer, with the parameters of the result."""
        return cls._like(ref_qconv, ref_qconv.get_quantized_weight(), output_scale, output_zero_point)

    @classmethod
    def _like(cls, conv: Any, weight: Tensor, scale: Any, zero_point: Any) -> Any:
        geometry = (conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups)
        made = cls(conv.in_channels, conv.out_channels, *geometry, conv.bias is not None, conv.padding_mode)
        made.set_weight_bias(weight, conv.bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made


class Conv1d(_ConvNd):
    """A convolution [N, C, length]: quantized input, weight and result."""

    _dims = 1


class Conv2d(_ConvNd):
    """A convolution [N, C, height, width]: quantized input, weight and result."""

    _dims = 2


class Conv3d(_ConvNd):
    """A convolution [N, C, depth, height, width]: quantized input, weight and result."""

    _dims = 3


__getattr__ = module_getattr(__name__)
