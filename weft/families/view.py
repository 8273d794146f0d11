"""Views: pure functions on metadata, applied to a tensor without touching its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.derivative import as_derivative
from ..core.op import PlanCache, needs_recording, record, tape
from ..core.spec import Spec
from ..core.tensor import Tensor, view_of


class View:
    """An op whose result shares the input's storage.

    `rule(spec, *static)` returns the result's Spec and how far storage_offset moves, in elements of the
    result; it may raise. Static arguments are hashable: ints, tuples, None.
    """

    def __init__(self, rule: Callable[..., tuple[Spec, int]], derivative: Any = None):
        self.name = rule.__name__.lstrip("_")
        self.rule = rule
        self.derivative = as_derivative(derivative)
        self.plans = PlanCache(self._plan)

    def _plan(self, spec: Spec, *static) -> tuple[Spec, int]:
        view, offset = self.rule(spec, *static)
        return view, offset * view.dtype.itemsize

    def __call__(self, input: Tensor, *static) -> Tensor:
        spec, start = self.plans[(input.spec, *static)]
        result = view_of(input, input._start + start, spec)
        if input._autograd is not None and needs_recording((input,)):
            record(self, result, (input,), static)
            if result._autograd is not None:
                tape.recorded_view(result)
        return result
