"""Basic indexing: an index of ints, slices, None and ... gives a view, which needs the metadata of the tensor only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.derivative import Derivative
from ...core.dispatch import watchers
from ...core.grad_mode import mode
from ...core.op import Op
from ...core.plans import PlanCache
from ...core.recording import new_recorder, tape
from ...core.size import Size, shape
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, view_of
from ...families.custom_vjp import custom_vjp
from ...families.view import Plan, embedded

# One item for each dim, or for a new one: 0 (select), (length, step) (slice), None (a new dim), ... (the dims that no item
# names). Items start at position 0 of their dim, so that one plan serves every position; the caller adds the offset.


def spec_of_items(spec: Spec, *items: Any) -> Spec:
    """The spec of the view that items give."""
    sizes, strides = spec.shape, spec.stride
    unnamed = len(sizes) - sum(1 for item in items if item is not None and item is not ...)
    new_sizes: list[int] = []
    new_strides: list[int] = []
    dim = 0
    for item in items if ... in items else (*items, ...):
        if item is None:
            # PyTorch's stride of a new dim: that of the dim it stands before, times its size.
            new_sizes.append(1)
            new_strides.append(sizes[dim] * strides[dim] if dim < len(sizes) else 1)
        elif item is ...:
            new_sizes += sizes[dim : dim + unnamed]
            new_strides += strides[dim : dim + unnamed]
            dim += unnamed
            unnamed = 0  # a second ... names no dims
        else:
            if item != 0:
                length, step = item
                new_sizes.append(length)
                new_strides.append(strides[dim] * step)
            dim += 1
    return make_spec(shape(new_sizes), tuple(new_strides), spec.dtype, spec.device, spec.conj, spec.neg)


class _Getitem(Op):
    """The view that items give. `places` are the dims that ints and slices name, and the positions where they start."""

    def __init__(self, kind: str):
        super().__init__(f"getitem.{kind}", Derivative(_getitem_cotangent), f"{kind.capitalize()}Backward0")
        self.plans = PlanCache(lambda spec, *items: Plan(spec_of_items(spec, *items), 0), with_sizes=True)

    def run(self, input: Tensor, items: tuple, places: tuple[tuple[int, int], ...]) -> Tensor:
        spec = input.spec
        plan = self.plans[(spec, *items)]
        offset = sum([start * spec.stride[dim] for dim, start in places])
        result = view_of(input, input._byte_offset + offset * spec.dtype.itemsize, plan.spec)
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


@custom_vjp(lambda ct, out, part, sizes, items, places: GETITEM["slice"](ct, items, places), inputs=1)
def _getitem_backward(part: Tensor, sizes: Size, items: tuple, places: tuple) -> Tensor:
    """Return the adjoint of `_Getitem`: zeros, with `part` in the place of the view."""
    spec = part.spec
    whole = contiguous_spec(sizes, spec.dtype, spec.device)
    start = sum([start * whole.stride[dim] for dim, start in places]) * spec.dtype.itemsize
    return embedded(part, whole, VIEW_PLANS[(whole, *items)].spec, start)


# PyTorch names the node after the last item, so there is one op for each name.
GETITEM: dict[str, _Getitem] = {kind: _Getitem(kind) for kind in ("select", "slice", "unsqueeze", "alias")}
VIEW_PLANS = GETITEM["slice"].plans


class SelectPlan:
    """Holds the metadata of `tensor[number]`: the spec of the view, the size and the stride of the first dim."""

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
    return SelectPlan(spec_of_items(spec, 0), spec.shape[0], spec.stride[0] * spec.dtype.itemsize)


SELECT_PLANS = PlanCache(select_plan)


def basic_view(self: Tensor, index: tuple) -> Tensor | None:
    """The view that an index of ints, slices, None and ... gives; None if the index has other items or too many."""
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
                return None  # too many
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
                key.append((length, step))
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
    if self._autograd is not None or watchers:
        return GETITEM[kind_of_last](self, tuple(key[1:]), tuple(places))
    view = VIEW_PLANS[tuple(key)].spec
    return view_of(self, self._byte_offset + offset * spec.dtype.itemsize, view)


def out_of_range(index: int, dim: int, size: int) -> Exception:
    if not -(2**63) <= index < 2**63:
        return ValueError("Overflow when unpacking long long")
    return IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
