"""`cat` and `stack` of sparse tensors. The entries of the tensors follow one another."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...core import checking
from ...core.promotion import promote_types
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor, wrap_dim
from ..parts import is_plain, values_of
from .conversion import as_coo
from .coo import coo, indices_of, sparse_dim_of
from .rules import SPARSE
from .shape import unsqueeze
from .through_coo import in_layout_of

rule = SPARSE.rule
_cat, empty = FUNCTIONS["cat"], FUNCTIONS["empty"]


@rule("cat")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    template = _first_sparse(checking.tensors(tensors, "cat", "tensors", 1))
    parts = [as_coo(each) for each in tensors]
    shape = _cat([empty(1, device="meta").expand(each.shape) for each in parts], dim).shape
    sparse_dim = sparse_dim_of(parts[0])
    for position, each in enumerate(parts):
        if sparse_dim_of(each) != sparse_dim:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim: {sparse_dim}, but tensor at position {position} has "
                f"{sparse_dim_of(each)}"
            )
    dim = wrap_dim(dim, len(shape))
    dtype = functools.reduce(promote_types, [each.dtype for each in parts])
    values = [values_of(each).to(dtype) for each in parts]
    indices = [indices_of(each) for each in parts]
    starts = _starts([each.shape[dim] for each in parts])
    if dim < sparse_dim:
        indices = [_shifted(each, dim, start) for each, start in zip(indices, starts)]
    else:
        within = dim - sparse_dim + 1
        values = [_padded(each, within, start, shape[dim]) for each, start in zip(values, starts)]
    joined = _cat(indices, 1)
    return in_layout_of(coo(joined, _cat(values), shape, joined.shape[1] < 2), template)


def _first_sparse(tensors: Sequence[Any]) -> Tensor:
    """The first tensor. Raises: RuntimeError if one of them is dense."""
    for position, each in enumerate(tensors):
        if is_plain(each):
            if position == 0:
                raise RuntimeError(
                    "Concatenating dense tensors, but a sparse tensor was found: write x.to_dense()"
                )
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {position}."
            )
    return tensors[0]


def _starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _shifted(indices: Tensor, dim: int, start: int) -> Tensor:
    if not start:
        return indices
    indices = indices.clone()
    indices[dim] += start
    return indices


def _padded(values: Tensor, dim: int, start: int, size: int) -> Tensor:
    """The values in a larger dim, from `start` on."""
    shape = (*values.shape[:dim], size, *values.shape[dim + 1 :])
    whole = values.new_zeros(shape)
    whole.narrow(dim, start, values.shape[dim]).copy_(values)
    return whole


@rule("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    template = _first_sparse(checking.tensors(tensors, "stack", "tensors", 1))
    dim = wrap_dim(dim, template.dim() + 1)
    for position, each in enumerate(tensors):
        if each.shape != template.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(template.shape)} at entry 0 and "
                f"{list(each.shape)} at entry {position}"
            )
    joined = cat([unsqueeze(as_coo(each), dim) for each in tensors], dim)
    return in_layout_of(joined, template)
