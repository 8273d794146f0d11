"""The reference layer of a linear layer."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......core.tensor import Tensor
from .utils import ReferenceQuantizedModule

__all__ = ["Linear"]


class Linear(ReferenceQuantizedModule, nn.Linear):
    """A linear layer of floats whose weight is rounded to the numbers of the quantized one."""

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Tensor) -> Tensor:
        return self._computed(nn.Linear, ("weight",), x)

    def _get_name(self) -> str:
        return "QuantizedLinear(Reference)"

    @classmethod
    def from_float(cls, float_linear: Any, weight_qparams: dict[str, Any] | None) -> Linear:
        """The reference layer of a layer of floats, with the parameters of the weight."""
        other = float_linear
        made = cls(
            other.in_features, other.out_features, other.bias is not None, weight_qparams=weight_qparams
        )
        made.weight = nn.Parameter(other.weight.detach())
        if other.bias is not None:
            made.bias = nn.Parameter(other.bias.detach())
        return made
