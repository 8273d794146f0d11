"""View: the family of ops that compute new metadata for the same memory; and the adjoints of such ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.derivative import Derivative
from ..core.grad_mode import mode
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import new_recorder, tape
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, as_new, empty, make
from .custom_vjp import CustomVjp
from .launches import OBJECT, OF_INPUT, OF_RESULT, Launches
from .map import COPY, FILL, scalar_arguments


class Plan:
    """The spec of a view, and how far its first element lies behind that of the input, in bytes."""

    __slots__ = ("spec", "start", "record")

    def __init__(self, spec: Spec, start: int):
        self.spec, self.start = spec, start
        self.record: Callable | None = None  # made when the first call is recorded


class View(Op):
    """An op whose result shares the input's storage.

    `rule(spec, *static)` returns the result's Spec and how far storage_offset moves, in elements of the
    result; it may raise. Static arguments are hashable: ints, tuples, None. Without a stated derivative the cotangent
    is put into zeros, which is right for views that show each element at most once.
    """

    def __init__(
        self,
        rule: Callable[..., tuple[Spec, int]],
        derivative: Any = None,
        *,
        name: str = "",
        node_name: str | Callable | None = None,
    ):
        super().__init__(name or rule.__name__.lstrip("_"), derivative, node_name)
        self.rule = rule
        self.plans = PlanCache(self._plan, with_sizes=True)
        self.adjoint_plans = PlanCache(self._plan_adjoint, with_sizes=True)
        # The adjoint (part, whole, *static) puts `part` into zeros of the shape and dtype of the spec `whole`.
        self.adjoint = CustomVjp(
            self._embed,
            lambda ct, out, part, whole, *static: self(ct, *static),
            inputs=1,
            name=f"{self.name}_backward",
            launches=self._launches_of_embed,
        )
        if self.derivative is None:
            self.derivative = Derivative(
                lambda ct, out, a, *static, specs: self.adjoint(ct, specs[0], *static)
            )

    def _plan(self, spec: Spec, *static) -> Plan:
        view, offset = self.rule(spec, *static)
        return Plan(view, offset * view.dtype.itemsize)

    def run(self, input: Tensor, *static) -> Tensor:
        plan = self.plans[(input.spec, *static)]
        storage = input._storage
        result: Tensor = storage.new_tensor()  # `view_of`, without its call
        result._storage = storage
        result._byte_offset = input._byte_offset + plan.start
        result.spec = plan.spec
        result._autograd = None
        result._base = input if input._base is None else input._base
        if input._autograd is not None:
            if mode.enabled:
                (plan.record or new_recorder(plan, self, result, (input,), static))(result, input)
            tape.recorded_view(result, input)
        return result

    def _plan_adjoint(self, whole: Spec, *static) -> tuple[Spec, Spec, int]:
        result = contiguous_spec(whole.shape, whole.dtype, whole.device)
        view = self.plans[(result, *static)]
        return result, view.spec, view.start

    def _embed(self, part: Tensor, whole: Spec, *static) -> Tensor:
        return embedded(part, *self.adjoint_plans[(whole, *static)])

    def _launches_of_embed(self, part: Tensor, whole: Spec, *static) -> Launches | None:
        result, place, start = self.adjoint_plans[(whole, *static)]
        backend = result.device.backend
        if not backend.has_memory or not place.numel or part.spec.device is not result.device:
            return None
        zeros, copy = FILL.write_plans[result, int], COPY.write_plans[place, part.spec]
        zero = scalar_arguments(0, result.dtype)
        steps = [
            (
                zeros.entry,
                [(OF_RESULT, 0, 0), *((OBJECT, each, 0) for each in (*zero, zeros.meta, zeros.count))],
            ),
            (
                copy.entry,
                [(OF_RESULT, 0, start), (OF_INPUT, part, 0), (OBJECT, copy.meta, 0), (OBJECT, copy.count, 0)],
            ),
        ]
        return Launches([backend.allocator(result.nbytes)], steps, keepalive=(zeros, copy))


def embedded(part: Tensor, whole: Spec, place: Spec, start: int) -> Tensor:
    """Zeros of the spec `whole`, with `part` in the place of the view that has the spec `place` and starts at byte `start`."""
    result = empty(whole)
    if whole.numel and whole.device.backend.has_memory:
        FILL.write(result, 0)
        if place.numel:
            COPY.write(make(result._storage, start, place), part.detach())
    return as_new(result)
