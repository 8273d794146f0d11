"""Between dense and sparse tensors."""

from __future__ import annotations

from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import values_of
from .coo import coo, indices_of, is_coalesced
from .rules import SPARSE

zeros, nonzero = FUNCTIONS["zeros"], FUNCTIONS["nonzero"]
rule = SPARSE.rule


@rule("to_dense", "_to_dense")
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    values = values_of(self)
    dense = zeros(self.shape, dtype=values.dtype, device=values.device)
    result = dense.index_put(tuple(indices_of(self)), values, accumulate=True)
    return result if dtype is None else result.to(dtype)


def to_sparse(self: Tensor) -> Tensor:
    """The elements that are not zero, in COO."""
    indices = nonzero(self).t().contiguous()
    return coo(indices, self[tuple(indices)], self.shape, True)


@rule("sparse_mask")
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    if self.is_sparse:
        self = to_dense(self)
    indices = indices_of(mask)
    return coo(indices, self[tuple(indices)], self.shape, is_coalesced(mask))


@rule("coalesce")
def coalesce(self: Tensor) -> Tensor:
    if is_coalesced(self):
        return self
    indices, places = FUNCTIONS["unique"](indices_of(self), dim=1, return_inverse=True)
    values = values_of(self)
    shape = (indices.shape[1], *values.shape[1:])
    summed = zeros(shape, dtype=values.dtype).index_add(0, places, values)
    return coo(indices, summed, self.shape, True)
