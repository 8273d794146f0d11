"""Views: pure functions on metadata, applied to a tensor without touching its bytes; and their adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.derivative import Derivative, as_derivative
from ..core.grad_mode import mode
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import needs_recording, record, tape
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, empty, make, view_of
from .map import COPY, FILL


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
        node_name: str = "",
    ):
        self.name = name or rule.__name__.lstrip("_")
        if node_name:
            self.node_name = node_name
        self.rule = rule
        self.adjoint = Adjoint(self)
        self.derivative = as_derivative(derivative) or Derivative(self.adjoint.as_rule())
        self.plans = PlanCache(self._plan)

    def _plan(self, spec: Spec, *static) -> tuple[Spec, int]:
        view, offset = self.rule(spec, *static)
        return view, offset * view.dtype.itemsize

    def run(self, input: Tensor, *static) -> Tensor:
        spec, start = self.plans[(input.spec, *static)]
        result = view_of(input, input._start + start, spec)
        if input._autograd is not None:
            if mode.enabled:
                record(self, result, (input,), static)
            tape.recorded_view(result, input)
        return result


class Adjoint(Op):
    """The adjoint of a view: zeros with a tensor in the place where the view lies."""

    def __init__(self, view: View):
        self.name = f"{view.name}_backward"
        self.view = view
        self.derivative = Derivative(lambda ct, out, part, whole, *static: view(ct, *static))
        self.plans = PlanCache(self._plan)

    def _plan(self, whole: Spec, *static) -> tuple[Spec, Spec, int]:
        result = contiguous_spec(whole.shape, whole.dtype, whole.device)
        return result, *self.view.plans[(result, *static)]

    def run(self, part: Tensor, whole: Spec, *static) -> Tensor:
        """`part` in zeros of the shape and dtype of `whole`."""
        wanted, place, start = self.plans[(whole, *static)]
        result = empty(wanted)
        if wanted.numel and wanted.device.backend.has_memory:
            FILL.write(result, 0)
            if place.numel:
                COPY.write(make(result._storage, start, place), part.detach())
        return record(self, result, (part,), (whole, *static)) if needs_recording((part,)) else result

    def as_rule(self) -> Callable:
        return lambda ct, out, a, *static, specs: self(ct, specs[0], *static)
