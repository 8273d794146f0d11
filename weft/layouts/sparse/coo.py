"""Defines COO: `indices` of shape (sparse_dim, nnz) and `values` of shape (nnz, *dense sizes).

Element `values[k]` stands at `indices[:, k]`. A tensor is coalesced if its indices are sorted and all different; else the
values at equal indices count as their sum.
"""

from __future__ import annotations

from typing import Any

from ...core.layout import sparse_coo
from ...core.layout_spec import LayoutSpec, layout_spec
from ...core.spec import contiguous_stride
from ...core.tensor import Tensor, make
from ..parts import PartsStorage, bare, parts_of, with_values
from .rules import SPARSE


class CooStorage(PartsStorage):
    """The indices and the values, and whether the indices are sorted and different."""

    __slots__ = ("is_coalesced",)

    is_coalesced: bool

    def __init__(self, parts: tuple[Tensor, ...], spec: LayoutSpec, is_coalesced: bool = False):
        super().__init__(parts, spec)
        self.is_coalesced = is_coalesced

    def with_parts(self, parts: tuple[Tensor, ...], spec: LayoutSpec) -> CooStorage:
        return CooStorage(parts, spec, self.is_coalesced)

    def take(self, other: Any) -> None:
        super().take(other)
        self.is_coalesced = other.is_coalesced


def coo_spec(shape: tuple[int, ...], sparse_dim: int, values: Tensor) -> LayoutSpec:
    """The spec of a tensor of this shape; `sparse_dim` of its dims are sparse."""
    spec = values.spec
    return layout_spec(
        tuple(shape), contiguous_stride(shape), spec.dtype, spec.device, sparse_coo, SPARSE, (sparse_dim,)
    )


def coo(indices: Tensor, values: Tensor, shape: tuple[int, ...], is_coalesced: bool) -> Tensor:
    """A tensor of these indices (int64, contiguous) and values, without checks. The derivative goes to `values`."""
    spec = coo_spec(shape, indices.shape[0], values)
    template = make(CooStorage((indices, bare(values)), spec, is_coalesced), 0, spec)
    return with_values(template, values) if values._autograd is not None else template


def sparse_dim_of(x: Tensor) -> int:
    spec: Any = x.spec
    return spec.detail[0]


def is_coalesced(x: Tensor) -> bool:
    storage: Any = x._storage
    return storage.is_coalesced


def indices_of(x: Tensor) -> Tensor:
    return parts_of(x)[0]
