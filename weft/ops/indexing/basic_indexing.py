"""Basic indexing: numbers, slices, None and ... give views, metadata in, metadata out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.derivative import Derivative
from ...core.grad_mode import mode
from ...core.op import Op
from ...core.plans import PlanCache
from ...core.recording import new_recorder, tape
from ...core.size import Size, shape
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, empty, make, view_of
from ...families.custom_vjp import custom_vjp
from ...families.map import COPY, FILL
from ...families.view import Plan, View

# One item for each dim, or for a new one: int (select), (start, length, step) (slice), None (a new dim), ... (the dims
# that no item names).


def getitem(spec: Spec, *items: Any) -> tuple[Spec, int]:
    """The view that items give, and how far it moves storage_offset."""
    sizes, strides = spec.shape, spec.stride
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
    return make_spec(
        shape(new_sizes), tuple(new_strides), spec.dtype, spec.device, spec.conj, spec.neg
    ), offset


class _Getitem(Op):
    """A view that items give, as one step: `places` are the dims that ints and slices name, and where they start.

    The items themselves start at 0: their plan serves every place.
    """

    def __init__(self, kind: str):
        self.name = f"getitem.{kind}.at"
        self.node_name = f"{kind.capitalize()}Backward0"
        self.derivative = Derivative(_getitem_cotangent)
        self.plans = PlanCache(lambda spec, *items: Plan(getitem(spec, *items)[0], 0))

    def run(self, input: Tensor, items: tuple, places: tuple[tuple[int, int], ...]) -> Tensor:
        spec = input.spec
        plan = self.plans[(spec, *items)]
        offset = sum([start * spec.stride[dim] for dim, start in places])
        result = view_of(input, input._start + offset * spec.dtype.itemsize, plan.spec)
        if input._autograd is not None:
            if mode.enabled:  # the starts are inputs of the step, because one plan serves all of them
                inputs = (input, *[start for _, start in places])
                static = items, tuple([dim for dim, _ in places])
                (plan.record or new_recorder(plan, self, result, inputs, static))(result, *inputs)
            tape.recorded_view(result, input)
        return result


def _getitem_cotangent(ct, out, a, *rest, specs):
    *starts, items, dims = rest
    return _getitem_backward(ct, specs[0].shape, items, tuple(zip(dims, starts, strict=True)))


@custom_vjp(lambda ct, out, part, sizes, items, places: GETITEM_AT["slice"](ct, items, places), inputs=1)
def _getitem_backward(part: Tensor, sizes: Size, items: tuple, places: tuple) -> Tensor:
    """Zeros with a tensor in the place of a view: the adjoint."""
    spec = part.spec
    whole = contiguous_spec(sizes, spec.dtype, spec.device)
    result = FILL.write(empty(whole), 0)
    if spec.numel:
        start = sum([start * whole.stride[dim] for dim, start in places]) * spec.dtype.itemsize
        COPY.write(make(result._storage, start, VIEW_PLANS[(whole, *items)].spec), part.detach())
    return result


GETITEM_AT: dict[str, _Getitem] = {kind: _Getitem(kind) for kind in ("select", "slice", "unsqueeze", "alias")}


# One op for each of the names that PyTorch gives to what the last item does.
GETITEM = {
    kind: View(getitem, name=f"getitem.{kind}", node_name=f"{kind.capitalize()}Backward0")
    for kind in ("select", "slice", "unsqueeze", "alias")
}
# Plans for items that start at 0, so that one plan serves every position.
VIEW_PLANS = GETITEM_AT["slice"].plans


class SelectPlan:
    """The metadata of `tensor[number]`: the spec of the view, the size of the first dim and its stride in bytes."""

    __slots__ = ("spec", "size", "step", "record")

    def __init__(self, spec: Spec, size: int, step: int):
        self.spec, self.size, self.step = spec, size, step
        self.record: Callable | None = None  # made when the first call is recorded


def select_plan(spec: Spec) -> SelectPlan:
    if not spec.shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    return SelectPlan(getitem(spec, 0)[0], spec.shape[0], spec.stride[0] * spec.dtype.itemsize)


SELECT_PLANS = PlanCache(select_plan)


def strided(self: Tensor, index: tuple) -> Tensor | None:
    """The view that plain ints, slices, None and ... give; None if there are other items."""
    spec = self.spec
    sizes, strides = spec.shape, spec.stride
    key: list[Any] = [spec]
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
                    raise out_of_range(item, dim, size)
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
        return GETITEM_AT[kind_of_last](self, tuple(key[1:]), tuple(places))
    view = VIEW_PLANS[tuple(key)].spec
    return view_of(self, self._start + offset * spec.dtype.itemsize, view)


def span(item: slice, size: int) -> tuple[int, int, int]:
    """Start, length and step of a slice of a dim.

    Raises: ValueError for a step below 1.
    """
    start, stop, step = item.indices(size)
    if step < 1:
        raise ValueError("step must be greater than zero")
    return start, (stop - start + step - 1) // step if stop > start else 0, step


def position_of(index: int, dim: int, size: int) -> int:
    """Where an index, which may count from the end, points to.

    Raises: IndexError if that is no position of the dim.
    """
    position = index + size if index < 0 else index
    if not 0 <= position < size:
        raise out_of_range(index, dim, size)
    return position


def out_of_range(index: int, dim: int, size: int) -> Exception:
    if not -(2**63) <= index < 2**63:
        return ValueError("Overflow when unpacking long long")
    return IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")


def view_of_items(self: Tensor, items: list[Any], is_step: bool) -> Tensor:
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
    op = GETITEM[kind]
    if is_step:
        plan = op.plans[(self.spec, *items)]
        if plan.spec is self.spec and not plan.start:
            return self
    return op(self, *items)
