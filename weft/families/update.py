"""Several tensors updated in place by one kernel: what a step of an optimizer does to a parameter and its state.

A rule is a Python function, written with the functions that `fusible` makes and with operators. Given tensors it is a
composition of ops, and can be differentiated; given `Traced` values it is the expression of one kernel, which rounds
wherever those ops would have rounded, so both ways give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtype import compute_type
from ..core.grad_mode import is_grad_enabled
from ..core.iteration import loop_dims
from ..core.op import Op
from ..core.outputs import check_no_repeats
from ..core.plans import PlanCache
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor
from ..engine.expr import Expr, const
from .elements import as_type, load_as, param_as, rounded, store_as
from .map import Map, apart, common_device


class Traced:
    """An element of a tensor inside a rule; `ops/elementwise/operators.py` has the like for tensors."""

    __slots__ = ("value", "spec")

    def __init__(self, value: Any, spec: Spec):
        self.value = value  # in the compute type of `spec.dtype`, rounded to that dtype
        self.spec = spec  # what promotion asks for: any with the dtype


def fusible(op: Map) -> Callable:
    """The function of an op that rules are written with: of tensors and numbers, or of Traced values."""

    def function(*operands):
        return _traced(op, operands) if any(type(each) is Traced for each in operands) else op(*operands)

    function.__name__ = function.__qualname__ = op.name
    return function


def _traced(op: Map, operands: Sequence[Any]) -> Traced:
    """As `Map._element`, of values that earlier ops of the rule have computed; an Expr is a number of the caller."""
    types = op._types([each.spec if type(each) is Traced else float for each in operands])
    compute = compute_type(types.operands)
    values = []
    for each in operands:
        if type(each) is Traced:
            value, exact = each.value, each.spec.dtype is types.operands
        else:
            value, exact = each if isinstance(each, Expr) else const(each, compute), op.wide
        value = as_type(value, compute)
        values.append(value if exact else rounded(value, types.operands))
    value = as_type(op.element(*values), compute_type(types.result))
    return Traced(rounded(value, types.result), contiguous_spec((1,), types.result))


class _Plan:
    __slots__ = ("entry", "meta", "count", "keep")

    def __init__(self, launch):
        self.entry, self.meta, self.count, self.keep = launch


class Update(Op):
    """In-place updates by a rule: `rule(options, source, *targets, *numbers)` returns the new values of the targets.

    `options` is hashable and chooses among the rule's variants; for each there is a kernel. All tensors have the shape
    of the first target.
    """

    def __init__(self, rule: Callable):
        self.name = rule.__name__
        self.rule = rule
        self.plans = PlanCache(self._plan)

    def run(self, options: Any, source: Tensor, targets: Sequence[Tensor], numbers: Sequence[float]) -> None:
        """Update `targets` in one kernel. Nothing is recorded for autograd; numbers may be 0-dim tensors."""
        first = targets[0]
        if source._storage is first._storage:
            source = apart(source, first)
        plan = self.plans[(options, len(numbers), source.spec, *[each.spec for each in targets])]
        if plan is None:
            self.compose(options, source, targets, numbers)
            return
        addresses = []
        for each in targets:
            storage = each._storage
            addresses.append(storage.ptr + each._start)
            storage.version += 1
        read = source._storage.ptr + source._start
        plan.entry(*addresses, read, *addresses, *numbers, plan.meta, plan.count)

    def compose(
        self, options: Any, source: Tensor, targets: Sequence[Tensor], numbers: Sequence[Any]
    ) -> None:
        """The same by ops, which autograd may record."""
        # What backward needs of the targets must survive that they are written.
        old = [each.clone() for each in targets] if is_grad_enabled() else targets
        for target, value in zip(targets, self.rule(options, source, *old, *numbers), strict=True):
            target.copy_(value)

    def _plan(self, options: Any, count: int, source: Spec, *targets: Spec) -> _Plan | None:
        """The kernel for tensors of these specs; None if they are for the ops to compute, or to refuse."""
        first = targets[0]
        specs = (source, *targets)
        for each in targets:
            check_no_repeats(each, "step")
        where = common_device("step", specs)
        if first.dtype.kind != "f" or any(each.shape != first.shape for each in specs):
            return None
        compute = compute_type(first.dtype)
        operands = [Traced(load_as(k, each, compute_type(each.dtype)), each) for k, each in enumerate(specs)]
        params = [compute] * count
        values = self.rule(options, *operands, *(param_as(k, each) for k, each in enumerate(params)))
        results = [store_as(value.value, each) for value, each in zip(values, targets, strict=True)]
        sizes, strides = loop_dims(first.shape, tuple(each.byte_stride for each in (*targets, *specs)))
        if 0 in sizes:
            sizes, strides = (0,), tuple((0,) for _ in strides)
        return _Plan(where.backend.prepare(results, [each.dtype for each in specs], params, sizes, strides))
