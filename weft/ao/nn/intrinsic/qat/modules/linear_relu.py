"""The linear layer with ReLU for quantization-aware training."""

from __future__ import annotations

from typing import Any

from ......core.tensor import Tensor
from ......nn import ReLU
from ......nn.functional import relu
from ....qat import Linear
from ...modules import fused


class LinearReLU(Linear, fused._FusedModule):
    """A linear layer whose weight is rounded, and ReLU."""

    _FLOAT_MODULE = fused.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None):
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return relu(super().forward(input))

    def to_float(self) -> fused.LinearReLU:
        """The linear layer and ReLU of floats with the same parameters."""
        return fused.LinearReLU(super().to_float(), ReLU()).train(self.training)
