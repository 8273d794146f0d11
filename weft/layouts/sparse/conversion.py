"""Converts between dense and sparse tensors, and between the sparse layouts."""

from __future__ import annotations

from typing import Any

from ...core.dtype import int64
from ...core.layout import Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ..parts import is_plain, values_of
from . import compression, coordinates
from .compressed import (
    FORMATS,
    TITLES,
    batch_dim_of,
    blocksize_of,
    compressed,
    compressed_parts,
    format_of,
    matrix_sizes,
)
from .compression import Compressed
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .node_names import named
from .rules import SPARSE

rule = SPARSE.rule

# ---- Dense ---------------------------------------------------------------------------------------------------------


@rule("to_dense", "_to_dense")
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense: write x.to_dense().to(dtype)")
    return _to_dense(self, masked_grad)


def _from_dense_cotangent(ct: Tensor, out: Any, self: Tensor, masked_grad: bool | None) -> Tensor:
    """The elements of the cotangent where the tensor has entries, one for each element; all with masked_grad=False."""
    if masked_grad is False:
        return ct
    return sparse_mask(ct, coalesce(self) if self.layout is sparse_coo else self)


@custom_vjp(_from_dense_cotangent, inputs=1)
def _to_dense(self: Tensor, masked_grad: bool | None) -> Tensor:
    if self.layout is sparse_coo:
        return coordinates.to_dense(indices_of(self), values_of(self), self.shape[: sparse_dim_of(self)])
    form = format_of(self)
    return compression.to_dense(compressed_parts(self), matrix_sizes(self), form.by_rows, blocksize_of(self))


def _from_dense(self: Tensor, layout: Layout, blocksize: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    if layout is sparse_coo:
        indices, values = coordinates.from_dense(self, sparse_dim)
        return coo(indices, values, self.shape, True)
    batch_dim = self.dim() - 2 - dense_dim
    parts = compression.from_dense(self, batch_dim, FORMATS[layout].by_rows, blocksize)
    return compressed(parts, self.shape, layout)


# ---- Coordinates -------------------------------------------------------------------------------------------------------


@rule("coalesce")
def coalesce(self: Tensor) -> Tensor:
    if self.layout is not sparse_coo:
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {TITLES[self.layout]}")
    return self if is_coalesced(self) else _coalesced(self)


# The tensor stays the same, so the cotangent does.
@custom_vjp(lambda ct, out, self: ct)
def _coalesced(self: Tensor) -> Tensor:
    sizes = self.shape[: sparse_dim_of(self)]
    return coo(*coordinates.coalesced(indices_of(self), values_of(self), sizes), self.shape, True)


def as_coo(self: Tensor) -> Tensor:
    """A sparse tensor of any layout in COO; one that was compressed is coalesced."""
    return self if self.layout is sparse_coo else coalesce(_entries_in_order(self))


def _entries_in_order(self: Tensor) -> Tensor:
    """Return a sparse tensor in COO, with its entries in order. As in PyTorch, only CSR's count as coalesced."""
    if self.layout is sparse_coo:
        return self
    form = format_of(self)
    indices, values = compression.to_coordinates(compressed_parts(self), form.by_rows, blocksize_of(self))
    return coo(indices, values, self.shape, form.by_rows and not form.blocks or indices.shape[1] < 2)


# ---- Compressed layouts ---------------------------------------------------------------------------------------------


def as_compressed(self: Tensor, layout: Layout, blocksize: tuple[int, int] | None = None) -> Tensor:
    """Convert a sparse tensor of any layout to a compressed one."""
    own = FORMATS.get(self.layout)
    wanted = FORMATS[layout]
    if own is None:
        flat = _compressed_coo(coalesce(self), sparse_csr if wanted.by_rows else sparse_csc)
        return as_compressed(flat, layout, blocksize)
    if self.layout is layout and (not wanted.blocks or blocksize_of(self) == blocksize):
        return self
    parts, sizes = compressed_parts(self), matrix_sizes(self)
    if own.blocks == wanted.blocks and blocksize_of(self) == blocksize:
        height, width = blocksize or (1, 1)
        minors = sizes[1] // width if own.by_rows else sizes[0] // height
        return compressed(compression.swapped(parts, minors), self.shape, layout)
    if own.blocks:
        return as_compressed(as_coo(self), layout, blocksize)
    flat = as_compressed(self, sparse_csr if wanted.by_rows else sparse_csc)
    assert blocksize is not None
    parts = compression.blocked(
        compressed_parts(flat), sizes[1] if wanted.by_rows else sizes[0], blocksize, wanted.by_rows
    )
    return compressed(parts, self.shape, layout)


def _compressed_coo(self: Tensor, layout: Layout) -> Tensor:
    indices, values = indices_of(self), values_of(self)
    sparse_dim = sparse_dim_of(self)
    by_rows = FORMATS[layout].by_rows
    if sparse_dim == 2:
        return compressed(
            compression.of_coordinates(indices, values, self.shape[:2], by_rows), self.shape, layout
        )
    batch, (rows, columns) = self.shape[: sparse_dim - 2], self.shape[sparse_dim - 2 : sparse_dim]
    keys = coordinates.keys_of(indices, self.shape[:sparse_dim])
    csr = compressed(compression.of_keys(keys, values, batch, rows, columns, int64), self.shape, sparse_csr)
    return csr if by_rows else as_compressed(csr, sparse_csc)


# ---- The public methods -----------------------------------------------------------------------------------------------


@named
def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Layout | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The tensor in a sparse layout, COO by default; elements of a dense tensor that are zero are left out.

    sparse_dim: of COO, how many dims are sparse; the others are dims of each value.
    blocksize: of BSR and BSC, the rows and columns of a block.
    dense_dim: how many of the last dims are dims of each value.

    >>> import weft as torch
    >>> torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([2., 3.]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    wanted = sparse_coo if layout is None else layout
    if wanted is strided:
        if blocksize is not None:
            raise RuntimeError("to_sparse: a conversion to torch.strided takes no blocksize")
        return self if is_plain(self) else self.to_dense()
    if sparse_dim is not None and (layout is not None or blocksize is not None or dense_dim is not None):
        raise RuntimeError("to_sparse: sparse_dim goes with no other argument")
    blocksize = _checked_blocksize(wanted, blocksize)
    if not is_plain(self):
        return _between(self, wanted, blocksize, sparse_dim)
    ndim = self.dim()
    if wanted is sparse_coo:
        count = ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim
        if not 0 <= count <= ndim or ndim and not count:
            raise IndexError(f"to_sparse: sparse_dim must be in [1, {ndim}], but got {count}")
        return _from_dense(self, wanted, None, count, 0)
    dense_dim = dense_dim or 0
    if ndim - dense_dim < 2:
        raise RuntimeError(
            f"to_sparse: a compressed layout needs two sparse dims, but the tensor has {ndim} dims, {dense_dim} of them dense"
        )
    return _from_dense(self, wanted, blocksize, 2, dense_dim)


def _checked_blocksize(layout: Layout, blocksize: Any) -> tuple[int, int] | None:
    blocks = layout is not sparse_coo and FORMATS[layout].blocks
    if blocksize is None:
        if blocks:
            raise RuntimeError(f"to_sparse for {TITLES[layout]} layout requires blocksize, but none is given")
        return None
    if not blocks:
        raise RuntimeError(f"to_sparse for {layout} does not take a blocksize, but got {blocksize}")
    if type(blocksize) is int:  # one size for the rows and the columns
        blocksize = (blocksize, blocksize)
    if len(blocksize) != 2 or min(blocksize) <= 0:
        raise RuntimeError(f"blocksize must be two positive ints, but got {blocksize}")
    return blocksize[0], blocksize[1]


def _between(
    self: Tensor, wanted: Layout, blocksize: tuple[int, int] | None, sparse_dim: int | None
) -> Tensor:
    if wanted is not sparse_coo:
        return as_compressed(self, wanted, blocksize)
    result = _entries_in_order(self)
    if sparse_dim is not None and sparse_dim != sparse_dim_of(result):
        raise RuntimeError(
            f"to_sparse: conversion from {self.layout} with sparse_dim {sparse_dim_of(result)} to sparse_dim {sparse_dim}"
        )
    return result


@named
def to_sparse_coo(self: Tensor) -> Tensor:
    """Return the tensor in COO."""
    return to_sparse(self)


@named
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the tensor in CSR: for each row, the columns and values of its elements."""
    return to_sparse(self, layout=sparse_csr, dense_dim=dense_dim)


@named
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the tensor in CSC: for each column, the rows and values of its elements."""
    return to_sparse(self, layout=sparse_csc, dense_dim=dense_dim)


@named
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return the tensor in BSR: for each row of blocks, the columns and values of its blocks."""
    return to_sparse(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@named
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return the tensor in BSC: for each column of blocks, the rows and values of its blocks."""
    return to_sparse(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


for _function in (to_sparse, to_sparse_coo, to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc):
    rule(_function.__name__)(_function)


# ---- Masks ------------------------------------------------------------------------------------------------------------


@rule("sparse_mask")
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of `self` where `mask` has entries; the structure is that of the mask."""
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if mask.layout is not sparse_coo:
        return _compressed_mask(self, mask)
    indices, sizes = indices_of(mask), mask.shape[: sparse_dim_of(mask)]
    if is_plain(self):
        return coo(indices, coordinates.taken(self, indices, sizes), self.shape, is_coalesced(mask))
    own = coalesce(as_coo(self))
    keys, wanted = coordinates.keys_of(indices_of(own), sizes), coordinates.keys_of(indices, sizes)
    places, there = coordinates.lookup(keys, wanted)
    values = values_of(own)
    if not len(keys):
        found = values.new_zeros((len(wanted), *values.shape[1:]))
    else:
        there = there.view(-1, *[1] * (values.dim() - 1))
        found = values.index_select(0, places).where(there, values.new_zeros(()))
    return coo(indices, found, self.shape, is_coalesced(mask))


def _compressed_mask(self: Tensor, mask: Tensor) -> Tensor:
    dense = self if is_plain(self) else to_dense(self)
    outer, inner, values = compressed_parts(mask)
    form, blocks = format_of(mask), blocksize_of(mask)
    ones = Compressed(outer, inner, values.new_ones(values.shape))
    indices, _ = compression.to_coordinates(ones, form.by_rows, blocks)
    sizes = mask.shape[: batch_dim_of(mask) + 2]
    taken = coordinates.taken(dense, indices, sizes)
    return compressed(Compressed(outer, inner, taken.view(values.shape)), self.shape, mask.layout)
