"""The linear layer of floats with a quantized weight that ends with ReLU."""

from __future__ import annotations

from typing import Any

from .......core.dtype import qint8
from .....quantized.dynamic import Linear


class LinearReLU(Linear):
    """A linear layer whose input is quantized with parameters that suit it, and ReLU, which costs nothing."""

    _relu = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu: Any) -> Any:  # type: ignore[override]  # PyTorch's signature
        """The layer of a reference layer and ReLU."""
        return super().from_reference(ref_qlinear_relu[0])
