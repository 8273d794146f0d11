"""Defines operations on the bits of integers and bools."""

from __future__ import annotations

from ...core.derivative import nondifferentiable
from ...engine import scalar as s
from ...families.calls import publish
from ...families.map import ONLY_BITS, Map, refuse, same_dtype
from .pointwise import OPS


def _left_shift(a, b):
    """Shift left. The result is zero if the count is at least the number of bits, or negative."""
    return s.where(_beyond(a, b), s.as_expr(0, a), a << b)


def _right_shift(a, b):
    """Shift right. The result is 0, or -1 for negative numbers, if the count is at least the number of bits, or negative."""
    width = 8 * a.dtype.itemsize
    gone = s.as_expr(0, a) if a.dtype.kind == "u" else a >> (width - 1)
    return s.where(_beyond(a, b), gone, a >> b)


def _beyond(a, b):
    return (b < 0) | (s.as_expr(8 * a.dtype.itemsize - 1, b) < b)


# fmt: off
_ROWS = (
    # name                 one element             rejects                                                what
    ("bitwise_and",        lambda a, b: a & b,     ONLY_BITS,                                             "input & other"),
    ("bitwise_or",         lambda a, b: a | b,     ONLY_BITS,                                             "input | other"),
    ("bitwise_xor",        lambda a, b: a ^ b,     ONLY_BITS,                                             "input ^ other"),
    ("bitwise_left_shift", _left_shift,            refuse("bfc", message='"lshift_cpu" not implemented for \'{dtype}\''), "input << other"),
    ("bitwise_right_shift", _right_shift,          refuse("bfc", message='"rshift_cpu" not implemented for \'{dtype}\''), "input >> other"),
)
# fmt: on
for _name, _element, _check, _what in _ROWS:
    OPS[_name] = Map(_name, same_dtype, _element, check=_check, derivative=nondifferentiable)
    publish(OPS[_name], 2, "function method inplace", numbers="input other", doc=f"{_what}, elementwise.")
OPS["bitwise_not"] = Map(
    "bitwise_not", same_dtype, lambda a: ~a, check=ONLY_BITS, derivative=nondifferentiable
)
publish(OPS["bitwise_not"], 1, "function method inplace", doc="All bits flipped; of bools, the opposite.")
