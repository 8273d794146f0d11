"""Views: the rule of the view is applied to the sample, and the batch dim stays where it is."""

from __future__ import annotations

from typing import Any

from ..autograd.inplace import REGION
from ..core.batched import (
    Level,
    batch_of,
    batched_at,
    lift,
    physical,
    resumed,
    samples_of,
    set_recorded_region,
    takes_part,
    wrap,
)
from ..core.grad_mode import mode
from ..core.plans import PlanCache
from ..core.recording import tape
from ..core.spec import Spec
from ..core.tensor import Tensor, view_of
from ..families.view import View
from ..ops.indexing.basic_indexing import GETITEM
from ..ops.views.splitting import SPLIT, SPLIT_WITH_SIZES, UNBIND
from .derivatives import BatchedDerivative
from .rules import Recordable, batching_rule, record, rule_for


class BatchedView(View):
    """Represents a view of each sample of a batch."""

    def __init__(self, view: View):
        super().__init__(self._of_batch, name=view.name, node_name=view.node_name)
        self.view = view
        if not _is_default(view):
            self.derivative = BatchedDerivative(view, (True,))

    def _of_batch(self, batch: Spec, *static: Any) -> tuple[Spec, int]:
        sample, step = samples_of[(batch,)]
        spec, offset = self.view.rule(sample, *static)
        return batch_of[spec, step, batch.shape[0]], offset


def _is_default(view: View) -> bool:
    """Whether the cotangent is put into zeros, which serves for the batch as well."""
    rules = view.derivative.rules if view.derivative is not None else ()
    return len(rules) == 1 and getattr(rules[0], "__code__", None) is _DEFAULT.__code__


_DEFAULT: Any = View(lambda spec: (spec, 0)).derivative.rules[0]  # type: ignore[union-attr]
batched_views = PlanCache(BatchedView)


@batching_rule(View)
def _view(level: Level, op: View, args: tuple, static: dict[str, Any]) -> Tensor:
    input, *rest = args
    storage: Any = input._storage
    value = storage.value
    if takes_part(value):
        value = physical(input, level)
        if batched_at(input, level):
            result = wrap(batched_views[(op,)](value, *rest), level)
        else:
            result = lift(op(value, *rest), level)
        result._base = input if input._base is None else input._base
    else:
        plan = op.plans[(input.spec, *rest)]
        if storage.step is not None:
            batch_of[plan.spec, storage.step, level.size]  # raises if there is no such batch
        result = view_of(input, input._byte_offset + plan.start, plan.spec)
    return _recorded(op, result, (input,), tuple(rest), level)


def _recorded(op: Any, result: Tensor, inputs: tuple, static: tuple, level: Level) -> Tensor:
    """A view of the first input, recorded if that takes part in autograd within the level."""
    if inputs[0]._autograd is not None:
        with resumed(level):
            if mode.enabled:
                record(op, result, inputs, static, level)
            tape.recorded_view(result, inputs[0])
    return result


@rule_for(*GETITEM.values())
def _getitem(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Tensor:
    input, items, places = args
    spec = input.spec
    offset = sum([start * spec.stride[dim] for dim, start in places])
    result = view_of(input, input._byte_offset + offset * spec.dtype.itemsize, op.plans[(spec, *items)].spec)
    starts = [start for _, start in places]
    return _recorded(op, result, (input, *starts), (items, tuple([dim for dim, _ in places])), level)


def adjoint(level: Level, view: View, args: tuple) -> Recordable:
    """The rule of a view's adjoint, which is one view of the batch as well."""
    part, whole, *rest = args
    value = physical(part, level)
    if batched_at(part, level):
        step = max(whole.numel, 1) * whole.dtype.itemsize  # the batch of zeros is contiguous
        plain = view.adjoint_plans[(whole, *rest)][0]
        batch = batch_of[plain, step, level.size]
        result = wrap(batched_views[(view,)].adjoint(value, batch, *rest), level)
    else:
        result = view.adjoint(value, whole, *rest)
    return Recordable(result, (part,), (whole, *rest))


@rule_for(UNBIND, SPLIT, SPLIT_WITH_SIZES)
def _several(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Any:
    """Record the pieces, which are views that have already been made."""
    with resumed(level):
        return op.run(*args)


set_recorded_region(REGION)
