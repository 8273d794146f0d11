"""Defines `tensor[...]`, reading and writing.

Numbers and slices give views; tensors, lists and masks give copies. As in PyTorch, numbers beside index tensors select first.
The common shape of index tensors goes to the front if other items stand between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.device import CPU
from ...core.dispatch import watchers
from ...core.dtype import LEGACY_NAMES, REDUCED_FLOATS, bool_, int64
from ...core.entry import check_overrides, entry, in_front_of
from ...core.grad_mode import mode
from ...core.limits import check_number
from ...core.outputs import check_inplace
from ...core.plans import PlanCache
from ...core.recording import check_recorded_write, needs_recording, new_recorder, tape
from ...core.registry import add_member
from ...core.size import Size
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty, view_of
from ...families.calls import is_operand
from ...families.indexed import pack, pack_rows
from ...families.map import COPY, NUMBERS, apart
from ..assembly.copying import copy_, copy_values, is_same_memory
from ..assembly.filling import fill_, fill_number
from ..creation.from_data import from_data
from .advanced_indexing import ALL, INDEX, PUT, as_positions, as_tuple, only_mask, parse_index
from .basic_indexing import GETITEM, SELECT_PLANS, VIEW_PLANS, basic_view, out_of_range
from .index_put import without_leading_ones, write_at, write_masked
from .masking import MASKED_FILL, MASKED_INDEX

_DIM = (0,)
_FIRST = (0,), _DIM  # the items of `tensor[number]` as the step gets them, and the dim of its start
_SELECT, _SLICE = GETITEM["select"], GETITEM["slice"]


def __getitem__(self: Tensor, index: Any) -> Tensor:
    """The elements that `index` names; the docstring of this module has the rules.

    Raises: IndexError for positions out of range, and for objects that are not an index.
    """
    spec = self.spec
    kind = type(index)
    # Loops over data use one int or one slice, so these two cases call neither `basic_view` nor `view_of`.
    if kind is int:
        plan = SELECT_PLANS[(spec,)]
        position = index + plan.size if index < 0 else index
        if not 0 <= position < plan.size:
            raise out_of_range(index, 0, plan.size)
        result = self._storage.new_tensor()
        result._storage = self._storage
        result._byte_offset = self._byte_offset + position * plan.step
        result.spec = plan.spec
        result._autograd = None
        result._base = self if self._base is None else self._base
        if self._autograd is not None:
            if mode.enabled:
                inputs = self, position
                (plan.record or new_recorder(plan, _SELECT, result, inputs, _FIRST))(result, *inputs)
            tape.recorded_view(result, self)
        return result
    if kind is slice:
        sizes = spec.shape
        if sizes:
            start, stop, step = index.indices(sizes[0])
            if step < 1:
                raise ValueError("step must be greater than zero")
            item = (stop - start + step - 1) // step if stop > start else 0, step
            plan = VIEW_PLANS[spec, item]
            result = self._storage.new_tensor()
            result._storage = self._storage
            result._byte_offset = self._byte_offset + start * spec.stride[0] * spec.dtype.itemsize
            result.spec = plan.spec
            result._autograd = None
            result._base = self if self._base is None else self._base
            if self._autograd is not None:
                if mode.enabled:
                    inputs = self, start
                    static = (item,), _DIM
                    (plan.record or new_recorder(plan, _SLICE, result, inputs, static))(result, *inputs)
                tape.recorded_view(result, self)
            return result
    if kind is Tensor and spec.shape:
        found = index.spec
        if found.dtype is int64:
            if found.shape:
                return INDEX(self, (index,), (0,))
            return __getitem__(self, int(index))
        if found.dtype is bool_ and found.shape:
            taken = _take_masked(self, index)
            return _taken(self, (index,)) if taken is None else taken
    if kind is tuple and _PLAIN.issuperset(map(type, index)):
        return _taken(self, index)
    return _getitem_entry(self, index)


def _getitem(self: Tensor, index: Any) -> Tensor:
    """A view where all items are numbers, slices, None or ..., else a copy."""
    check_overrides(index)
    return _taken(self, as_tuple(index))


# The items that no other class overrides.
_PLAIN = frozenset((int, slice, type(None), type(...), Tensor))


def _taken(self: Tensor, index: tuple) -> Tensor:
    found = basic_view(self, index)
    if found is None and self._autograd is None:
        found = _gathered(self, index)
    if found is not None:
        return found
    view, chosen = parse_index(self, index)
    if not chosen:
        return view
    mask = only_mask(chosen)
    if mask is not None and (found := _take_masked(view, mask)) is not None:
        return found
    positions = as_positions(view, chosen)
    dims = tuple(sorted(positions))
    return INDEX(view, [positions[dim] for dim in dims], dims)


def _gathered(self: Tensor, index: tuple) -> Tensor | None:
    """What the usual items choose, without general code: index tensors of int64, numbers and `:`. None for other items."""
    spec = self.spec
    if watchers or len(index) > len(spec.shape):
        return None
    key: list[Any] = [spec]
    positions, dims = [], []
    start, dim = self._byte_offset, 0  # of the view that the numbers choose
    for size, stride, item in zip(spec.shape, spec.stride, index):
        if type(item) is Tensor and item.spec.dtype is int64 and item.spec.device is spec.device:
            if item.spec.shape:
                positions.append(item)
                dims.append(dim)
                item = ALL
            else:
                item = int(item)
        if type(item) is int:
            item = item + size if item < 0 else item
            if not 0 <= item < size:
                return None
            start += item * stride * spec.dtype.itemsize
            key.append(0)
        elif type(item) is slice and item == ALL:
            key.append((size, 1))
            dim += 1
        else:
            return None
    if not positions:
        return None
    view = self if 0 not in key else view_of(self, start, VIEW_PLANS[tuple(key)].spec)
    return INDEX(view, positions, tuple(dims))


def _take_masked(view: Tensor, mask: Tensor) -> Tensor | None:
    """The elements or the short rows that a mask for the first dims chooses; None if their positions are needed."""
    sizes, chosen = view.spec.shape, mask.spec.shape
    if chosen == sizes:
        return MASKED_INDEX(view, mask) if view._autograd is not None else pack(view, mask)
    if view._autograd is None and chosen == tuple.__getitem__(sizes, slice(len(chosen))):
        return pack_rows(view, mask)
    return None


def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Write a number, a tensor or an array, broadcast, to the elements that `index` names.

    Raises: the errors of reading; RuntimeError if the value does not fit; TypeError if it is not a number, tensor or array.
    Nothing is written then.
    """
    kind = type(index)
    if (kind is int or kind is slice) and type(value) is Tensor and self._autograd is None:
        view = self[index]
        if value._autograd is None and value._storage is not self._storage and _fits[view.spec, value.spec]:
            copy_(view, value)
        else:
            _assign(view, value)
    else:
        _setitem_entry(self, index, value)


@PlanCache
def _fits(view: Spec, value: Spec) -> bool:
    """Whether `copy_` writes such a value into such a view as it is."""
    return view.shape == value.shape and view.dtype is value.dtype and 0 not in view.stride


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    if type(value) is np.ndarray:
        value = from_data(value, self.spec.dtype, self.spec.device)
    try:
        kind = type(index)
        if (kind is int or kind is slice) and self._autograd is None:
            _assign(__getitem__(self, index), value)
            return
        if kind is Tensor and self.spec.shape and index.spec.shape and _put_directly(self, index, value):
            return
        if index is False:  # names no elements
            if not isinstance(value, Tensor):
                _number(value, self.spec)
            return
        items = index if kind is tuple else as_tuple(None if index is True else index)
        view = basic_view(self, items)
        if view is not None:
            _assign(
                self if view.spec is self.spec and view._byte_offset == self._byte_offset else view, value
            )
            return
        view, chosen = parse_index(self, items)
        if not chosen:
            _assign(view, value)
        elif isinstance(value, Tensor):
            check_recorded_write(view, value)
            write_at(view, chosen, without_leading_ones(value), None)
        else:
            check_recorded_write(view)
            write_at(view, chosen, _number(value, view.spec), None)
    except Exception:
        # PyTorch converts the value before it checks the index, so an error of the conversion comes first.
        if not isinstance(value, Tensor):
            _number(value, self.spec)
        # PyTorch checks the dtype of an index tensor in the op that writes, and that op refuses leaves first.
        if kind is Tensor and index.spec.shape and self.spec.shape:
            check_recorded_write(self, value)
        raise


def _put_directly(self: Tensor, index: Tensor, value: Any) -> bool:
    """Write by one index tensor without the general code. False if this call needs the general code."""
    if type(value) is Tensor:
        if self._autograd is not None or value._autograd is not None:
            return False
    elif type(value) not in NUMBERS or self._autograd is not None:
        return False
    spec, found = self.spec, index.spec
    if found.dtype is bool_:
        if found.shape != spec.shape or spec.overlaps:
            return False
        if type(value) is Tensor:
            write_masked(self, 0, index, without_leading_ones(value))
        else:
            if spec.dtype in REDUCED_FLOATS:
                value = _number(value, spec)
            else:
                check_number(value, spec.dtype)
            MASKED_FILL.write(self, self, index, value)
        return True
    if found.dtype is not int64 or type(value) is Tensor and value.spec.dtype is not spec.dtype:
        return False
    PUT(self, (index,), without_leading_ones(value) if type(value) is Tensor else _number(value, spec), (0,))
    return True


def _assign(view: Tensor, value: Any) -> None:
    if 0 in view.spec.stride:
        if isinstance(value, Tensor):
            value = without_leading_ones(value)
            if is_same_memory(view, value):
                view.copy_(value)
                return
        check_inplace(view, "fill")
    kind = type(value)
    if kind is float or kind is int:
        if view._autograd is None and view.spec.device is CPU and view.spec.dtype not in REDUCED_FLOATS:
            fill_number(view, value)
            return
    if not isinstance(value, Tensor):
        fill_(view, _number(value, view.spec).item())
        return
    if value.spec.shape != view.spec.shape:
        if not value.spec.shape and needs_recording((view, value)):
            fill_(view, value)
            return
        value = without_leading_ones(value)
        check_expandable(value.spec, view.spec.shape)
        if value._storage is view._storage:
            value = apart(value, view)
    if value.spec.device is view.spec.device is CPU:
        COPY.write(view, value)
    else:
        copy_values(view, value)


def _check_value(value: Any, spec: Spec) -> None:
    if not is_operand(value):
        raise TypeError(f"can't assign a {type(value).__name__} to a torch.{LEGACY_NAMES[spec.dtype]}Tensor")


def check_expandable(spec: Spec, wanted: Size) -> None:
    """Raises: RuntimeError unless a tensor of this spec broadcasts to `wanted`."""
    sizes = spec.shape
    if len(sizes) > len(wanted):
        raise RuntimeError(
            f"expand(torch.{LEGACY_NAMES[spec.dtype]}Tensor{{{list(sizes)}}}, size={list(wanted)}): the number of sizes provided ({len(wanted)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(sizes)})"
        )
    for back in range(1, len(sizes) + 1):
        if sizes[-back] not in (1, wanted[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[-back]}) must match the existing size ({sizes[-back]}) at "
                f"non-singleton dimension {len(wanted) - back}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(sizes)}"
            )


def _number(value: Any, like: Spec) -> Tensor:
    """A number as a 0-dim tensor of the dtype and device of `like`. Numbers beyond the range of a narrow float become infinite."""
    _check_value(value, like)
    return fill_(empty(_scalars[like.dtype, like.device]), value)


_scalars = PlanCache(lambda dtype, device: contiguous_spec((), dtype, device))


_getitem_entry, _setitem_entry = entry(_getitem, "__getitem__"), entry(_setitem, "__setitem__")
for _function, _behind in ((__getitem__, _getitem_entry), (__setitem__, _setitem_entry)):
    add_member(_function.__name__, in_front_of(_behind)(_function))
