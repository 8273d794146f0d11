"""Dropout of quantized tensors, which are not trained."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.tensor import Tensor

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """Returns its input, also in training mode."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The layer of a layer of floats."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Dropout:
        """The layer of a layer of floats."""
        return cls(mod.p, mod.inplace)
