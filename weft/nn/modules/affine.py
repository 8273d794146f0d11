"""The last step of norms scales and shifts each element or channel by learned numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import init
from ..module import Module


class AffineNorm(Module):
    """A norm with the parameters `weight` and `bias`, either of which may be None."""

    weight: Tensor | None
    bias: Tensor | None

    def _make_affine(
        self, sizes: int | Sequence[int], weight: bool, bias: bool, device: Any, dtype: DType | None
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            values = Parameter(empty(sizes, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, values)

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
