"""Activations of quantized tensors."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.dtype import quint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....ops.creation.from_data import tensor
from .....ops.creation.random import randn
from .....ops.reductions.softmax import _get_softmax_dim
from ...quantizable.modules.activation import MultiheadAttention as QuantizableMultiheadAttention
from .. import functional as F
from .utils import converted, result_parameters

__all__ = ["ELU", "Hardswish", "LeakyReLU", "MultiheadAttention", "PReLU", "ReLU6", "Sigmoid", "Softmax"]


class ReLU6(nn.ReLU):
    """min(max(0, x), 6)."""

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS["nn.functional.relu6"](input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The layer of a layer of floats."""
        return ReLU6(mod.inplace)


class _Activation(nn.Module):
    """An activation whose result has a scale and a zero point of its own."""

    _arguments: tuple[
        str, ...
    ] = ()  # attributes of the layer of floats that the constructor takes after the scale and the zero point

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed."""
        return cls.from_reference(mod, *result_parameters(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The quantized layer of a layer of floats, with the parameters of the result."""
        return cls(float(scale), int(zero_point), *(getattr(mod, name) for name in cls._arguments))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"


class Hardswish(_Activation, nn.Hardswish):
    """x * min(max(0, x + 3), 6) / 6."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: Any, zero_point: Any, device: Any = None, dtype: Any = None):
        super().__init__()
        self.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.hardswish(input, float(self.scale), int(self.zero_point))


class ELU(_Activation, nn.ELU):
    """max(0, x) + min(0, alpha * (exp(x) - 1))."""

    _arguments = ("alpha",)

    def __init__(self, scale: Any, zero_point: Any, alpha: float = 1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.scale, self.zero_point, self.alpha)


class LeakyReLU(_Activation, nn.LeakyReLU):
    """max(0, x) + negative_slope * min(0, x)."""

    _arguments = ("negative_slope", "inplace")
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 0.01, inplace: bool = False, device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        by = float(self.scale), int(self.zero_point)
        return ops.quantized.leaky_relu(input, self.negative_slope, self.inplace, *by)


class Sigmoid(_Activation, nn.Sigmoid):
    """1 / (1 + exp(-x))."""

    def __init__(self, output_scale: float, output_zero_point: int):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    def _get_name(self) -> str:
        return "Sigmoid"

    @classmethod
    def from_reference(cls, mod: Any, output_scale: Any, output_zero_point: Any) -> Sigmoid:  # type: ignore[override]
        """The quantized layer of a layer of floats, with the parameters of the result."""
        return super().from_reference(mod, output_scale, output_zero_point)


class Softmax(_Activation, nn.Softmax):
    """exp(x) / sum(exp(x)) along a dim."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0):
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        dim = _get_softmax_dim("softmax", input.dim(), 3) if self.dim is None else self.dim
        return ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Softmax:
        """The quantized layer of a layer of floats, with the parameters of the result."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(_Activation):
    """max(0, x) + weight * min(0, x). The weight is a quint8 tensor, which no state_dict holds, as in PyTorch."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1):
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        weight = randn(num_parameters)
        self.set_weight(FUNCTIONS["quantize_per_tensor"](weight, 1.0, 0, quint8))

    def set_weight(self, w: Tensor) -> None:
        """Exchange the weight."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> PReLU:
        """The quantized layer of a layer of floats, with the parameters of the result."""
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        weight, observer = mod.weight.detach().float(), mod.qconfig.weight()
        observer(weight)
        weight_scale, weight_zero_point = observer.calculate_qparams()
        # PyTorch has quint8 here whatever the observer's dtype is.
        made.set_weight(
            FUNCTIONS["quantize_per_tensor"](weight, float(weight_scale), int(weight_zero_point), quint8)
        )
        return made


class MultiheadAttention(QuantizableMultiheadAttention):
    """Attention with several heads: quantized input and result. `convert` makes it."""

    _FLOAT_MODULE = QuantizableMultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """Not of a layer of floats, which `prepare` observes first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantized layer of an observed one."""
        made = converted(cls, other)
        for name in ("bias_k", "bias_v"):
            bias = made._parameters.pop(name, None)
            quantized = (
                None
                if bias is None
                else FUNCTIONS["quantize_per_tensor_dynamic"](bias.detach(), quint8, False)
            )
            setattr(made, name, quantized)
        for name in ("in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            made._parameters.pop(name, None)
        return made
