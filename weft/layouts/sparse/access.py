"""What sparse tensors tell of themselves."""

from __future__ import annotations

from typing import Any

from ...core.layout import sparse_coo
from ...core.tensor import Tensor, make
from ..parts import parts_of, values_of
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .rules import SPARSE

rule = SPARSE.rule


@rule("detach")
def detach(self: Tensor) -> Tensor:
    return make(self._storage, 0, self.spec)


@rule("clone")
def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    indices, values = indices_of(self).clone(), values_of(self).clone()
    return coo(indices, values, self.shape, is_coalesced(self))


@rule("_indices")
def _indices(self: Tensor) -> Tensor:
    return indices_of(self)


@rule("_values")
def _values(self: Tensor) -> Tensor:
    return parts_of(self)[-1]


@rule("_nnz")
def nnz(self: Tensor) -> int:
    return parts_of(self)[-1].shape[0]


@rule("is_coalesced")
def _is_coalesced(self: Tensor) -> bool:
    return is_coalesced(self)


@rule("indices")
def indices(self: Tensor) -> Tensor:
    _check_coalesced(self, "indices")
    return indices_of(self)


@rule("values")
def values(self: Tensor) -> Tensor:
    if self.layout is sparse_coo:
        _check_coalesced(self, "values")
    return values_of(self)


def _check_coalesced(self: Tensor, name: str) -> None:
    if not is_coalesced(self):
        raise RuntimeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first (or read Tensor._{name}())"
        )


@rule("sparse_dim")
def sparse_dim(self: Tensor) -> int:
    return sparse_dim_of(self)


@rule("dense_dim")
def dense_dim(self: Tensor) -> Any:
    return self.dim() - sparse_dim_of(self)
