"""Exprs evaluated with JAX: the interpreter's rules, and those primitives for which XLA has other functions.

XLA takes float arithmetic for real arithmetic where constants are concerned: it computes (x + c) - c as x, by which expressions round x, and
x / c as x * (1 / c). It does not look through `reduce_precision`, which changes no number here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtype import DType, float64
from ...engine.expr import Expr
from ...engine.interpreter import Interpreter
from .functions import with_functions


class Tracer(Interpreter):
    """Operands are a dictionary by the loads themselves; those of a `slow_path` are a sequence."""

    def __init__(self) -> None:
        super().__init__(jnp)
        self.table |= {"ldexp": self.ldexp, "call": self.call}
        self.table |= {op: _kept(self.table[op]) for op in ("add", "sub", "mul", "fma")}

    def evaluate(self, roots: Sequence[Expr], operands: Any, params: Sequence = ()) -> list:
        return super().evaluate(with_functions(tuple(roots)), operands, params)

    def call(self, expr: Expr, operand: Any) -> Any:
        return expr.value(operand)

    def load(self, expr: Expr, operands: Any) -> Any:
        return operands[expr] if type(operands) is dict else operands[expr.value]

    def divide(self, expr: Expr, a: Any, b: Any) -> Any:
        if expr.dtype.kind == "f":
            return a / _opaque(b, expr.dtype)
        return lax.div(*jnp.broadcast_arrays(a, b))

    def fma(self, expr: Expr, a: Any, b: Any, c: Any) -> Any:
        """Rounded once: XLA's compiler for processors makes one instruction of a product and a sum. Elsewhere float64 is rounded twice."""
        if expr.dtype is float64 or jax.default_backend() == "cpu":
            return a * b + c
        wide = np.float64
        return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(expr.dtype.numpy)

    def count_leading_zeros(self, expr: Expr, a: Any) -> Any:
        return lax.clz(jnp.asarray(a))

    def ldexp(self, expr: Expr, y: Any, k: Any) -> Any:
        """Three factors, because one power of two may be beyond the largest number."""
        third = k // 3
        step = _power_of_two(third, expr.dtype)
        return y * step * step * _power_of_two(k - third - third, expr.dtype)


def _power_of_two(k: Any, dtype: DType) -> Any:
    bits = (k + dtype.exponent_bias) << dtype.mantissa_bits
    return lax.bitcast_convert_type(bits, dtype.numpy)


def _opaque(x: Any, dtype: DType) -> Any:
    return lax.reduce_precision(x, dtype.exponent_bits, dtype.mantissa_bits)


def _kept(function: Callable) -> Callable:
    """A primitive whose result is not computed in another way if an operand is a constant."""

    def compute(expr: Expr, *operands: Any) -> Any:
        result = function(expr, *operands)
        if expr.dtype.kind == "f" and any(arg.op == "const" for arg in expr.args):
            return _opaque(result, expr.dtype)
        return result

    return compute


tracer = Tracer()
evaluate = tracer.evaluate
