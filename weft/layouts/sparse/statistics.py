"""Means, norms, extrema, flags and counts of sparse tensors. Elements without an entry are zeros, and take part.

A reduction over all dims, or over all dims of the indices, is dense. Others are coalesced in COO; with `keepdim`, a compressed tensor
gives one in its layout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.arguments import integers
from ...core.dtype import LEGACY_NAMES
from ...core.layout import sparse_coo, strided
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor, wrap_dim
from ..parts import values_of, with_values
from . import coordinates
from .conversion import as_coo, coalesce, to_dense, to_sparse
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .reductions import sum
from .rules import SPARSE
from .through_coo import in_layout_of

rule = SPARSE.rule


def _dims(input: Tensor, dim: Any, name: str) -> list[int] | None:
    """The dims to reduce, sorted; None for all of them."""
    if dim is None:
        return None
    dims = sorted(wrap_dim(each, input.dim()) for each in integers((dim,), name, "dim"))
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {dims} appears multiple times in the list of dims")
    return dims


def _kept(result: Tensor, input: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    """The result of a reduction, with the reduced dims of size 1 if they are kept."""
    if not keepdim:
        return result
    for dim in dims:
        result = FUNCTIONS["unsqueeze"](result, dim)
    if input.layout is sparse_coo:
        return result
    return in_layout_of(result if result.is_sparse else to_sparse(result), input)


def _entries(input: Tensor) -> Tensor:
    """Return the tensor with one entry for each element."""
    return coalesce(input) if input.layout is sparse_coo else input


def _is_full(input: Tensor) -> bool:
    """Whether every element has an entry."""
    return values_of(input).numel() == input.numel()


def _over_indices(input: Tensor, dims: Sequence[int], values: Tensor, whole: Any, partial: Any) -> Tensor:
    """Reduce values, whose dense dims are reduced already, over the sparse dims.

    whole: reduces all entries. partial: reduces entries that agree in the other dims, and gives indices and values.
    """
    sparse_dim = sparse_dim_of(input)
    sizes = tuple(input.shape[:sparse_dim])
    reduced = [dim for dim in dims if dim < sparse_dim]
    if len(reduced) == sparse_dim:
        return whole(values)
    shape = tuple(size for dim, size in enumerate(input.shape) if dim not in dims)
    if not reduced and is_coalesced(input):
        return coo(indices_of(input), values, shape, True)
    indices, values = partial(indices_of(input), values, sizes, reduced)
    return coo(indices, values, shape, True)


# ---- Means -----------------------------------------------------------------------------------------------------------


@rule("mean")
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{LEGACY_NAMES[input.dtype]}"
        )
    dims = _dims(input, dim, "mean")
    count = input.numel() if dims is None else math.prod(input.shape[each] for each in dims)
    total = sum(input, dim, keepdim, dtype=dtype)
    return _mapped(total, lambda values: values / count)


def _mapped(result: Tensor, function: Any) -> Tensor:
    """Return a function that maps 0 to 0, of the elements of a dense or sparse tensor."""
    return (
        with_values(result, function(values_of(result))) if result.layout is not strided else function(result)
    )


# ---- Norms and products ------------------------------------------------------------------------------------------------


@rule("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return vector_norm(input, 2 if p in (None, "fro") else p, dim, keepdim, dtype=dtype)


@rule("linalg.norm")
def linalg_norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    matrix = ord is not None and (
        A.dim() == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2
    )
    if matrix and ord != "fro":
        return FUNCTIONS["linalg.norm"](to_dense(A), ord, dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord in (None, "fro") else ord, dim, keepdim, dtype=dtype)


@rule("linalg.vector_norm")
def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Of all elements, or over dims. Zeros count where `ord` is negative, or 0 and over dims."""
    x = _entries(x)
    values = values_of(x) if dtype is None else values_of(x).to(dtype)
    dims = _dims(x, dim, "norm")
    if dims is None and not keepdim and (ord > 0 or _is_full(x)):
        return FUNCTIONS["linalg.vector_norm"](values.flatten(), ord)
    if ord <= 0:
        return FUNCTIONS["linalg.vector_norm"](to_dense(x), ord, dim, keepdim, dtype=dtype)
    sizes = with_values(x, values.abs() if ord == math.inf else values.abs() ** ord)
    dims = list(range(x.dim())) if dims is None else dims
    if ord == math.inf:
        return amax(sizes, dims, keepdim)
    return _mapped(sum(sizes, dims, keepdim), lambda total: total ** (1 / ord))


@rule("prod")
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dim is not None:
        return FUNCTIONS["prod"](to_dense(input), dim, keepdim, dtype=dtype)
    values = values_of(_entries(input)).prod(dtype=dtype)
    return values if _is_full(_entries(input)) else values * 0


# ---- Extrema ---------------------------------------------------------------------------------------------------------


def _extremum(name: str) -> Any:
    over_dims, of_two = getattr(Tensor, name), {"amax": "maximum", "amin": "minimum"}[name]

    @rule(name)
    def extremum(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        dims = _dims(input, dim, name) or list(range(input.dim()))
        if len(dims) == input.dim():
            return _kept(_of_all(_entries(input)), input, dims, keepdim)
        found = coalesce(as_coo(input))
        sparse_dim = sparse_dim_of(found)
        values = values_of(found)
        dense = [each - sparse_dim + 1 for each in dims if each >= sparse_dim]
        values = over_dims(values, dense) if dense else values
        sizes = tuple(found.shape[:sparse_dim])

        def whole(values: Tensor) -> Tensor:
            return _with_zero(over_dims(values, 0), len(values) < math.prod(sizes))

        def partial(
            indices: Tensor, values: Tensor, sizes: tuple, reduced: Sequence[int]
        ) -> tuple[Tensor, Tensor]:
            return _by_groups(name, indices, values, sizes, reduced)

        return _kept(_over_indices(found, dims, values, whole, partial), input, dims, keepdim)

    def _of_all(input: Tensor) -> Tensor:
        values = values_of(input)
        if not input.numel():
            return over_dims(values)
        return _with_zero(over_dims(values), not _is_full(input)) if values.numel() else values.new_zeros(())

    def _with_zero(extreme: Tensor, has_zeros: bool) -> Tensor:
        return FUNCTIONS[of_two](extreme, extreme.new_zeros(())) if has_zeros else extreme

    return extremum


def _by_groups(
    name: str, indices: Tensor, values: Tensor, sizes: tuple, reduced: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Indices and extrema of the entries that agree in the dims that are not reduced. Elements without an entry count as 0."""
    kept = [dim for dim in range(len(sizes)) if dim not in reduced]
    keys = coordinates.keys_of(indices[kept], [sizes[dim] for dim in kept])
    if not len(keys):
        return indices[kept], values
    order = coordinates.stable_order(keys)
    if order is not None:
        keys, values = keys.index_select(0, order), values.index_select(0, order)
    groups = coordinates.runs(keys)
    count = len(groups.first)
    extreme = values.new_zeros((count, *values.shape[1:])).index_reduce(
        0, groups.number, values, name, include_self=False
    )
    members = groups.number.bincount(minlength=count).view(-1, *[1] * (values.dim() - 1))
    with_zero = extreme.clamp_min(0) if name == "amax" else extreme.clamp_max(0)
    found = coordinates.indices_of(keys.index_select(0, groups.first), [sizes[dim] for dim in kept])
    return found, extreme.where(members == math.prod(sizes[dim] for dim in reduced), with_zero)


amax, amin = _extremum("amax"), _extremum("amin")


def _extremum_or_two(name: str, of_all: Any, of_two: str) -> None:
    @rule(name)
    def extremum(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return FUNCTIONS[of_two](input, other)
        return of_all(input) if dim is None else FUNCTIONS[name](to_dense(input), dim, keepdim)


_extremum_or_two("max", amax, "maximum")
_extremum_or_two("min", amin, "minimum")


# ---- Flags and counts --------------------------------------------------------------------------------------------------


@rule("count_nonzero")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    input = _entries(input)
    return sum(with_values(input.detach(), values_of(input.detach()) != 0), dim)


@rule("any")
def any_(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _mapped(_counted(input, dim, keepdim), lambda count: count != 0)


@rule("all")
def all_(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    dims = _dims(input, dim, "all")
    size = input.numel() if dims is None else math.prod(input.shape[each] for each in dims)
    if not size:
        return FUNCTIONS["all"](to_dense(input), dim, keepdim)
    return _mapped(_counted(input, dim, keepdim), lambda count: count == size)


def _counted(input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    input = _entries(input.detach())
    if dim is None and keepdim:
        dim = tuple(range(input.dim()))
    return sum(with_values(input, values_of(input) != 0), dim, keepdim)


# ---- On the dense tensor ------------------------------------------------------------------------------------------------


def _on_dense(name: str) -> None:
    """The rule of a reduction whose result is dense, because most of its elements are not zero, or for which entries tell too little."""
    function = FUNCTIONS[name]

    def reduction(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(to_dense(input), *args, **kwargs)

    rule(name)(reduction)


for _name in "var std var_mean std_mean argmax argmin aminmax median nanmedian logsumexp".split():
    _on_dense(_name)
