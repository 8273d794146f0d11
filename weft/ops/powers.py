"""Powers: exact for integers, by multiplication where the exponent is simple."""

from __future__ import annotations

import builtins
import functools
from typing import Any

from ..core.dtype import LEGACY_NAMES, DType, complex128, float64
from ..core.op import add_inplace
from ..core.tensor import Tensor
from ..engine import scalar as s
from ..families.faces import check_operands, chosen
from ..families.map import COPY, Map, Types, keep, normalise, promote_bool, refuse, spec_or_type
from .pointwise import OPS
from .representation import check_fits

# ---- Powers ------------------------------------------------------------------------------------------------------


def _pow(a, b):
    if isinstance(a, s.Expr) and a.dtype.kind != "f":
        return _integer_pow(a, b)
    return s.pow(a, b)


def _integer_pow(a, b):
    """Square and multiply, modulo the width of the type; with a negative exponent only 1 and -1 have an integer power."""
    result, power = s.lift(1, a), a
    for bit in range(8 * a.dtype.itemsize - (a.dtype.kind == "i")):
        result = s.where(s.eq((b >> bit) & 1, 1), result * power, result)
        power = power * power
    if a.dtype.kind == "u":
        return result
    ones = s.where(s.eq(b & 1, 1), a, s.lift(1, a))
    inverse = s.where(s.eq(a, 1) | s.eq(a, -1), ones, s.lift(0, a))
    return s.where(b < 0, inverse, result)


@functools.lru_cache(maxsize=256)
def _power_of(exponent: int) -> Map:
    """Integers to a fixed exponent >= 0: the shortest chain of squares and products."""

    def element(a):
        result, power, left = s.lift(1, a), a, exponent
        while left:
            if left & 1:
                result = result * power
            left >>= 1
            power = power * power
        return result

    return Map("pow", promote_bool, element)


def to_double(common: DType) -> Types:
    return keep(complex128 if common.is_complex else float64)


POW = Map("pow", keep, _pow, check=refuse("b", message="\"pow\" not implemented for '{dtype}'"))
FLOAT_POWER = Map("float_power", to_double, s.pow)
CUBE = Map("pow", keep, lambda a: a * a * a)
INVERSE_SQUARE = Map("pow", keep, lambda a: s.reciprocal(a * a))
# Exponents for which floats need no logarithm.
SIMPLE_POWERS = {
    0.5: OPS["sqrt"], 1: COPY, 2: OPS["square"], 3: CUBE, -0.5: OPS["rsqrt"], -1: OPS["reciprocal"], -2: INVERSE_SQUARE,
}  # fmt: skip
_SIMPLE_FLOAT_POWERS = {e: Map("float_power", to_double, row.element) for e, row in SIMPLE_POWERS.items()}


@chosen("function method inplace")
def pow(input, exponent):
    """input to the power of `exponent`, elementwise; either may be a number.

    Integers wrap around. Raises: RuntimeError for integers to a negative number.
    """
    check_operands("pow", "input other", input, exponent)
    input, exponent = normalise("pow", (input, exponent))
    if isinstance(exponent, Tensor) or not isinstance(input, Tensor):
        return POW, (input, exponent)
    dtype = input.spec.dtype
    if type(exponent) is not builtins.complex and dtype.category >= 2 and exponent in SIMPLE_POWERS:
        return SIMPLE_POWERS[exponent], (input,)
    if type(exponent) is int and dtype.category < 2:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        check_fits(exponent, dtype)
        return _power_of(exponent), (input,)
    return POW, (input, exponent)


@chosen("function method inplace")
def float_power(input, exponent):
    """input to the power of `exponent`, computed in float64 or complex128."""
    check_operands("float_power", "input other", input, exponent)
    if isinstance(exponent, (int, float)) and exponent in _SIMPLE_FLOAT_POWERS:
        return _SIMPLE_FLOAT_POWERS[exponent], (input,)
    return FLOAT_POWER, (input, exponent)


def _float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place form of `float_power`, for float64 and complex128."""
    types = FLOAT_POWER._types(
        [spec_or_type(operand) for operand in normalise("float_power", (self, exponent))]
    )
    if types.result is not self.spec.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {LEGACY_NAMES[self.spec.dtype]} but the operation's result "
            f"requires dtype {LEGACY_NAMES[types.result]}"
        )
    return FLOAT_POWER.inplace(self, exponent)


add_inplace("float_power", _float_power_)
