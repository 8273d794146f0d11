"""Advanced indexing: tensors, lists and masks are indices, and the elements that they choose are copied."""

from __future__ import annotations

import operator
import warnings
from array import array as buffer
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from ...core.device import CPU
from ...core.dtype import bool_, int32, int64, uint8
from ...core.iteration import broadcast_shapes, broadcast_stride
from ...core.size import shape
from ...core.spec import Spec, contiguous_spec
from ...core.storage import foreign
from ...core.tensor import Tensor, empty, make
from ...core.warn import user_level
from ...families.array_op import to_device
from ...families.indexed import Gather, IndexMap, Scatter, vector_spec
from ...families.map import FILL
from ..creation.from_data import from_data
from .basic_indexing import basic_view, select_plan
from .masking import columns_of

ALL = slice(None)
_SIMPLE = frozenset((int, slice, Tensor, type(None), EllipsisType, bool))


def as_tuple(index: Any) -> tuple:
    """The items of an index. As in old NumPy, a short list counts as a tuple if it holds more than numbers."""
    if type(index) is tuple:
        return index
    if type(index) in _SIMPLE:
        return (index,)
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, Sequence) and len(index) < 32 and any(map(_is_item, index)):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in a future "
            "version; use x[tuple(seq)] instead of x[seq], or x[torch.tensor(seq)] for an index tensor",
            UserWarning,
            stacklevel=user_level(),
        )
        return tuple(index)
    return (index,)


def _is_item(value: Any) -> bool:
    if type(value) is int:
        return False
    return value is None or isinstance(value, (Tensor, np.ndarray, slice, EllipsisType, Sequence))


def parse_index(self: Tensor, index: tuple) -> tuple[Tensor, dict[int, Tensor]]:
    """The view that the numbers and slices give, and the index tensors and masks by the dim of this view where they begin."""
    items = [_item(item) for item in index]
    sizes = self.spec.shape
    named = sum(_dims_of(item) for item in items)
    if named > len(sizes):
        if not sizes and any(isinstance(item, slice) for item in items):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        if not sizes and len(index) == 1 and type(index[0]) is int:
            select_plan(self.spec)
        raise IndexError(
            f"too many indices for tensor of dimension {len(sizes)}\n"
            f"the shape is {list(sizes)}, and the indices are for {named} dimensions"
        )
    view_items, chosen = _assigned(self, items, len(sizes) - named)
    is_whole = chosen and all(item is ... or item == ALL for item in view_items)
    view = self if is_whole else basic_view(self, tuple(view_items))
    assert view is not None  # `_item` and `_assigned` leave no other items
    return view, chosen


def only_mask(chosen: dict[int, Tensor]) -> Tensor | None:
    """The mask, if it is the only index; else None."""
    if len(chosen) != 1:
        return None
    (index,) = chosen.values()
    return index if index.spec.dtype is bool_ else None


def _assigned(self: Tensor, items: list[Any], unnamed: int) -> tuple[list[Any], dict[int, Tensor]]:
    """The items of the view, and the index tensors by the dim of the view that they choose from."""
    sizes = self.spec.shape
    view_items: list[Any] = []
    chosen: dict[int, Tensor] = {}
    dim = new_dim = 0
    for item in items:
        if item is None or item is True or item is False:
            view_items.append(None)
            if item is not None:
                chosen[new_dim] = _from_bool(item, self)
            new_dim += 1
        elif item is ...:
            view_items.append(...)
            dim += unnamed
            new_dim += unnamed
            unnamed = 0  # a second ... names no dims
        elif isinstance(item, slice):
            is_all = item.indices(sizes[dim]) == (0, sizes[dim], 1)
            view_items.append(ALL if is_all else item)
            dim += 1
            new_dim += 1
        elif type(item) is int:
            view_items.append(item)
            dim += 1
        else:
            chosen[new_dim] = item
            count = _dims_of(item)
            view_items += [ALL] * count
            dim += count
            new_dim += count
    return view_items, chosen


def _dims_of(item: Any) -> int:
    """Return how many dims of the tensor an item names."""
    if isinstance(item, Tensor):
        return len(item.spec.shape) if item.spec.dtype is bool_ else 1
    return 0 if item is None or item is ... or item is True or item is False else 1


def _item(item: Any) -> Any:
    """An item as int, bool, slice, None, ... or a Tensor of int64, int32 or bool; 0-dim ones are int or bool.

    Raises: IndexError for anything else.
    """
    if type(item) in _SIMPLE:
        return _index_tensor(item) if type(item) is Tensor else item
    if type(item) is list and item and all(type(each) is int for each in item):
        return vector(item)
    if isinstance(item, np.bool_):
        return bool(item)
    if (
        isinstance(item, Sequence)
        or hasattr(item, "__array__")
        and not isinstance(item, (Tensor, np.generic))
    ):
        has_length = not isinstance(item, np.ndarray) or item.ndim > 0
        # An empty list has no elements that could tell its dtype.
        item = from_data(item, int64 if has_length and len(item) == 0 else None, None)
    if isinstance(item, Tensor):
        return _index_tensor(item)
    if hasattr(item, "__index__"):
        return operator.index(item)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__})"
    )


def vector(values: Sequence[int]) -> Tensor:
    """Like `torch.tensor(values)`, but faster, and only for ints, because most indices are lists of ints."""
    try:
        held = buffer("q", values)
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long long") from None
    address, count = held.buffer_info()  # `values` may be a list that another thread has changed by now
    return make(foreign(address, 8 * count, held, False), 0, vector_spec(count, int64, CPU))


def _index_tensor(item: Tensor) -> Any:
    if not item.spec.shape and item.spec.dtype.category == 1 and item.spec.dtype is not uint8:
        return int(item)
    item = checked_index(item)
    return item if item.spec.shape else bool(item)


def checked_index(item: Tensor) -> Tensor:
    """Return a tensor of int64, int32 or bool; uint8 counts as bool, with a warning.

    Raises: IndexError for other dtypes.
    """
    dtype = item.spec.dtype
    if dtype is uint8:
        if item.spec.shape:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=user_level(),
            )
        return item.to(bool_)
    if dtype is not int64 and dtype is not int32 and dtype is not bool_:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return item


def _from_bool(value: bool, like: Tensor) -> Tensor:
    """The positions that a single bool chooses in a dim of size 1."""
    result = empty(contiguous_spec((int(value),), int64, like.spec.device))
    return FILL.write(result, 0) if value else result


def as_positions(view: Tensor, chosen: dict[int, Tensor]) -> dict[int, Tensor]:
    """The index tensors. Each mask is replaced by the positions of the elements that it chooses, one tensor for each dim."""
    result = {}
    for dim, index in chosen.items():
        if index.spec.device is not view.spec.device:
            index = to_device(index, view.spec.device)
        if index.spec.dtype is not bool_:
            result[dim] = index
            continue
        check_mask(view.spec, dim, index.spec)
        for k, column in enumerate(columns_of(index)):
            result[dim + k] = column
    return result


def check_mask(spec: Spec, dim: int, mask: Spec) -> None:
    """Raises: IndexError unless the mask has the sizes of the dims from `dim` on."""
    for k, size in enumerate(mask.shape):
        if dim + k >= len(spec.shape):
            raise IndexError(
                f"too many indices for tensor of dimension {len(spec.shape)}\n"
                f"the shape is {list(spec.shape)}, and a mask of shape {list(mask.shape)} begins at dimension {dim}"
            )
        if size != spec.shape[dim + k]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {k} does not match the shape of the "
                f"indexed tensor {list(spec.shape)} at index {dim + k}"
            )


def at(spec: Spec, dims: tuple[int, ...], *indices: Spec) -> IndexMap:
    """How index tensors for `dims` read a tensor. Their common shape replaces these dims, or stands in front if others lie between.

    Raises: IndexError if they have no common shape, or choose from a dim without elements.
    """
    try:
        common = broadcast_shapes("", *(index.shape for index in indices))
    except RuntimeError:
        shapes = ", ".join(str(list(index.shape)) for index in indices)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    if spec.device.backend.has_memory and all(index.numel for index in indices):
        for dim in dims:
            if not spec.shape[dim]:
                raise IndexError(f"index is out of bounds for dimension {dim} with size 0")
    adjacent = dims == tuple(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if adjacent else 0
    rest = [dim for dim in range(len(spec.shape)) if dim not in dims]
    before, after = rest[:first], rest[first:]

    def assemble(values: Sequence[int], middle: Sequence[int]) -> tuple[int, ...]:
        return (*(values[dim] for dim in before), *middle, *(values[dim] for dim in after))

    none = (0,) * len(spec.shape)
    return IndexMap(
        shape(assemble(spec.shape, common)),
        assemble(spec.stride, (0,) * len(common)),
        tuple(assemble(none, broadcast_stride(index, common)) for index in indices),
        dims,
        tuple(spec.shape[dim] for dim in dims),
        tuple(spec.stride[dim] for dim in dims),
    )


INDEX = Gather("index", at, wrap=True, cpu_indices=True, in_memory_order=True)
PUT = Scatter(
    "index_put_", at, wrap=True, cpu_indices=True, once=False, deprecated="tensor[indices] = tensor"
)
