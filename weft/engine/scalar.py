"""The functions that op rows are written with: each takes real or complex scalars and builds expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import approx, complexes
from . import expr as _expr
from .complexes import Complex
from .expr import (
    Expr,
    as_expr,
    bitcast,
    cast,
    clz,
    const,
    copysign,
    fma,
    one_function,
    popcount,
    rint,
    select,
)

__all__ = [
    "Complex", "Expr", "bitcast", "cast", "clz", "const", "copysign", "fma", "as_expr", "popcount", "rint", "select",
]  # fmt: skip


def _both(name: str, real: Callable | None = None) -> Callable:
    """A function that calls `complexes.name` if an operand is complex, else `approx.name` (or `real`)."""
    real_function, complex_function = real or getattr(approx, name), getattr(complexes, name, None)

    def function(*operands):
        if any(isinstance(operand, Complex) for operand in operands):
            if complex_function is None:
                raise NotImplementedError(f"{name} of complex numbers")
            return complex_function(*operands)
        return real_function(*operands)

    function.__name__ = function.__qualname__ = name
    __all__.append(name)
    return function


def where(condition: Expr, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; both are computed."""
    if isinstance(a, Complex) or isinstance(b, Complex):
        return complexes.where(condition, a, b)
    return select(condition, a, b)


def _eq(a, b):
    return _expr.eq(a, b) if isinstance(a, Expr) else _expr.eq(b, a)


def _ne(a, b):
    return _expr.ne(a, b) if isinstance(a, Expr) else _expr.ne(b, a)


def _square(a: Expr) -> Expr:
    return a * a


def _reciprocal(a: Expr) -> Expr:
    return 1.0 / a


def _rsqrt(a: Expr) -> Expr:
    return 1.0 / _expr.sqrt(a)


def _isinf(a: Expr) -> Expr:
    return _expr.eq(_expr.absolute(a), float("inf"))


def _isfinite(a: Expr) -> Expr:
    return _expr.absolute(a) < float("inf")


def _sign(a: Expr) -> Expr:
    """Compute -1, 0 or 1, of a's type; 0 for NaN."""
    return (
        select(as_expr(0, a) < a, as_expr(1, a), select(a < 0, as_expr(-1, a), as_expr(0, a)))
        if a.dtype.kind != "b"
        else a
    )


def _angle(a: Expr) -> Expr:
    return select(a < 0, as_expr(3.141592653589793, a), select(_expr.isnan(a), a, as_expr(0.0, a)))


@one_function
def fmod(a: Expr, b: Expr) -> Expr:
    """Return C's fmod, exactly: a - b * trunc(a / b)."""
    if a.dtype.kind != "f":
        return a % b
    # Below this quotient, rounding makes its integer part at most 1 too large, and the remainder computed from it is exact.
    limit = 2.0 ** (22 if a.dtype is _expr.float32 else 51)
    rest = fma(-_expr.trunc(a / b), b, a)
    too_far = _ne(rest, 0) & ((rest < 0) ^ (a < 0))
    usual = copysign(select(too_far, rest + copysign(b, a), rest), a)
    x, y = _expr.load(0, a.dtype), _expr.load(1, a.dtype)
    size = _expr.absolute(y)
    simple = (_expr.absolute(x) < limit * size) & (size < float("inf"))
    return _expr.slow_path((a, b), usual, ~simple, x % y)


@one_function
def minimum(a: Expr, b: Any) -> Expr:
    """The smaller one; NaN if either is."""
    return _extreme(a, b, lambda x, y: x < y)


@one_function
def maximum(a: Expr, b: Any) -> Expr:
    """The larger one; NaN if either is."""
    return _extreme(a, b, lambda x, y: y < x)


def _extreme(a: Any, b: Any, before: Callable) -> Expr:
    a, b = (a, as_expr(b, a)) if isinstance(a, Expr) else (as_expr(a, b), b)
    chosen = select(before(a, b), a, b)  # b if unordered, which is right when b is the NaN
    return select(_expr.isnan(a), a, chosen) if a.dtype.kind == "f" else chosen


def signbit(a: Expr) -> Expr:
    """Whether the sign bit is set, that of -0.0 and of NaN included."""
    if a.dtype.kind == "f":
        return bitcast(a, _expr.int_like(a)) < 0
    return a < 0


# fmt: off
__all__ += ["where", "minimum", "maximum", "signbit", "fmod"]
eq, ne = _both("eq", _eq), _both("ne", _ne)
angle = _both("angle", _angle)
sqrt, rsqrt, square, reciprocal = (
    _both("sqrt", _expr.sqrt), _both("rsqrt", _rsqrt), _both("square", _square), _both("reciprocal", _reciprocal)
)
absolute, sign, sgn = _both("absolute", _expr.absolute), _both("sign", _sign), _both("sgn", _sign)
isnan, isinf, isfinite = _both("isnan", _expr.isnan), _both("isinf", _isinf), _both("isfinite", _isfinite)
floor, ceil, trunc = _both("floor", _expr.floor), _both("ceil", _expr.ceil), _both("trunc", _expr.trunc)
exp, exp2, expm1 = _both("exp"), _both("exp2"), _both("expm1")
log, log2, log10, log1p = _both("log"), _both("log2"), _both("log10"), _both("log1p")
sin, cos, tan = _both("sin"), _both("cos"), _both("tan")
asin, acos, atan, atan2 = _both("asin"), _both("acos"), _both("atan"), _both("atan2")
sinh, cosh, tanh = _both("sinh"), _both("cosh"), _both("tanh")
asinh, acosh, atanh = _both("asinh"), _both("acosh"), _both("atanh")
pow, hypot, sigmoid = _both("pow"), _both("hypot"), _both("sigmoid")
erf, erfc, erfinv, normal_cdf = _both("erf"), _both("erfc"), _both("erfinv"), _both("normal_cdf")
# fmt: on
