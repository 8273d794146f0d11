"""One kernel for the derivative of an elementwise op.

A rule is written with tensors. Unless autograd records the rule, it is traced once (`traced.py`), so that one kernel does what
would be several passes over memory. Where it is recorded, for a derivative of higher order, it runs on tensors. The bits are
the same, because a traced op rounds to its dtype as the op alone does. Only a rule of which the row says `round_once` computes
in float32 and rounds bfloat16 and float16 at the end, as PyTorch's kernel for this rule does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.derivative import loaded, mentioned
from ..core.dtype import compute_type, float32, float64
from ..core.layout_spec import NotStrided
from ..core.plans import PlanCache
from ..core.promotion import common_dtype
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor
from ..engine.loops import Result
from .elements import store_as
from .map import Map, Types, same_dtype
from .traced import NoKernel, Traced, any_shape, tracing


def kernel_of(op: Any, position: int) -> Callable:
    """The rule for the input at `position` in its fastest form: one kernel, if `op` is a Map and the rule has several steps."""
    fused = op.derivative.fused
    if position not in fused:
        fused[position] = _fused(op, op.derivative.rules[position])
    return fused[position]


def _fused(op: Any, rule: Callable) -> Callable:
    positions = _mentioned(rule) if isinstance(op, Map) else []
    if not positions or positions[0] != 0:  # without the cotangent, the rule is a constant
        return rule
    kernel = _Kernel(op.name, rule, positions, op.derivative.round_once)
    plan = kernel.plans[tuple([contiguous_spec((1,), float32)] * len(positions))]
    return rule if plan is None else FusedRule(rule, positions, kernel)


def _mentioned(rule: Callable) -> list[int]:
    """The positions of the arguments that a rule mentions; empty if it has keyword-only or variable arguments."""
    code = rule.__code__
    if code.co_kwonlyargcount or code.co_flags & 0x04:
        return []
    out, inputs = mentioned(rule, code.co_argcount - 2)
    first = [0] if code.co_varnames[0] in loaded(code) else []
    return first + [1] * out + sorted(position + 2 for position in inputs)


class FusedRule:
    """A rule that runs as one kernel, unless its arguments are of a kind that has no kernel."""

    __slots__ = ("rule", "positions", "kernel")

    def __init__(self, rule: Callable, positions: Sequence[int], kernel: _Kernel):
        self.rule = rule
        self.positions = positions
        self.kernel = kernel

    def __call__(self, *values: Any) -> Any:
        operands, plan = self._planned(values)
        return self.rule(*values) if plan is None else self.kernel(*operands)

    def over(self, *values: Any) -> Any:
        """The cotangent of the input, written into the memory of the given cotangent if both have the same spec.

        A deferred result takes over that memory when it is computed (`engine/defer.py`).
        """
        operands, plan = self._planned(values)
        if plan is None:
            return self.rule(*values)
        if plan.spec is not values[0].spec or plan.deferred is not None:
            return self.kernel(*operands)
        return self.kernel.write(values[0], *operands)

    def _planned(self, values: Sequence[Any]) -> tuple[list, Any]:
        """The operands of the kernel and its plan; the plan is None if there is no kernel for such operands."""
        operands: list[Any] = []
        key: list[Any] = []
        for position in self.positions:
            value = values[position]
            if isinstance(value, Tensor):
                key.append(value.spec)
            elif type(value) is float or type(value) is int:
                key.append(type(value))
            else:
                return operands, None
            operands.append(value)
        try:
            return operands, self.kernel.plans[tuple(key)]
        except NotStrided:  # of a sparse cotangent
            return operands, None


class _Kernel(Map):
    """The kernel of a rule; its operands are the arguments of the rule at `positions`."""

    def __init__(self, name: str, rule: Callable, positions: Sequence[int], round_once: bool):
        super().__init__(f"{name}_backward", same_dtype, rule)
        self.positions = positions
        self.round_once = round_once
        self.traces = PlanCache(self._trace)

    def _plan(self, *operands: Any) -> Any:
        try:
            return super()._plan(*operands)
        except NoKernel:
            return None

    def _types(self, operands: Sequence[Any]) -> Types:
        result = self._traced(operands).spec.dtype
        if self.round_once:
            common = common_dtype(operands)
            result = common if compute_type(common) is result else result
        return Types(float64, result)  # numbers arrive as float64

    def _element(self, operands: Sequence[Any], result: Spec, types: Types) -> Result:
        return store_as(self._traced(operands).value, result)

    def _traced(self, operands: Sequence[Any]) -> Traced:
        """The traced rule; operands that differ only in shape share a trace."""
        return self.traces[tuple([any_shape(each) if type(each) is Spec else each for each in operands])]

    def _trace(self, *kinds: Any) -> Traced:
        """Trace the rule. Raises: NoKernel also if the rule is a single op, because that has a kernel already."""
        arguments: list[Any] = [None] * self.element.__code__.co_argcount
        loads = params = 0
        for position, kind in zip(self.positions, kinds, strict=True):
            if type(kind) is Spec:
                dtype = compute_type(kind.dtype) if self.round_once else kind.dtype
                arguments[position] = Traced.load(loads, kind, dtype)
                loads += 1
            else:
                arguments[position] = Traced.number(params)
                params += 1
        try:
            with tracing():
                result = self.element(*arguments)
        except (TypeError, AttributeError, NotImplementedError, RuntimeError) as error:
            raise NoKernel(self.name) from error
        if type(result) is not Traced or all(getattr(each, "op", None) is None for each in result.inputs):
            raise NoKernel(f"{self.name} of a single op")
        return result
