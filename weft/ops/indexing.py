"""`tensor[...]`, reading and writing, and index_put.

Numbers and slices give views: metadata in, metadata out. Tensors, lists and masks give copies. As in PyTorch, a number
beside index tensors selects first; index tensors that stand apart put their common shape at the front.
"""

from __future__ import annotations

import operator
import warnings
from array import array as buffer
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from ..core.derivative import Derivative
from ..core.device import CPU
from ..core.dtype import LEGACY_NAMES, bool_, int32, int64, uint8
from ..core.grad_mode import mode
from ..core.iteration import broadcast_shapes, broadcast_stride
from ..core.op import PlanCache, check_inplace, needs_recording, public, record, tape
from ..core.size import Size, shape
from ..core.spec import Spec, contiguous_spec, spec
from ..core.storage import foreign
from ..core.tensor import Tensor, empty, make, view_of
from ..families.faces import is_operand
from ..families.indexed import (
    Access,
    Put,
    Take,
    add_elements,
    count_true,
    pack,
    plain,
    spread,
    unshared,
    vector_spec,
)
from ..families.map import COPY, FILL, NUMBERS
from ..families.view import View
from .copying import copy_values
from .filling import check_number, fill_, fill_number
from .masking import MASKED_FILL, MASKED_INDEX, MASKED_PUT, columns_of, scalar_view
from .values import from_data

_new = object.__new__


# ---- Numbers and slices: views -------------------------------------------------------------------------------------

# One item for each dim, or for a new one: int (select), (start, length, step) (slice), None (a new dim), ... (the dims
# that no item names).


def getitem(own: Spec, *items: Any) -> tuple[Spec, int]:
    """The view that items give, and how far it moves storage_offset."""
    sizes, strides = own.shape, own.stride
    named = sum(1 for item in items if item is not None and item is not ...)
    new_sizes: list[int] = []
    new_strides: list[int] = []
    dim = offset = 0
    for item in items if ... in items else (*items, ...):
        if item is None:
            # PyTorch's stride of a new dim: that of the dim it stands before, times its size.
            new_sizes.append(1)
            new_strides.append(sizes[dim] * strides[dim] if dim < len(sizes) else 1)
        elif item is ...:
            rest = len(sizes) - named
            new_sizes += sizes[dim : dim + rest]
            new_strides += strides[dim : dim + rest]
            dim += rest
            named += rest  # a second ... stands for nothing
        else:
            if type(item) is int:
                start = item
            else:
                start, length, step = item
                new_sizes.append(length)
                new_strides.append(strides[dim] * step)
            offset += start * strides[dim]
            dim += 1
    return spec(shape(new_sizes), tuple(new_strides), own.dtype, own.device, own.conj, own.neg), offset


class _Getitem:
    """A view that items give, as one step: `places` are the dims that ints and slices name, and where they start.

    The items themselves start at 0: their plan serves every place.
    """

    def __init__(self, kind: str):
        self.name = f"getitem.{kind}.at"
        self.node_name = f"{kind.capitalize()}Backward0"
        self.derivative = Derivative(self._back)

    def __call__(self, input: Tensor, items: tuple, places: tuple[tuple[int, int], ...]) -> Tensor:
        own = input.spec
        offset = sum([start * own.stride[dim] for dim, start in places])
        result = view_of(input, input._start + offset * own.dtype.itemsize, _views[(own, *items)])
        if mode.enabled:
            record(self, result, (input,), (items, places))
        tape.recorded_view(result, input)
        return result

    @property
    def _back(self) -> Callable:
        def rule(ct, out, a, items, places, *, specs):
            return _GETITEM_BACK(ct, specs[0].shape, items, places)

        return rule


class _GetitemBack:
    """Zeros with a tensor in the place of a view: the adjoint."""

    name = "getitem_backward"

    def __init__(self) -> None:
        def rule(ct, out, part, sizes, items, places):
            return _GETITEM_AT["slice"](ct, items, places)

        self.derivative = Derivative(rule)

    def __call__(self, part: Tensor, sizes: Size, items: tuple, places: tuple) -> Tensor:
        own = part.spec
        whole = contiguous_spec(sizes, own.dtype, own.device)
        result = FILL.write(empty(whole), 0)
        if own.numel:
            start = sum([start * whole.stride[dim] for dim, start in places]) * own.dtype.itemsize
            COPY.write(make(result._storage, start, _views[(whole, *items)]), part.detach())
        return record(self, result, (part,), (sizes, items, places)) if needs_recording((part,)) else result


_GETITEM_AT = {kind: _Getitem(kind) for kind in ("select", "slice", "unsqueeze", "alias")}
_GETITEM_BACK = _GetitemBack()
_FIRST = (0,)
# One op for each of the names that PyTorch gives to what the last item does.
_GETITEM = {
    kind: View(getitem, name=f"getitem.{kind}", node_name=f"{kind.capitalize()}Backward0")
    for kind in ("select", "slice", "unsqueeze", "alias")
}
# Plans for items that start at 0, so that one plan serves every position.
_views = PlanCache(lambda own, *items: getitem(own, *items)[0])


def _select_plan(own: Spec) -> tuple[Spec, int, int]:
    if not own.shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    return getitem(own, 0)[0], own.shape[0], own.stride[0] * own.dtype.itemsize


_selects = PlanCache(_select_plan)


def __getitem__(self: Tensor, index: Any) -> Tensor:
    """The elements that `index` names; see the head of this module.

    Raises: IndexError for what is out of range, or no index.
    """
    own = self.spec
    kind = type(index)
    if kind is int and self._autograd is None:
        view, size, step = _selects[(own,)]
        position = index + size if index < 0 else index
        if not 0 <= position < size:
            raise _out_of_range(index, 0, size)
        result = _new(Tensor)
        result._storage = self._storage
        result._start = self._start + position * step
        result.spec = view
        result._autograd = None
        result._base = self if self._base is None else self._base
        return result
    if kind is int and own.shape:
        size = own.shape[0]
        position = index + size if index < 0 else index
        if not 0 <= position < size:
            raise _out_of_range(index, 0, size)
        return _GETITEM_AT["select"](self, _FIRST, ((0, position),))
    if kind is slice and self._autograd is None:
        sizes = own.shape
        if sizes:
            start, stop, step = index.indices(sizes[0])
            if step < 1:
                raise ValueError("step must be greater than zero")
            view = _views[own, (0, (stop - start + step - 1) // step if stop > start else 0, step)]
            result = _new(Tensor)
            result._storage = self._storage
            result._start = self._start + start * own.stride[0] * own.dtype.itemsize
            result.spec = view
            result._autograd = None
            result._base = self if self._base is None else self._base
            return result
    if kind is Tensor and own.shape:
        found = index.spec
        if found.dtype is int64 and found.shape:
            return INDEX(self, (index,), (0,))
        if found.dtype is bool_ and found.shape == own.shape:
            return _take_masked(self, index)
    return _general(self, as_tuple(index))


_SIMPLE = frozenset((int, slice, Tensor, type(None), EllipsisType, bool))


def as_tuple(index: Any) -> tuple:
    """The items of an index; a short list that holds more than numbers is taken for a tuple, as in old NumPy."""
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
            stacklevel=3,
        )
        return tuple(index)
    return (index,)


def _is_item(value: Any) -> bool:
    if type(value) is int:
        return False
    return value is None or isinstance(value, (Tensor, slice, EllipsisType, Sequence))


def _general(self: Tensor, index: tuple) -> Tensor:
    """A view where all items are numbers, slices, None or ..., else a copy."""
    found = _strided(self, index)
    if found is not None:
        return found
    view, chosen, is_mask = _parse(self, index)
    if is_mask:
        return _take_masked(view, chosen[0])
    if not chosen:
        return view
    dims = tuple(sorted(chosen))
    return INDEX(view, [chosen[dim] for dim in dims], dims)


def _take_masked(view: Tensor, mask: Tensor) -> Tensor:
    return MASKED_INDEX(view, mask) if view._autograd is not None else pack(view, mask)


def _strided(self: Tensor, index: tuple) -> Tensor | None:
    """The view that plain ints, slices, None and ... give; None if there are other items."""
    own = self.spec
    sizes, strides = own.shape, own.stride
    key: list[Any] = [own]
    dim = offset = 0
    places: list[tuple[int, int]] = []  # dims and starts of the ints and slices
    kind_of_last = "slice" if len(index) == 1 and type(index[0]) is slice else "alias"
    for position, item in enumerate(index):
        kind = type(item)
        if kind is int or kind is slice:
            if dim >= len(sizes):
                return None  # one too many: the long way tells
            size = sizes[dim]
            if kind is int:
                start = item + size if item < 0 else item
                if not 0 <= start < size:
                    raise _out_of_range(item, dim, size)
                key.append(0)
                kind_of_last = "select"
            else:
                start, stop, step = item.indices(size)
                if step < 1:
                    raise ValueError("step must be greater than zero")
                length = (stop - start + step - 1) // step if stop > start else 0
                key.append((0, length, step))
                if length != size:
                    kind_of_last = "slice"
            places.append((dim, start))
            offset += start * strides[dim]
            dim += 1
        elif item is None:
            key.append(None)
            kind_of_last = "unsqueeze"
        elif item is ...:
            following = 0
            for later in index[position + 1 :]:
                following += later is not None and later is not ...
            dim = max(len(sizes) - following, dim)
            key.append(...)
        else:
            return None
    if self._autograd is not None:
        return _GETITEM_AT[kind_of_last](self, tuple(key[1:]), tuple(places))
    view = _views[tuple(key)]
    return view_of(self, self._start + offset * own.dtype.itemsize, view)


def _out_of_range(index: int, dim: int, size: int) -> Exception:
    if not -(2**63) <= index < 2**63:
        return ValueError("Overflow when unpacking long long")
    return IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")


# ---- The long way: any index ---------------------------------------------------------------------------------------


def _parse(self: Tensor, index: tuple) -> tuple[Tensor, dict[int, Tensor], bool]:
    """The view that the numbers and slices give, and the index tensor of each of its dims that has one.

    The bool: whether there is but one index and it is a mask of the shape of the view; then it is not turned into
    positions.
    """
    items = [_item(item) for item in index]
    sizes = self.spec.shape
    named = sum(_dims_of(item) for item in items)
    if named > len(sizes):
        if not sizes and any(isinstance(item, slice) for item in items):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        if not sizes and len(index) == 1 and type(index[0]) is int:
            _select_plan(self.spec)
        raise IndexError(f"too many indices for tensor of dimension {len(sizes)}")
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
            rest = len(sizes) - named
            view_items.append(...)
            named += rest  # a second ... stands for nothing
            dim += rest
            new_dim += rest
        elif isinstance(item, slice):
            start, stop, step = item.indices(sizes[dim])
            if step < 1:
                raise ValueError("step must be greater than zero")
            view_items.append((start, max((stop - start + step - 1) // step, 0), step))
            dim += 1
            new_dim += 1
        elif type(item) is int:
            size = sizes[dim]
            if not -size <= item < size:
                raise _out_of_range(item, dim, size)
            view_items.append(item % size)
            dim += 1
        elif not item.spec.shape:  # a 0-dim bool tensor
            view_items.append(None)
            chosen[new_dim] = _from_bool(bool(item), self)
            new_dim += 1
        else:
            chosen[new_dim] = item
            count = _dims_of(item)
            view_items += [(0, size, 1) for size in sizes[dim : dim + count]]
            dim += count
            new_dim += count
    only_tensors = chosen and all(
        item is ... or isinstance(item, Tensor) and item.spec.shape for item in items
    )
    view = self if only_tensors else _view(self, view_items, bool(chosen))
    mask = chosen.get(0)
    if (
        len(chosen) == 1
        and mask is not None
        and mask.spec.dtype is bool_
        and mask.spec.shape == view.spec.shape
    ):
        return view, chosen, True
    return view, _positions(view, chosen), False


def _view(self: Tensor, items: list[Any], is_step: bool) -> Tensor:
    """What numbers and slices give; the tensor itself, if that is all of it and only a step to something else."""
    last = next((item for item in reversed(items) if item is not ...), ...)
    kind = (
        "select"
        if type(last) is int
        else "unsqueeze"
        if last is None
        else "alias"
        if last is ...
        else "slice"
    )
    op = _GETITEM[kind]
    if is_step and op.plans[(self.spec, *items)] == (self.spec, 0):
        return self
    return op(self, *items)


def _dims_of(item: Any) -> int:
    """How many dims of the tensor an item takes."""
    if isinstance(item, Tensor):
        return len(item.spec.shape) if item.spec.dtype is bool_ else 1
    return 0 if item is None or item is ... or item is True or item is False else 1


def _item(item: Any) -> Any:
    """An item as int, bool, slice, None, ... or a Tensor of int64, int32 or bool.

    Raises: IndexError for anything else.
    """
    if type(item) in _SIMPLE:
        return _index_tensor(item) if type(item) is Tensor else item
    if type(item) is list and item and all(type(each) is int for each in item):
        return vector(item)
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, np.ndarray) or isinstance(item, Sequence):
        item = from_data(item, int64 if len(item) == 0 else None, None)
    if isinstance(item, Tensor):
        return _index_tensor(item)
    if hasattr(item, "__index__"):
        return operator.index(item)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__})"
    )


def vector(values: Sequence[int]) -> Tensor:
    """As `torch.tensor(values)`, for ints, which indices mostly are."""
    try:
        held = buffer("q", values)
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long long") from None
    return make(
        foreign(held.buffer_info()[0], 8 * len(values), held, False),
        0,
        vector_spec(len(values), int64, CPU),
    )


def _index_tensor(item: Tensor) -> Any:
    if not item.spec.shape and item.spec.dtype.category == 1 and item.spec.dtype is not uint8:
        return int(item)
    return checked_index(item)


def checked_index(item: Tensor) -> Tensor:
    """A tensor of int64, int32 or bool; uint8 counts as bool, with a warning.

    Raises: IndexError for other dtypes.
    """
    dtype = item.spec.dtype
    if dtype is uint8:
        if item.spec.shape:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=6,
            )
        return item.to(bool_)
    if dtype is not int64 and dtype is not int32 and dtype is not bool_:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return item


def _from_bool(value: bool, like: Tensor) -> Tensor:
    """The positions that a single bool chooses in a dim of size 1."""
    result = empty(contiguous_spec((int(value),), int64, like.spec.device))
    return FILL.write(result, 0) if value else result


def _positions(view: Tensor, chosen: dict[int, Tensor]) -> dict[int, Tensor]:
    """The index tensors with each mask replaced by the positions of what it chooses, dim by dim."""
    result = {}
    for dim, index in chosen.items():
        if index.spec.dtype is not bool_:
            result[dim] = index
            continue
        for k, size in enumerate(index.spec.shape):
            if dim + k >= len(view.spec.shape):
                raise IndexError(f"too many indices for tensor of dimension {len(view.spec.shape)}")
            if size != view.spec.shape[dim + k]:
                raise IndexError(
                    f"The shape of the mask {list(index.spec.shape)} at index {k} does not match the shape of the "
                    f"indexed tensor {list(view.spec.shape)} at index {dim + k}"
                )
        for k, column in enumerate(columns_of(index)):
            result[dim + k] = column
    return result


# ---- Index tensors: copies -----------------------------------------------------------------------------------------


def at(own: Spec, dims: tuple[int, ...], *indices: Spec) -> Access:
    """Index tensors for some dims. Their common shape stands in the place of the dims, or in front if they are apart.

    Raises: IndexError if they have no common shape.
    """
    try:
        common = broadcast_shapes("", *(index.shape for index in indices))
    except RuntimeError:
        shapes = ", ".join(str(list(index.shape)) for index in indices)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    adjacent = dims == tuple(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if adjacent else 0
    rest = [dim for dim in range(len(own.shape)) if dim not in dims]
    before, after = rest[:first], rest[first:]

    def assemble(values: Sequence[int], middle: Sequence[int]) -> tuple[int, ...]:
        return (*(values[dim] for dim in before), *middle, *(values[dim] for dim in after))

    none = (0,) * len(own.shape)
    return Access(
        shape(assemble(own.shape, common)),
        assemble(own.stride, (0,) * len(common)),
        tuple(assemble(none, broadcast_stride(index, common)) for index in indices),
        dims,
        tuple(own.shape[dim] for dim in dims),
        tuple(own.stride[dim] for dim in dims),
    )


INDEX = Take("index", at, wrap=True, in_memory_order=True)
PUT = Put("index_put_", at, wrap=True, once=False)


# ---- Writing -------------------------------------------------------------------------------------------------------


def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Write a number or a tensor, broadcast, to the elements that `index` names.

    Raises: as reading; RuntimeError if the value does not fit, TypeError if it is neither. Nothing is written then.
    """
    kind = type(index)
    if (kind is int or kind is slice) and self._autograd is None:
        _assign(__getitem__(self, index), value)
        return
    if kind is Tensor and self.spec.shape and index.spec.shape and _put_directly(self, index, value):
        return
    index = index if kind is tuple else as_tuple(index)
    view = _strided(self, index)
    if view is not None:
        _assign(self if view.spec is self.spec and view._start == self._start else view, value)
        return
    view, chosen, is_mask = _parse(self, index)
    if not chosen:
        _assign(view, value)
    elif isinstance(value, Tensor):
        _put(view, chosen, is_mask, without_leading_ones(value), None)
    else:
        _put(view, chosen, is_mask, _number(value, view.spec), None)


def _put_directly(self: Tensor, index: Tensor, value: Any) -> bool:
    """The short way for one index tensor; False if it is not for this call."""
    if type(value) is Tensor:
        if self._autograd is not None or value._autograd is not None:
            return False
    elif type(value) not in NUMBERS or self._autograd is not None:
        return False
    own, found = self.spec, index.spec
    if found.dtype is bool_:
        if found.shape != own.shape:
            return False
        if type(value) is Tensor:
            _put_masked(self, index, without_leading_ones(value))
        else:
            check_number(value, own.dtype)
            MASKED_FILL.write(self, self, index, value)
        return True
    if found.dtype is not int64 or type(value) is Tensor and value.spec.dtype is not own.dtype:
        return False
    PUT(self, (index,), without_leading_ones(value) if type(value) is Tensor else _number(value, own), (0,))
    return True


def _assign(view: Tensor, value: Any) -> None:
    if 0 in view.spec.stride:
        check_inplace(view, "fill")
    kind = type(value)
    if kind is float or kind is int:
        if view._autograd is None and view.spec.device is CPU:
            fill_number(view, value)
            return
    if not isinstance(value, Tensor):
        _check_value(value, view.spec)
        fill_(view, value)
        return
    if value.spec.shape != view.spec.shape:
        if not value.spec.shape and needs_recording((view, value)):
            fill_(view, value)
            return
        value = without_leading_ones(value)
        check_expandable(value.spec.shape, view.spec.shape)
    if value.spec.device is view.spec.device is CPU and view.spec.numel:
        COPY.write(view, value)
    else:
        copy_values(view, value)


def _check_value(value: Any, own: Spec) -> None:
    if not is_operand(value):
        raise TypeError(f"can't assign a {type(value).__name__} to a torch.{LEGACY_NAMES[own.dtype]}Tensor")


def without_leading_ones(value: Tensor) -> Tensor:
    """What is assigned may have more dims than its place, if they are of size 1."""
    own = value.spec
    if not own.shape or own.shape[0] != 1:
        return value
    first = next((dim for dim, size in enumerate(own.shape) if size != 1), len(own.shape))
    return _GETITEM["select"](value, *[0] * first)


def check_expandable(sizes: Size, wanted: Size) -> None:
    """Raises: RuntimeError unless a tensor of `sizes` broadcasts to `wanted`."""
    if len(sizes) > len(wanted):
        raise RuntimeError(
            f"expand(torch.Tensor{{{list(sizes)}}}, size={list(wanted)}): the number of sizes provided ({len(wanted)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(sizes)})"
        )
    for back in range(1, len(sizes) + 1):
        if sizes[-back] not in (1, wanted[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[-back]}) must match the existing size ({sizes[-back]}) at "
                f"non-singleton dimension {len(wanted) - back}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(sizes)}"
            )


def _number(value: Any, like: Spec) -> Tensor:
    """A number as a 0-dim tensor that can be put into one like `like`."""
    _check_value(value, like)
    return fill_(empty(_scalars[like.dtype, like.device]), value)


_scalars = PlanCache(lambda dtype, device: contiguous_spec((), dtype, device))


def _put(
    view: Tensor, chosen: dict[int, Tensor], is_mask: bool, value: Tensor, combine: Callable | None
) -> None:
    if is_mask and combine is None and (value.spec.numel == 1 or not needs_recording((view, value))):
        _put_masked(view, chosen[0], value)
        return
    if value.spec.dtype is not view.spec.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{LEGACY_NAMES[view.spec.dtype]} for the destination and {LEGACY_NAMES[value.spec.dtype]} for the source."
        )
    positions = _positions(view, chosen) if is_mask else chosen
    dims = tuple(sorted(positions))
    PUT(view, [positions[dim] for dim in dims], value, dims, combine)


def _put_masked(view: Tensor, mask: Tensor, value: Tensor) -> None:
    if value.spec.numel == 1:
        MASKED_PUT.write(view, view, mask, value.reshape(()) if value._autograd else scalar_view(value))
        return
    if value.spec.dtype is not view.spec.dtype or view.spec.conj or view.spec.neg:
        _put(view, _positions(view, {0: mask}), False, value, None)
        return
    count = count_true(mask)
    if value.spec.shape != (count,):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.spec.shape)} cannot be broadcast to indexing result of "
            f"shape [{count}]"
        )
    spread(view, unshared(mask, view), plain(unshared(value, view)).contiguous(), count)


@public("function method", name="index_put_")
def index_put_(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values`, broadcast, to the elements at `indices` (one tensor for each of the first dims), or add to them.

    With `accumulate` an element that is named twice is added to twice.

    Raises: IndexError for indices out of range; nothing is written then.

    >>> import weft as torch
    >>> torch.zeros(3).index_put_((torch.tensor([0, 0]),), torch.tensor(1.0), accumulate=True)
    tensor([2., 0., 0.])
    """
    for position, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(index).__name__}"
            )
    if len(indices) > len(input.spec.shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(input.spec.shape)} (got {len(indices)})"
        )
    chosen: dict[int, Tensor] = {}
    dim = 0
    for index in indices:
        index = checked_index(index)
        chosen[dim] = index
        dim += len(index.spec.shape) if index.spec.dtype is bool_ else 1
    is_mask = len(chosen) == 1 and chosen[0].spec.dtype is bool_ and chosen[0].spec.shape == input.spec.shape
    positions = chosen if is_mask else _positions(input, chosen)
    _put(input, positions, is_mask, values, add_elements if accumulate else None)
    return input


@public("function method")
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` written to, or added to, the elements at `indices`. See `index_put_`."""
    return index_put_(input.clone(), indices, values, accumulate)


for _function in (__getitem__, __setitem__):
    setattr(Tensor, _function.__name__, _function)
