"""Activations of quantized tensors."""

from __future__ import annotations

from typing import Any

from .....compat.missing import module_getattr
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import ReLU


class ReLU6(ReLU):
    """min(max(0, x), 6)."""

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS["nn.functional.relu6"](input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The layer of a layer of floats."""
        return ReLU6(mod.inplace)


__getattr__ = module_getattr(__name__)
