"""Quantized linear layers that end with an activation."""

from __future__ import annotations

from typing import Any

from ......core.dtype import qint8
from ......core.tensor import Tensor
from ......library.namespaces import ops
from ....quantized import Linear
from ....quantized.modules.utils import result_parameters
from ...modules import fused


class _WithActivation(Linear):
    """The base of quantized layers that are made of a linear layer and an activation."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_reference(cls, ref_mod: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer and an activation, with the parameters of the result."""
        return super().from_reference(ref_mod[0], output_scale, output_zero_point)


class LinearReLU(_WithActivation):
    """A quantized linear layer and ReLU, which costs nothing."""

    _FLOAT_MODULE = fused.LinearReLU
    _relu = True


class LinearTanh(_WithActivation):
    """A quantized linear layer and tanh."""

    _FLOAT_MODULE = fused.LinearTanh

    def forward(self, x: Tensor) -> Tensor:
        return ops.quantized.linear_tanh(x, self._packed_params._packed_params, self.scale, self.zero_point)


class LinearLeakyReLU(_WithActivation):
    """A quantized linear layer and leaky ReLU."""

    _FLOAT_MODULE = fused.LinearLeakyReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        negative_slope: float,
        bias: bool = True,
        dtype: Any = qint8,
    ):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        return ops.quantized.linear_leaky_relu(x, packed, self.scale, self.zero_point, self.negative_slope)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> LinearLeakyReLU:
        """The quantized layer of layers that were observed."""
        linear, weight, bias = cls._observed(mod, use_precomputed_fake_quant)
        return cls._like(linear, weight, bias, *result_parameters(mod), mod[1].negative_slope)

    @classmethod
    def from_reference(cls, ref_mod: Any, output_scale: Any, output_zero_point: Any) -> LinearLeakyReLU:
        """The layer of a reference layer and a leaky ReLU, with the parameters of the result."""
        linear, activation = ref_mod
        given = linear.get_quantized_weight(), linear.bias, output_scale, output_zero_point
        return cls._like(linear, *given, activation.negative_slope)
