"""Sparse tensors that change their sizes in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.layout import sparse_coo
from ...core.recording import needs_recording, tape
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import assign, is_plain, parts_of
from .compressed import TITLES, batch_dim_of, blocksize_of, compressed, compressed_parts, format_of
from .compression import Compressed
from .coo import coo, is_coalesced, sparse_dim_of
from .creation import empty_sparse
from .rules import SPARSE

rule = SPARSE.rule
cat = FUNCTIONS["cat"]


# ---- Coordinates -------------------------------------------------------------------------------------------------------


@rule("sparse_resize_")
def sparse_resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Change the sizes. With entries, no size can shrink, and the numbers of sparse and dense dims stay; new elements are zero."""
    size = _checked(self, "sparse_resize_", size, sparse_dim, dense_dim)
    indices, values = parts_of(self)
    if not indices.shape[1]:
        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)
    check_growth(self, size, sparse_dim, dense_dim)
    if tuple(values.shape[1:]) != size[sparse_dim:]:
        grown = values.new_zeros((len(values), *size[sparse_dim:]))
        grown[tuple(slice(each) for each in values.shape)] = values
        values = grown
    assign(coo(indices, values, size, is_coalesced(self)), self)
    return self


def _checked(
    self: Tensor, name: str, size: Sequence[int], sparse_dim: int, dense_dim: int
) -> tuple[int, ...]:
    tape.check_write(self)
    if self.layout is not sparse_coo:
        raise NotImplementedError(f"{name} is not implemented for {self.layout} tensors: write resize_")
    if not isinstance(size, tuple | list):
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    return tuple(size)


def check_growth(self: Tensor, size: tuple[int, ...], sparse_dim: int, dense_dim: int) -> None:
    """Raises: RuntimeError if a size is less than that of the tensor, or if the numbers of sparse and dense dims are others."""
    own = sparse_dim_of(self)
    for kind, before, after in (("sparse", own, sparse_dim), ("dense", self.dim() - own, dense_dim)):
        if before != after:
            raise RuntimeError(
                f"changing the number of {kind} dimensions (from {before} to {after}) on a non-empty sparse tensor is not "
                "supported: call sparse_resize_and_clear_ first"
            )
    for kind, part in (("sparse", slice(own)), ("dense", slice(own, None))):
        old, new = list(self.shape[part]), list(size[part])
        if any(b < a for a, b in zip(old, new)):
            raise RuntimeError(
                f"shrinking the size of {kind} dimensions (from {old} to {new}) on a non-empty sparse tensor is not "
                "supported: call sparse_resize_and_clear_ first"
            )


@rule("sparse_resize_and_clear_")
def sparse_resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Drop all entries and change the sizes."""
    size = _checked(self, "sparse_resize_and_clear_", size, sparse_dim, dense_dim)
    assign(empty_sparse(size, sparse_coo, self.dtype, self.device, dense_dim), self)
    return self


# ---- All layouts ---------------------------------------------------------------------------------------------------------


@rule("resize_as_sparse_")
def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """Take the sizes of another tensor of the layout; a compressed tensor takes its indices, too, and keeps values as far as there is room."""
    if is_plain(self):
        raise RuntimeError(
            "resize_as_sparse_compressed_: self  expected sparse compressed tensor layout but got Strided: write resize_as_"
        )
    if self.layout is sparse_coo and (the_template.layout is sparse_coo or is_plain(the_template)):
        sparse_dim = the_template.sparse_dim()
        if the_template.shape == self.shape and sparse_dim == sparse_dim_of(self):
            return self
        return sparse_resize_(self, tuple(the_template.shape), sparse_dim, the_template.dense_dim())
    if is_plain(the_template):
        raise RuntimeError(
            "resize_as_sparse_compressed_: src  expected sparse compressed tensor layout but got Strided"
        )
    if self.layout is not the_template.layout:
        raise RuntimeError(
            "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got "
            f"{self.layout} and {the_template.layout}"
        )
    tape.check_write(self)
    *structure, values = parts_of(the_template)
    *indices, own = parts_of(self)
    if self.shape != the_template.shape or own.shape != values.shape:
        count = min(own.numel(), values.numel())
        resized = own.new_zeros(values.shape)
        resized.view(-1)[:count].copy_(own.reshape(-1)[:count])
        outer, inner = (
            part.to(index.dtype, copy=True) for part, index in zip(structure, indices, strict=True)
        )
        assign(compressed(Compressed(outer, inner, resized), the_template.shape, self.layout), self)
    return self


@rule("resize_as_")
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    if is_plain(input):
        return input.resize_(the_template.shape)
    return resize_as_sparse_(input, the_template)


@rule("resize_")
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the sizes: those of a COO tensor as `sparse_resize_` does."""
    sizes = tuple(size[0]) if len(size) == 1 and isinstance(size[0], tuple | list) else tuple(size)
    if needs_recording((self,)):
        raise RuntimeError("cannot resize variables that require grad")
    if self.layout is sparse_coo:
        sparse_dim = len(sizes) - (self.dim() - sparse_dim_of(self))
        return sparse_resize_(self, sizes, sparse_dim, len(sizes) - sparse_dim)
    _resize_compressed(self, sizes)
    return self


def _resize_compressed(self: Tensor, sizes: tuple[int, ...]) -> None:
    """New rows and columns are empty. Entries in rows of a CSR tensor, or in columns of a CSC tensor, that are cut off are dropped.

    Raises: RuntimeError if other dims change, or if the dim of the plain indices shrinks.
    """
    tape.check_write(self)
    first, by_rows = batch_dim_of(self), format_of(self).by_rows
    major, minor = (first, first + 1) if by_rows else (first + 1, first)
    others = [dim for dim in range(self.dim()) if dim not in (major, minor)]
    if len(sizes) != self.dim() or any(sizes[dim] != self.shape[dim] for dim in others):
        raise RuntimeError(
            f"torch.resize_: Only batched sparse {TITLES[self.layout][6:].upper()} matrices are supported, whose rows and columns "
            f"change, but got size {list(sizes)} for {list(self.shape)}"
        )
    if sizes[minor] < self.shape[minor]:
        raise RuntimeError(
            f"torch.resize_: Resizing {'columns' if by_rows else 'rows'} of sparse {TITLES[self.layout][6:].upper()} tensors "
            f"to a smaller value is not supported. They are {self.shape[minor]}, and {sizes[minor]} are wanted"
        )
    blocks = blocksize_of(self) or (1, 1)
    if sizes[first] % blocks[0] or sizes[first + 1] % blocks[1]:
        raise RuntimeError(f"resize_: {sizes[first : first + 2]} must be divisible by the blocksize {blocks}")
    outer, inner, values = compressed_parts(self)
    count = sizes[major] // blocks[not by_rows] + 1
    if count <= outer.shape[-1]:
        outer = outer[..., :count].contiguous()
        if first and bool((outer[..., -1] != inner.shape[-1]).any()):
            raise RuntimeError("resize_: matrices of a batch would lose different numbers of entries")
        if not first:
            inner, values = inner[: int(outer[-1])], values[: int(outer[-1])]
    else:
        outer = cat([outer, outer[..., -1:].expand(*outer.shape[:-1], count - outer.shape[-1])], -1)
    assign(compressed(Compressed(outer, inner, values), sizes, self.layout), self)
