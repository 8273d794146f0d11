"""Ops that combine many elements to one: the row of a reduction or a scan, and the `Monoid` that kernels are made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.dtype import DType, compute_type
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.spec import Spec, contiguous_spec
from ..engine.complexes import Complex
from ..engine.expr import const, param
from ..engine.monoid import Monoid, state_leaf
from .elements import as_type, load_as, store_as


class Types(NamedTuple):
    """What a reduction computes with, for one input dtype."""

    operands: DType  # elements are converted to this
    results: tuple[DType, ...]


class MonoidOp(Op):
    """An op that turns elements into states and combines states, which a row states as

    types(dtype, wanted) -> Types            `wanted` is the argument dtype=, or None
    identity(dtype) -> values                the state of no elements, in the compute type: numbers or (number, dtype)
    to_state(*elements) -> state             of one element; `engine.monoid.index()` is its position
    combine(a, b) -> state                   of two states, in any order unless it uses positions
    append(state, element) -> state          of a state and the state of one later element, if that is easier than `combine`
    finish(state, *params) -> results        of the final state
    cascade                                  partial results in levels: for sums of floats
    exact                                    `combine` never rounds: neighbouring states may be combined first
    clean(element)                           of each element in the dtype of the input, before it is converted
    derivative                               as rows of other families state it
    """

    def __init__(
        self,
        name: str,
        types: Callable[[DType, DType | None], Types],
        identity: Callable[[DType], Sequence[Any]],
        to_state: Callable,
        combine: Callable,
        finish: Callable = lambda state: state,
        *,
        append: Callable | None = None,
        cascade: bool = False,
        exact: bool = False,
        clean: Callable | None = None,
        derivative: Any = None,
        node_name: str | Callable | None = None,
    ):
        super().__init__(name, derivative, node_name)
        self.types, self.identity = types, identity
        self.to_state, self.combine, self.finish = to_state, combine, finish
        self.append, self.cascade, self.exact = append or combine, cascade, exact
        self.clean = clean
        self.plans = PlanCache(self._plan)

    def _plan(self, *key: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._plan")

    def _monoid(self, inputs: tuple[Spec, ...], types: Types, params: int) -> Monoid:
        compute = compute_type(types.operands)
        elements = [self._loaded(k, each, compute) for k, each in enumerate(inputs)]
        identity = [_constant(value, compute) for value in self.identity(compute)]
        components = [part for value in identity for part in _parts(value)]
        left, right = (
            _regroup([state_leaf(side, k, part.dtype) for k, part in enumerate(components)], identity)
            for side in "lr"
        )
        finished = self.finish(left, *(param(k, compute.to_real()) for k in range(params)))
        stored = tuple(
            store_as(as_type(value, compute_type(dtype)), contiguous_spec((), dtype))
            for value, dtype in zip(finished, types.results, strict=True)
        )
        return Monoid(
            _flat(self.to_state(*elements)),
            _flat(left),
            _flat(right),
            _flat(self.combine(left, right)),
            _flat(self.append(left, right)),
            tuple(components),
            self.cascade and compute.category >= 2,
            stored,
            self.exact,
        )

    def _loaded(self, position: int, input: Spec, compute: DType) -> Any:
        if self.clean is None:
            return load_as(position, input, compute)
        return as_type(self.clean(load_as(position, input, compute_type(input.dtype))), compute)


def _constant(value: Any, compute: DType) -> Any:
    """An identity: a number in the compute type, or (number, dtype)."""
    number, dtype = value if isinstance(value, tuple) else (value, compute)
    if dtype.is_complex:
        number = complex(number)
        return Complex(const(number.real, dtype.to_real()), const(number.imag, dtype.to_real()))
    return const(number, dtype)


def _parts(value: Any) -> tuple:
    return (value.real, value.imag) if isinstance(value, Complex) else (value,)


def _flat(values: Sequence[Any]) -> tuple:
    return tuple(part for value in values for part in _parts(value))


def _regroup(leaves: list, like: Sequence[Any]) -> tuple:
    """Leaves as values of the same structure as `like`."""
    remaining = iter(leaves)
    return tuple(
        Complex(next(remaining), next(remaining)) if isinstance(v, Complex) else next(remaining) for v in like
    )
