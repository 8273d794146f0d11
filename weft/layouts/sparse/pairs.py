"""Brings two sparse tensors onto the entries of both: their union.

The layout of the left tensor, and for BSR and BSC its blocksize, is that of the pair.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.layout import sparse_coo
from ...core.tensor import Tensor
from ..parts import values_of
from . import compression, coordinates
from .compressed import blocksize_of, compressed, compressed_parts, dense_dim_of, format_of, matrix_sizes
from .compression import Compressed
from .conversion import as_compressed, as_coo
from .coo import coo, indices_of, sparse_dim_of
from .creation import empty_sparse
from .rules import have_same_indices


def aligned(left: Tensor, right: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Return the two tensors, the right one in the layout of the left one.

    Raises: RuntimeError if they differ in shape or in the number of dense dims.
    """
    if left.shape != right.shape:
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(left.shape)} != {list(right.shape)}"
        )
    if left.layout is sparse_coo:
        right = as_coo(right)
        same = sparse_dim_of(left) == sparse_dim_of(right)
        if not same and not right._nnz():
            return left, _without_entries_as(right, left)
        if not same and not left._nnz():
            return _without_entries_as(left, right), right
    else:
        right = as_compressed(right, left.layout, blocksize_of(left))
        same = dense_dim_of(left) == dense_dim_of(right)
    if not same:
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same density, but their numbers of sparse dimensions differ"
        )
    return left, right


def _without_entries_as(empty: Tensor, other: Tensor) -> Tensor:
    """Return a tensor without entries, with as many dense dims as another one."""
    dense_dim = other.dim() - sparse_dim_of(other)
    return empty_sparse(empty.shape, sparse_coo, empty.dtype, empty.device, dense_dim)


class Entries(NamedTuple):
    """Holds the entries of a tensor: their keys, int64 [n], and their values [n, ...]."""

    keys: Tensor
    values: Tensor


def entries_of(x: Tensor) -> Entries:
    """Raises: RuntimeError if the indices of a compressed tensor are wrong."""
    if x.layout is sparse_coo:
        return Entries(coordinates.keys_of(indices_of(x), x.shape[: sparse_dim_of(x)]), values_of(x))
    outer, inner, values = compressed_parts(x)
    keys = compression.entry_keys(outer, inner, _counts(x)[1])
    return Entries(keys, compression.values_by_entry(values, inner.dim() - 1))


def with_entries(template: Tensor, entries: Entries, is_coalesced: bool = True) -> Tensor:
    """A tensor of the layout and shape of the template with other entries, which are sorted if the layout is compressed."""
    keys, values = entries
    if template.layout is sparse_coo:
        indices = coordinates.indices_of(keys, template.shape[: sparse_dim_of(template)])
        return coo(indices, values, template.shape, is_coalesced)
    outer, inner, _ = compressed_parts(template)
    parts = compression.of_keys(keys, values, inner.shape[:-1], *_counts(template), outer.dtype)
    return compressed(Compressed(*parts), template.shape, template.layout)


class Union(NamedTuple):
    """The keys that one of two tensors has, and the values of both at these keys, zero where a tensor has no entry."""

    keys: Tensor
    left: Tensor
    right: Tensor


def union_of(left: Tensor, right: Tensor) -> Union:
    """The entries of two aligned tensors; those of COO tensors are coalesced."""
    (left_keys, left_values), (right_keys, right_values) = entries_of(left), entries_of(right)
    if have_same_indices(left, right):
        return Union(left_keys, left_values, right_values)
    both = coordinates.merged(left_keys, right_keys)
    keys = left_keys.new_empty(both.size)
    keys.index_copy_(0, both.left, left_keys).index_copy_(0, both.right, right_keys)
    return Union(
        keys, _spread(left_values, both.left, both.size), _spread(right_values, both.right, both.size)
    )


def _spread(values: Tensor, places: Tensor, size: int) -> Tensor:
    return values.new_zeros((size, *values.shape[1:])).index_copy(0, places, values)


def _counts(x: Tensor) -> tuple[int, int]:
    """How many majors and minors a compressed tensor has."""
    rows, columns = matrix_sizes(x)
    height, width = blocksize_of(x) or (1, 1)
    counts = rows // height, columns // width
    return counts if format_of(x).by_rows else counts[::-1]
