"""Several tensors updated in place by one kernel, as a step of an optimizer updates a parameter and its state.

A rule is an ordinary function of tensors and numbers. On tensors it is a composition of ops, which autograd can record. Traced
(`traced.py`), it is one kernel, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtype import float64
from ..core.grad_mode import is_grad_enabled
from ..core.iteration import loop_dims
from ..core.layout_spec import NotStrided
from ..core.op import Op
from ..core.outputs import check_no_repeats
from ..core.plans import PlanCache
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.loops import Result
from .elements import store_as
from .map import apart, common_device
from .traced import NoKernel, Traced, any_shape, tracing


class _Plan:
    __slots__ = ("entry", "meta", "count", "keepalive")

    def __init__(self, launch):
        self.entry, self.meta, self.count, self.keepalive = launch


def _memory(x: Tensor) -> Tensor:
    return x if type(x.spec) is Spec else x.spec.rules.memory(x)  # type: ignore[attr-defined]


class FusedUpdate(Op):
    """An in-place update by a rule: `rule(options, source, *targets, *numbers)` returns the new values of the targets.

    `options` is hashable and selects a variant of the rule; each variant has a kernel of its own. All tensors have the shape of
    the first target.
    """

    def __init__(self, rule: Callable):
        self.name = rule.__name__
        self.rule = rule
        self.plans = PlanCache(self._plan)
        self.traces = PlanCache(self._trace)

    def run(self, options: Any, source: Tensor, targets: Sequence[Tensor], numbers: Sequence[float]) -> None:
        """Update `targets` in one kernel. Nothing is recorded for autograd; numbers may be 0-dim tensors."""
        first = targets[0]
        if source._storage is first._storage:
            source = apart(source, first)
        try:
            plan = self.plans[(options, len(numbers), source.spec, *[each.spec for each in targets])]
        except NotStrided:
            return self.run(options, _memory(source), [*map(_memory, targets)], numbers)
        if plan is None:
            self.compose(options, source, targets, numbers)
            return
        for each in targets:
            each._storage.version += 1  # before the addresses are read, see `inplace_of` in calls.py
        addresses = [each._storage.ptr + each._byte_offset for each in targets]
        read = source._storage.ptr + source._byte_offset
        plan.entry(*addresses, read, *addresses, *numbers, plan.meta, plan.count)

    def compose(
        self, options: Any, source: Tensor, targets: Sequence[Tensor], numbers: Sequence[Any]
    ) -> None:
        """The same update op by op, so that autograd can record it."""
        # Backward may need the old values of the targets, which are overwritten below.
        old = [each.clone() for each in targets] if is_grad_enabled() else targets
        values = self._checked(self.rule(options, source, *old, *numbers), len(targets))
        for target, value in zip(targets, values):
            target.copy_(value)

    def _plan(self, options: Any, count: int, source: Spec, *targets: Spec) -> _Plan | None:
        """The kernel for tensors of these specs; None if the ops must compute the update, or raise an error."""
        first = targets[0]
        specs = (source, *targets)
        for each in targets:
            check_no_repeats(each, "step")
        where = common_device("step", specs)
        if first.dtype.kind != "f" or any(each.shape != first.shape for each in specs):
            return None
        results = self.traces[(options, count, *map(any_shape, specs))]
        sizes, strides = loop_dims(first.shape, tuple(each.byte_stride for each in (*targets, *specs)))
        if 0 in sizes:
            sizes, strides = (0,), tuple((0,) for _ in strides)
        return _Plan(
            where.backend.prepare(results, [each.dtype for each in specs], [float64] * count, sizes, strides)
        )

    def _trace(self, options: Any, count: int, source: Spec, *targets: Spec) -> list[Result]:
        """The new values of the targets as expressions."""
        operands = [Traced.load(k, each) for k, each in enumerate((source, *targets))]
        try:
            with tracing():
                values = self.rule(options, *operands, *map(Traced.number, range(count)))
        except NoKernel as error:
            raise NotImplementedError(
                f"the rule {self.name} of an update cannot become one kernel, because it uses {error}: a kernel computes each "
                "element by elementwise ops alone"
            ) from error
        return [
            store_as(value.value, each) for value, each in zip(self._checked(values, len(targets)), targets)
        ]

    def _checked(self, values: Any, count: int) -> Sequence[Any]:
        """Raises: TypeError unless the rule has returned a new value for each target."""
        if not isinstance(values, (tuple, list)) or len(values) != count:
            given = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
            raise TypeError(
                f"the rule {self.name} of an update must return a tuple of {count} values, one for each tensor that it updates, "
                f"but returned {given}"
            )
        return values
