"""What is known of the values of a float expression: a clamped number, for example, lies between its bounds, and is never NaN."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from ..core.dtype import float32, float64
from .expr import Expr

Bounds = tuple[float, float]  # the least and the greatest value

_FORMATS = {float32: ("<I", "<f"), float64: ("<Q", "<d")}


def bounds(expr: Expr, known: Mapping[Expr, Bounds] | None = None) -> Bounds | None:
    """The bounds of a float that is never NaN; None if nothing is known. `known`: those of other expressions."""
    known = known or {}
    if expr in known:
        return known[expr]
    if expr.op == "const":
        value = _value(expr)
        return None if value is None or math.isnan(value) else (value, value)
    if expr.op != "select":
        return None
    condition, yes, no = expr.args
    either = [bounds(yes, _assumed(condition, True, known)), bounds(no, _assumed(condition, False, known))]
    if either[0] is None or either[1] is None:
        return None
    return min(either[0][0], either[1][0]), max(either[0][1], either[1][1])


def _assumed(condition: Expr, holds: bool, known: Mapping[Expr, Bounds]) -> Mapping[Expr, Bounds]:
    """What is known if a comparison of an expression with a constant holds, or does not."""
    if condition.op not in ("lt", "le"):
        return known
    expr, limit = condition.args
    value = _value(limit)
    # Of what may be NaN, a comparison that does not hold says nothing.
    if value is None or math.isnan(value) or not (holds or expr in known):
        return known
    low, high = known.get(expr, (-math.inf, math.inf))
    return {**known, expr: (low, min(high, value)) if holds else (max(low, value), high)}


def _value(expr: Expr) -> float | None:
    """Return the value of a constant of float32 or float64."""
    if expr.op != "const" or expr.dtype not in _FORMATS:
        return None
    bits, number = _FORMATS[expr.dtype]
    found: float = struct.unpack(number, struct.pack(bits, expr.value))[0]
    return found
