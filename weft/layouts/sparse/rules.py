"""The rules of sparse tensors, which the files of this folder fill."""

from __future__ import annotations

from ...core.layout_calls import Rules
from ...core.tensor import Tensor
from ..parts import assign, values_of


def _restrict(ct: Tensor, template: Tensor) -> Tensor:
    return values_of(ct.sparse_mask(template))


SPARSE = Rules("sparse", "write x.to_dense() to compute with the dense tensor", assign, _restrict)
