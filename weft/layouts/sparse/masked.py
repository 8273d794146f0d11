"""Defines the functions of `torch.masked` for sparse inputs and sparse masks.

With a mask, a reduction of a sparse tensor takes the elements that the mask selects. Of those, elements without an entry are zeros. The result
has entries where the mask selects an element. Without a mask, and in functions that PyTorch has for dense tensors only, all elements take
part, as those of the dense tensor do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import bool_, int64
from ...core.layout import sparse_coo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.reduce import dims_of
from ...ops.reductions.extrema import highest, lowest
from ..parts import is_plain, values_of, with_values
from . import coordinates
from .conversion import as_coo, coalesce, sparse_mask, to_dense, to_sparse
from .coo import coo, indices_of, sparse_dim_of
from .rules import SPARSE
from .through_coo import in_layout_of

rule = SPARSE.rule

# ---- Masks -------------------------------------------------------------------------------------------------------------


def _mask_for(input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask as a coalesced COO tensor of bools, with the shape of the input and as many sparse dims."""
    if mask.dim() > input.dim():
        raise IndexError(
            f"_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): {list(mask.shape)} for "
            f"{list(input.shape)}"
        )
    if is_plain(mask) or mask.shape != input.shape or sparse_dim_of(as_coo(mask)) != sparse_dim_of(input):
        dense = mask if is_plain(mask) else to_dense(mask)
        whole = dense.to(bool_).expand(input.shape)
        return to_sparse(whole, sparse_dim_of(input)) if input.dim() else to_sparse(whole)
    return coalesce(as_coo(mask).to(bool_))


def _selected(input: Tensor, mask: Tensor, identity: Any) -> Tensor:
    """The elements of a COO tensor that the mask selects, each as an entry. In the dense dims `identity` stands for the others."""
    mask = _mask_for(input, mask)
    flags = values_of(mask)
    chosen = (flags.flatten(1).any(1) if flags.dim() > 1 else flags).nonzero().view(-1)
    indices, flags = indices_of(mask).index_select(1, chosen), flags.index_select(0, chosen)
    found = sparse_mask(input, coo(indices, flags, input.shape, True))
    if flags.dim() == 1:
        return found
    values = values_of(found)
    return coo(indices, values.where(flags, values.new_full((), identity)), input.shape, True)


# ---- Reductions ----------------------------------------------------------------------------------------------------------


def _define(
    name: str, identity: Callable[[Any], Any], result_type: Callable[[Any], Any] = lambda dtype: dtype
) -> None:
    """The rule of a reduction. identity: what stands for masked-out elements of dense dims, and is the result for no elements."""
    on_dense = _on_dense(name)

    def reduction(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if is_plain(input) or mask is None and name != "sum":
            return on_dense(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
        neutral = identity(input.dtype)
        entries = coalesce(as_coo(input))
        if mask is not None:
            entries = _selected(entries, mask, neutral)
        entries = with_values(entries, values_of(entries).to(dtype or result_type(input.dtype)))
        dims = dims_of(dim, input.dim(), name)
        if input.layout is sparse_coo and all(each in dims for each in range(sparse_dim_of(entries))):
            return _over_all_indices(entries, name, dims, bool(keepdim), neutral)
        result = _over_indices(entries, name, dims)
        return in_layout_of(result, input) if keepdim else FUNCTIONS["squeeze"](result, dims)

    rule(f"masked.{name}")(reduction)


def _over_all_indices(x: Tensor, name: str, dims: Sequence[int], keepdim: bool, identity: Any) -> Tensor:
    """Return a reduction over all sparse dims, and some dense ones: a COO tensor without entries for zeros."""
    values = _over_dense_dims(x, name, dims)
    if len(values):
        values = FUNCTIONS[name](values, 0, True)
    else:
        values = values.new_full((1, *values.shape[1:]), identity)
    sizes = enumerate(x.shape)
    shape = tuple(1 if dim in dims else size for dim, size in sizes if keepdim or dim not in dims)
    return to_sparse(values.view(shape))


def _over_indices(x: Tensor, name: str, dims: Sequence[int]) -> Tensor:
    """A reduction with an entry for each place where one was. The dims stay, with size 1."""
    values, indices = _over_dense_dims(x, name, dims), indices_of(x).clone()
    shape = [1 if dim in dims else size for dim, size in enumerate(x.shape)]
    sizes = shape[: len(indices)]
    for dim in dims:
        if dim < len(indices):
            indices[dim] = 0
    keys, groups = coordinates.keys_of(indices, sizes).unique(return_inverse=True)
    groups = groups.view(-1, *[1] * (values.dim() - 1)).expand(values.shape)
    whole = values.new_zeros((len(keys), *values.shape[1:]))
    values = whole.scatter_reduce(0, groups, values, name, include_self=False)
    return coo(coordinates.indices_of(keys, sizes), values, tuple(shape), len(keys) < 2)


def _over_dense_dims(x: Tensor, name: str, dims: Sequence[int]) -> Tensor:
    """The values, reduced along the dense dims among `dims`, which stay."""
    values, sparse_dim = values_of(x), sparse_dim_of(x)
    for dim in dims:
        if dim >= sparse_dim:
            values = FUNCTIONS[name](values, dim - sparse_dim + 1, True)
    return values


def _on_dense(name: str) -> Callable:
    """Return the function of `torch.masked`, with dense tensors in place of sparse ones."""
    function = FUNCTIONS[f"masked.{name}"]

    @functools.wraps(function)
    def on_dense(*args: Any, **kwargs: Any) -> Tensor:
        return function(*map(_dense, args), **{key: _dense(value) for key, value in kwargs.items()})

    return on_dense


def _dense(value: Any) -> Any:
    return to_dense(value) if isinstance(value, Tensor) and not is_plain(value) else value


_define("sum", lambda dtype: 0, lambda dtype: int64 if dtype.category < 2 else dtype)
_define("prod", lambda dtype: 1, lambda dtype: int64 if dtype.category < 2 else dtype)
_define("mean", lambda dtype: 0)
_define("amax", lowest)
_define("amin", highest)
for _name in (
    "argmax argmin cumprod cumsum log_softmax logaddexp logsumexp median norm normalize softmax softmin std var"
).split():
    rule(f"masked.{_name}")(_on_dense(_name))
