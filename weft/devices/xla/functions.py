"""Finds exp, tanh and other functions in expressions, which have them expanded to primitives, because XLA has them as its own instructions."""

from __future__ import annotations

import functools
from collections.abc import Callable

from jax import lax

from ...core.dtype import DType, float32, float64
from ...engine import approx
from ...engine.expr import Expr, load, node, postorder

# Where XLA's function is faster than the primitives and has errors of few ulp. Its sine takes longer (on processors), and its log1p of float64 has
# errors of 100 ulp.
_OF_XLA: dict[Callable, Callable] = {
    approx.erf: lax.erf,
    approx.exp: lax.exp,
    approx.expm1: lax.expm1,
    approx.log: lax.log,
    approx.sigmoid: lax.logistic,
    approx.tanh: lax.tanh,
}


@functools.cache
def _expansions(dtype: DType) -> dict[tuple, list[tuple[Expr, Callable]]]:
    """By primitive and constant of its root: the expansion of each function for a load as its operand, and XLA's function."""
    found: dict[tuple, list[tuple[Expr, Callable]]] = {}
    for function, of_xla in _OF_XLA.items():
        root = function(load(0, dtype))
        found.setdefault((root.op, root.value), []).append((root, of_xla))
    return found


@functools.lru_cache(maxsize=4096)
def with_functions(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The same expressions with nodes "call", whose value is the function, in place of expansions."""
    new: dict[Expr, Expr] = {}
    for expr in postorder(roots):
        found = _found(expr)
        if found is not None:
            function, operand = found
            new[expr] = node("call", expr.dtype, (new[operand],), function)
        elif expr.args:
            new[expr] = node(expr.op, expr.dtype, tuple([new[each] for each in expr.args]), expr.value)
        else:
            new[expr] = expr
    return tuple([new[root] for root in roots])


def _found(expr: Expr) -> tuple[Callable, Expr] | None:
    """The function of XLA that an expression is, and what it is applied to."""
    if expr.dtype is float32 or expr.dtype is float64:
        for root, function in _expansions(expr.dtype).get((expr.op, expr.value), ()):
            bound = _matched(root, expr)
            if bound is not None:
                return function, bound[load(0, expr.dtype)]
    return None


def _matched(pattern: Expr, expr: Expr) -> dict[Expr, Expr] | None:
    """Which expressions the nodes of a pattern stand for, whose loads stand for any; None if it is another expression."""
    bound: dict[Expr, Expr] = {}
    stack = [(pattern, expr)]
    while stack:
        own, other = stack.pop()
        known = bound.get(own)
        if known is not None:
            if known is not other:
                return None
            continue
        if own.dtype is not other.dtype:
            return None
        if own.op != "load":
            if own.op != other.op or own.value != other.value or len(own.args) != len(other.args):
                return None
            stack.extend(zip(own.args, other.args, strict=True))
        bound[own] = other
    return bound
