"""Computes pow: exp of a product with a log, both in more bits."""

from __future__ import annotations

from ...core.dtype import float64
from ..expr import Expr, absolute, const, copysign, eq, isnan, ne, one_function, rint, select
from ..wide import widen
from .extended import wide_exp, wide_log, wide_scale
from .floats import FORMAT, INF, NAN, clamp


@one_function
def pow(x: Expr, y: Expr) -> Expr:
    """Compute exp(y log |x|) with the sign and the special cases of C's pow (C11 F.10.4.4)."""
    dtype = x.dtype
    size = absolute(x)
    usual = (const(0.0, dtype) < size) & (size < INF)
    base, lifted = select(usual, size, 1.0), None
    if dtype is float64:  # subnormal numbers of float32 are normal there
        tiny = base < FORMAT[dtype].smallest_normal
        base, lifted = select(tiny, base * 2.0**64, base), select(tiny, const(-64.0, dtype), 0.0)
    exponent = widen(clamp(y, -(2.0**66), 2.0**66))  # beyond, the result is 0, 1 or infinite anyway
    marked, power = wide_exp(wide_log(widen(base), lifted) * exponent, dtype)
    z = wide_scale(marked, power, dtype)
    zero_or_infinite = select(eq(eq(size, 0), const(0.0, dtype) < y), const(0.0, dtype), INF)
    z = select(usual, z, zero_or_infinite)
    half = y * 0.5
    is_whole = eq(rint(y), y)
    is_odd = is_whole & ne(rint(half), half)
    z = select(is_odd, copysign(z, x), z)
    z = select((x < 0) & ~is_whole & usual, NAN, z)
    z = select(isnan(x) | isnan(y), const(NAN, dtype), z)
    return select(eq(x, 1) | eq(y, 0), const(1.0, dtype), z)
