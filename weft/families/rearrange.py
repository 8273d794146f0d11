"""Rearrange: the family of ops whose result consists of pieces of the inputs. One kernel copies and converts each piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.dispatch import PLAIN, watched, watchers
from ..core.dtype import BITS, LEGACY_NAMES, bool_
from ..core.grad_mode import mode
from ..core.iteration import check_reach, loop_dims
from ..core.op import Op
from ..core.outputs import check_inplace, check_unrecorded, memory_overlaps, resize_out
from ..core.plans import PlanCache
from ..core.recording import record
from ..core.spec import Spec
from ..core.templates import Late
from ..core.tensor import Tensor, make
from ..engine.expr import load
from ..engine.kernel import Launch
from ..engine.loops import Result
from .map import COPY


class Piece(NamedTuple):
    """A view of an input, and the view of the result that it is copied to."""

    source: int  # which input
    view: Spec
    start: int  # where the view begins, in elements from the first one of the input
    target: Spec
    at: int  # where it begins in the result


class Plan(Late):
    """The result's spec, and for each piece: which input, both starts in bytes, and the kernel; or one kernel that weaves all inputs."""

    __slots__ = ("spec", "allocate", "copies", "keepalive", "woven")
    OWNING = ("keepalive",)

    def __init__(self, name: str, result: Spec, specs: Sequence[Spec], pieces: Iterable[Piece]):
        self.spec = result
        self.allocate = result.device.backend.allocator(result.nbytes)
        self.copies: list[tuple] = []
        self.keepalive: list[Any] = []  # what owns the memory behind each `meta`
        self.woven: Launch | None = None
        pieces = [piece for piece in pieces if piece.target.numel]
        for source, view, start, target, at in pieces:
            if start or view is not specs[source]:
                check_reach(name, specs[source], view.shape, view.stride, start)
            check_reach(name, result, target.shape, target.stride, at)
        if len(pieces) == len(specs) and _is_weave(result, pieces):
            self.woven = _weave(result, pieces)
        else:
            for source, view, start, target, at in pieces:
                copy = COPY.write_plans[target, view]
                starts = start * specs[source].dtype.itemsize, at * result.dtype.itemsize
                self.copies.append((source, *starts, copy.entry, copy.meta, copy.count))
                self.keepalive.append(copy)

    def run(self, address: int, tensors: Sequence[Tensor]) -> None:
        for source, start, at, entry, meta, count in self.copies:
            tensor = tensors[source]
            entry(address + at, tensor._storage.ptr + tensor._byte_offset + start, meta, count)
        if self.woven is not None:
            weave(self.woven, address, tensors)


# Inputs whose elements one kernel stores side by side: more need more shuffles of vectors than single stores.
_MOST_WOVEN = 4


def _is_weave(result: Spec, pieces: Sequence[Piece]) -> bool:
    """Whether neighbouring elements of the result come from all inputs in turn, unchanged, as if stacked along the last dim."""
    if not 1 < len(pieces) <= _MOST_WOVEN or result.neg or result.dtype.itemsize not in BITS:
        return False
    return all(
        (piece.source, piece.start, piece.at) == (place, 0, place)
        and piece.target is pieces[0].target
        and piece.view.dtype is result.dtype
        and not (piece.view.neg or piece.view.conj or result.conj)
        for place, piece in enumerate(pieces)
    )


def _weave(result: Spec, pieces: Sequence[Piece]) -> Launch:
    """One kernel that loads an element of each input and stores them side by side."""
    own = result.dtype
    bits = own if own is bool_ else BITS[own.itemsize]  # a copy of bools stores 1 for every true byte
    target = pieces[0].target
    rows = (target.stride, *(piece.view.stride for piece in pieces))
    strides = tuple(tuple(step * own.itemsize for step in row) for row in rows)
    element = Result(tuple(load(place, bits) for place in range(len(pieces))))
    return result.device.backend.prepare(
        (element,), [bits] * len(pieces), (), *loop_dims(target.shape, strides)
    )


def weave(launch: Launch, address: int, tensors: Sequence[Tensor]) -> None:
    addresses = [tensor._storage.ptr + tensor._byte_offset for tensor in tensors]
    launch.entry(address, *addresses, launch.meta, launch.count)  # type: ignore[misc]


class Rearrange(Op):
    """An op whose result consists of pieces of its inputs.

    `result(specs, *static)` checks the arguments and returns the spec of the result. `pieces(result, specs, *static)` returns the
    pieces. Static arguments are hashable.
    """

    def __init__(
        self,
        name: str,
        result: Callable[..., Spec],
        pieces: Callable[..., Iterable[Piece]],
        derivative: Any = None,
        node_name: str | Callable | None = None,
    ):
        super().__init__(name, derivative, node_name)
        self.result = result
        self.pieces = pieces
        self.plans = PlanCache(self._plan, with_sizes=True)
        self.write_plans = PlanCache(self._plan_write, with_sizes=True)

    def _plan(self, static: tuple, *specs: Spec) -> Plan:
        return self._plan_write(self.result(specs, *static), static, *specs)

    def _plan_write(self, target: Spec, static: tuple, *specs: Spec) -> Plan:
        return Plan(self.name, target, specs, self.pieces(target, specs, *static) if target.numel else ())

    def run(self, tensors: Sequence[Tensor], *static: Any) -> Tensor:
        tensors = tuple(tensors)  # another thread, or a finalizer, may change the list
        try:
            plan = self.plans[(static, *[tensor.spec for tensor in tensors])]
        except AttributeError:
            check_tensors(tensors)
            raise
        storage = plan.allocate()
        # The same as `Plan.run`, inlined, because a call costs as much as a small copy.
        for source, start, at, entry, meta, count in plan.copies:
            tensor = tensors[source]
            entry(storage.ptr + at, tensor._storage.ptr + tensor._byte_offset + start, meta, count)
        if plan.woven is not None:
            weave(plan.woven, storage.ptr, tensors)
        result = make(storage, 0, plan.spec)
        if mode.enabled:
            for tensor in tensors:
                if tensor._autograd is not None:
                    return record(self, result, tensors, static)
        return result

    def into(self, out: Tensor, tensors: Sequence[Tensor], *static: Any) -> Tensor:
        """The `out=` form: `out` is resized to the shape of the result, and pieces are converted to its dtype."""
        if watchers and (answer := watched(self, "into", (out, tensors, *static), {})) is not PLAIN:
            return answer
        check_tensors(tensors)
        check_unrecorded(self.name, (out, *tensors))
        specs = [tensor.spec for tensor in tensors]
        spec = self.result(specs, *static)
        if spec.dtype.category > out.spec.dtype.category:
            raise TypeError(
                f"torch.{self.name}(): input types can't be cast to the desired output type "
                f"{LEGACY_NAMES[out.spec.dtype]}"
            )
        if spec.device is not out.spec.device:
            raise RuntimeError(
                f"Expected out tensor to have device {spec.device}, but got {out.spec.device} instead"
            )
        if out.spec.shape != spec.shape:
            resize_out(out, spec.shape, self.name)
        check_inplace(out, self.name)
        for position, tensor in enumerate(tensors):
            if memory_overlaps(tensor, out):
                raise RuntimeError(
                    "unsupported operation: the input tensors cannot refer to any of the output memory locations. "
                    f"Found overlap in input tensor {position}"
                )
        plan = self.write_plans[(out.spec, static, *specs)]
        out._storage.version += 1  # first, because it may raise
        plan.run(out._storage.ptr + out._byte_offset, tensors)
        return out


def check_tensors(tensors: Sequence[Any]) -> None:
    """Raises: TypeError if an element of the list is not a tensor."""
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}"
            )
