"""Selects elements, slices and rows of sparse tensors.

A selection keeps the layout while a dim of the indices is left, and is dense without one. A row or column of a compressed matrix is in COO.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtype import bool_, int32, int64, uint8
from ...core.layout import sparse_coo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor, wrap_dim
from ..parts import alias, is_plain, values_of
from . import coordinates
from .compressed import batch_dim_of, compressed, compressed_parts, format_of
from .compression import Compressed
from .conversion import as_coo, to_dense
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .rules import SPARSE
from .shape import permuted, reshape
from .through_coo import sparse_dims_of, through_coo

rule = SPARSE.rule
arange, as_tensor, broadcast_tensors, cat, empty, searchsorted, stack = (
    FUNCTIONS[name]
    for name in ("arange", "as_tensor", "broadcast_tensors", "cat", "empty", "searchsorted", "stack")
)


# ---- One position of a dim -------------------------------------------------------------------------------------------


@rule("select")
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    dim = wrap_dim(dim, input.dim())
    size, given = input.shape[dim], operator.index(index)
    if not -size <= given < size:
        raise IndexError(
            f"select(): index {given} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    return _select(input, dim, given % size)


def _select(input: Tensor, dim: int, index: int) -> Tensor:
    if input.layout is sparse_coo:
        return _select_coo(input, dim, index)
    batch_dim, first_dense = batch_dim_of(input), sparse_dims_of(input)
    shape = (*input.shape[:dim], *input.shape[dim + 1 :])
    outer, inner, values = compressed_parts(input)
    if dim < batch_dim:
        parts = (part.select(dim, index).contiguous() for part in (outer, inner, values))
        return compressed(Compressed(*parts), shape, input.layout)
    if dim >= first_dense:
        values = values.select(dim - input.dim(), index).contiguous()
        return compressed(Compressed(outer, inner, values), shape, input.layout)
    form = format_of(input)
    if batch_dim or form.blocks or dim != (0 if form.by_rows else 1):
        return _select_coo(as_coo(input), dim, index, keeps_order=True)
    first, last = outer[index : index + 2].tolist()
    return coo(inner[first:last].to(int64).unsqueeze(0), values[first:last], shape, True)


def _select_coo(input: Tensor, dim: int, index: int, keeps_order: bool = False) -> Tensor:
    """keeps_order: whether the result of a coalesced tensor says that it is coalesced. PyTorch's does not in COO."""
    indices, values, sparse_dim = indices_of(input), values_of(input), sparse_dim_of(input)
    shape = (*input.shape[:dim], *input.shape[dim + 1 :])
    if dim >= sparse_dim:
        return coo(
            indices, values.select(dim - sparse_dim + 1, index).contiguous(), shape, indices.shape[1] < 2
        )
    kept = (indices[dim] == index).nonzero().view(-1)
    values = values.index_select(0, kept)
    if sparse_dim == 1:
        return values.any(0) if values.dtype is bool_ else values.sum(0, dtype=values.dtype)
    others = cat((indices[:dim], indices[dim + 1 :])).index_select(1, kept)
    return coo(others, values, shape, len(kept) < 2 or keeps_order and is_coalesced(input))


@rule("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(input, dim, index) for index in range(input.shape[wrap_dim(dim, input.dim())]))


@rule("__iter__")
def iterate(self: Tensor) -> Any:
    if not self.dim():
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


@rule("item")
def item(self: Tensor) -> Any:
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return to_dense(self).item()


# ---- Ranges ------------------------------------------------------------------------------------------------------------


@through_coo
def sliced(input: Tensor, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """`length` positions of a dim from `start` on, `step` apart. Entries keep their order."""
    indices, values, sparse_dim = indices_of(input), values_of(input), sparse_dim_of(input)
    shape = (*input.shape[:dim], length, *input.shape[dim + 1 :])
    stop = start + length * step
    if dim >= sparse_dim:
        window = (slice(None),) * (dim - sparse_dim + 1) + (slice(start, stop, step),)
        return coo(indices, values[window].contiguous(), shape, is_coalesced(input))
    offset = indices[dim] - start
    inside = (offset >= 0) & (indices[dim] < stop)
    kept = (inside if step == 1 else inside & (offset % step == 0)).nonzero().view(-1)
    indices = indices.index_select(1, kept)
    indices[dim] = (indices[dim] - start) // step
    return coo(indices, values.index_select(0, kept), shape, is_coalesced(input) or len(kept) < 2)


@rule("narrow")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    dim = wrap_dim(dim, input.dim())
    size, start = input.shape[dim], operator.index(start)
    if not -size <= start <= size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    return _narrowed(input, dim, start, length)


@rule("narrow_copy")
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    if not 0 <= dim < input.dim():
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {input.dim()}.")
    return _narrowed(input, dim, operator.index(start), length)


def _narrowed(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    size = input.shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not 0 <= start <= size - length:
        raise RuntimeError(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size})."
        )
    return sliced(input, dim, start, length)


def _splitting(name: str) -> None:
    """The rule of a function that splits a dim. The function itself says how, on a tensor without memory."""
    function = FUNCTIONS[name]

    def split(tensor: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        whole = empty(tensor.shape, device="meta")
        return tuple(_piece(tensor, whole, piece) for piece in function(whole, *args, **kwargs))

    rule(name)(split)


def _piece(tensor: Tensor, whole: Tensor, piece: Tensor) -> Tensor:
    for dim, size in enumerate(piece.shape):
        if size != tensor.shape[dim]:
            return sliced(tensor, dim, piece.storage_offset() // whole.stride(dim), size)
    return alias(tensor)


for _name in (
    "split split_with_sizes chunk unsafe_split unsafe_split_with_sizes unsafe_chunk tensor_split hsplit vsplit dsplit"
).split():
    _splitting(_name)


# ---- Any positions -----------------------------------------------------------------------------------------------------


@rule("index_select")
@through_coo
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    dim = wrap_dim(dim, input.dim())
    if index.dim() != 1 or not is_plain(index) or index.dtype not in (int64, int32):
        raise IndexError("index_select() argument index must be 1-D strided (non-sparse) long-tensor.")
    size = input.shape[dim]
    index = _in_range(index.to(int64), size, "index_select(): index", input.shape, dim)
    shape = (*input.shape[:dim], len(index), *input.shape[dim + 1 :])
    indices, values, sparse_dim = indices_of(input), values_of(input), sparse_dim_of(input)
    if dim >= sparse_dim:
        return coo(indices, values.index_select(dim - sparse_dim + 1, index), shape, indices.shape[1] < 2)
    chosen, position = _entries_at(indices[dim], index)
    indices = indices.index_select(1, chosen)
    indices[dim] = position
    return coo(indices, values.index_select(0, chosen), shape, len(chosen) < 2)


def _in_range(index: Tensor, size: int, what: str, shape: Sequence[int], dim: int) -> Tensor:
    """The index without negative positions. Raises: IndexError if a position is out of range."""
    if index.numel():
        low, high = int(index.amin()), int(index.amax())
        if low < -size or high >= size:
            raise IndexError(
                f"{what} contains {high if high >= size else low} that is out of range for tensor of size {list(shape)} "
                f"at dimension {dim}"
            )
        if low < 0:
            return index.where(index >= 0, index + size)
    return index


def _entries_at(own: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The entries whose index is one of the wanted, and for each the position of this wanted one.

    own: the index of each entry in one dim. Entries of the first wanted position come first.
    """
    order = coordinates.stable_order(own)
    if order is not None:
        own = own.index_select(0, order)
    first = searchsorted(own, wanted)
    count = searchsorted(own, wanted, right=True) - first
    position = arange(len(wanted), device=own.device).repeat_interleave(count)
    shift = first - (count.cumsum(0) - count)
    chosen = arange(len(position), device=own.device) + shift.index_select(0, position)
    return chosen if order is None else order.index_select(0, chosen), position


@rule("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements under the mask, in a sparse vector."""
    if not is_plain(mask):
        mask = to_dense(as_coo(mask))
    return getitem(input, mask.expand(input.shape))


# ---- Brackets ------------------------------------------------------------------------------------------------------------


@rule("__getitem__")
def getitem(self: Tensor, index: Any) -> Tensor:
    result, dim = self, 0
    placed: list[tuple[int, Tensor]] = []  # tensors of positions, and the dims that they select from
    for item in _items(index, self.dim()):
        if item is None:
            result, dim = FUNCTIONS["unsqueeze"](result, dim), dim + 1
        elif isinstance(item, slice):
            start, stop, step = item.indices(result.shape[dim])
            if step < 1:
                raise ValueError("step must be greater than zero")
            length = max(0, -((start - stop) // step))
            if length != result.shape[dim]:
                result = (
                    result[(slice(None),) * dim + (item,)]
                    if is_plain(result)
                    else sliced(result, dim, start, length, step)
                )
            dim += 1
        elif isinstance(item, Tensor):
            placed.append((dim, item))
            dim += 1
        else:
            _check_position(item, dim, result.shape[dim])
            result = FUNCTIONS["select"](result, dim, item)
    if placed:
        return _at(result, placed)
    return alias(self) if result is self else result


def _check_position(item: int, dim: int, size: int) -> None:
    if not -size <= item < size:
        raise IndexError(f"index {item} is out of bounds for dimension {dim} with size {size}")


def _items(index: Any, ndim: int) -> list[Any]:
    """Return one item for each dim and each new dim: None, an int, a slice, or a tensor of positions."""
    items: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is ... or isinstance(item, slice):
            items.append(item)
        elif isinstance(item, Tensor) or isinstance(item, (list, np.ndarray)):
            items += _positions(as_tensor(item))
        elif isinstance(item, bool) or not hasattr(item, "__index__"):
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                f"{type(item).__name__})"
            )
        else:
            items.append(operator.index(item))
    named = sum(item is not None and item is not ... for item in items)
    if named > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    at = next((place for place, item in enumerate(items) if item is ...), len(items))
    rest = [item for item in items[at:] if item is not ...]
    return [*items[:at], *[slice(None)] * (ndim - named), *rest]


def _positions(item: Tensor) -> list[Any]:
    """Return a mask as the positions in each of its dims; a number as an int."""
    if not is_plain(item):
        item = to_dense(as_coo(item))
    if item.dtype in (bool_, uint8):
        return list(item.nonzero().unbind(1))
    if item.is_floating_point() or item.is_complex():
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return [int(item)] if item.dim() == 0 else [item.to(int64)]


def _at(result: Tensor, placed: list[tuple[int, Tensor]]) -> Tensor:
    """The elements at positions in one dim or several dims. The new dims stand where those stood, in front if they are not neighbours."""
    dims = [dim for dim, _ in placed]
    if is_plain(result):
        items: list[Any] = [slice(None)] * result.dim()
        for dim, item in placed:
            items[dim] = item
        return result[tuple(items)]
    if dims[-1] >= sparse_dims_of(result):
        raise SPARSE.missing("__getitem__")
    if dims != list(range(dims[0], dims[-1] + 1)):
        order = (*dims, *(dim for dim in range(result.dim()) if dim not in dims))
        result, dims = permuted(as_coo(result), order), list(range(len(dims)))
    return _at_neighbours(result, dims[0], [item for _, item in placed])


@through_coo
def _at_neighbours(input: Tensor, first: int, positions: list[Tensor]) -> Tensor:
    positions = list(broadcast_tensors(*positions))
    last = first + len(positions)
    sizes = input.shape[first:last]
    positions = [
        _in_range(each, size, "index", input.shape, first + dim)
        for dim, (each, size) in enumerate(zip(positions, sizes))
    ]
    before, behind = input.shape[:first], input.shape[last:]
    merged = reshape(input, (*before, sizes.numel(), *behind)) if len(sizes) > 1 else input
    keys = coordinates.keys_of(stack([each.flatten() for each in positions]), sizes)
    return reshape(index_select(merged, first, keys), (*before, *positions[0].shape, *behind))


@rule("__setitem__")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    raise TypeError("Cannot assign to a sparse tensor")


# ---- Diagonals -----------------------------------------------------------------------------------------------------------


@rule("diagonal")
@through_coo
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    shape = empty(1, device="meta").expand(input.shape).diagonal(offset, dim1, dim2).shape
    first, second = wrap_dim(dim1, input.dim()), wrap_dim(dim2, input.dim())
    if sparse_dim_of(input) != input.dim():
        raise SPARSE.missing("diagonal")
    indices = indices_of(input)
    kept = (indices[first] + offset == indices[second]).nonzero().view(-1)
    others = [indices[dim] for dim in range(input.dim()) if dim not in (first, second)]
    places = indices[first] if offset >= 0 else indices[second]
    found = stack([*others, places]).index_select(1, kept)
    values = values_of(input).index_select(0, kept)
    return coo(found, values, shape, len(kept) < 2)


def _triangle(name: str, compare: Callable) -> None:
    @rule(name)
    @through_coo
    def triangle(input: Tensor, diagonal: int = 0) -> Tensor:
        if sparse_dim_of(input) != input.dim() or input.dim() < 2:
            raise SPARSE.missing(name)
        indices = indices_of(input)
        kept = compare(indices[-1] - indices[-2], diagonal).nonzero().view(-1)
        values = values_of(input).index_select(0, kept)
        return coo(indices.index_select(1, kept), values, input.shape, is_coalesced(input) or len(kept) < 2)


_triangle("tril", operator.le)
_triangle("triu", operator.ge)
