"""Powers. Integer powers are exact, and simple exponents are computed by multiplication."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from typing import Any

from ...core.derivative import nondifferentiable
from ...core.device import device
from ...core.dtype import LEGACY_NAMES, DType, bool_, complex128, float64
from ...core.limits import check_number
from ...core.public import add_inplace
from ...core.recording import needs_recording
from ...core.size import Size
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.calls import check_operands, chosen
from ...families.map import NUMBERS, Map, Types, normalise, promote_bool, refuse, same_dtype, spec_or_type
from ..tensor.rules import conj, pass_through, zero_grad

# ---- Powers ------------------------------------------------------------------------------------------------------


def _pow(a, b):
    if isinstance(a, s.Expr) and a.dtype.kind != "f":
        return _integer_pow(a, b)
    return s.pow(a, b)


def _integer_pow(a, b):
    """Square and multiply, modulo the width of the type. With a negative exponent only 1 and -1 have an integer power."""
    result, power = s.as_expr(1, a), a
    for bit in range(8 * a.dtype.itemsize - (a.dtype.kind == "i")):
        result = s.where(s.eq((b >> bit) & 1, 1), result * power, result)
        power = power * power
    if a.dtype.kind == "u":
        return result
    ones = s.where(s.eq(b & 1, 1), a, s.as_expr(1, a))
    inverse = s.where(s.eq(a, 1) | s.eq(a, -1), ones, s.as_expr(0, a))
    return s.where(b < 0, inverse, result)


@functools.lru_cache(maxsize=256)
def _power_of(exponent: int) -> Map:
    """Raise integers to a fixed exponent >= 0, by squares and products."""

    def element(a):
        result, power, left = s.as_expr(1, a), a, exponent
        while left:
            if left & 1:
                result = result * power
            left >>= 1
            power = power * power
        return result

    return Map("pow", promote_bool, element, derivative=nondifferentiable)


def _one(a):
    """a ** 0 is 1, as in PyTorch. This includes complex numbers whose power, computed by the logarithm, would be NaN."""
    return (
        s.Complex(s.as_expr(1.0, a.real), s.as_expr(0.0, a.real))
        if isinstance(a, s.Complex)
        else s.as_expr(1, a)
    )


def to_double(common: DType) -> Types:
    return same_dtype(complex128 if common.is_complex else float64)


def _base_rule(ct, out, a, b):
    if isinstance(b, NUMBERS):
        return zero_grad(ct, None) if b == 0 else ct * conj(b * a ** (b - 1))
    less = b + -1  # `b - 1` is not defined for bools
    return (ct * (b * a**less).conj()).masked_fill(b == 0, 0)


def _exponent_rule(ct, out, a, b):
    """The derivative of 0 ** b is 0 for b >= 0, because 0 ** b is constant there."""
    a = a.to(out.dtype) if isinstance(a, Tensor) else out.new_tensor(a)
    slope = (out * a.log()).conj()
    return ct * slope.masked_fill((a == 0) & (b.real >= 0), 0)


def _pow_node(inputs, static):
    """Number the nodes as PyTorch: 0 for a number as exponent, 1 for two tensors, 2 for a number as base."""
    if not isinstance(inputs[0], Tensor):
        return "PowBackward2"
    return "PowBackward1" if isinstance(inputs[-1], Tensor) and len(inputs) > 1 else "PowBackward0"


_POWER: dict[str, Any] = {"derivative": (_base_rule, _exponent_rule), "node_name": _pow_node}


class _Power(Map):
    def _layout(self, operands: Sequence[Any], sizes: Size, dtype: DType, where: device) -> Spec:
        if type(operands[0]) is not Spec:  # powers of a number are contiguous, as in PyTorch
            return contiguous_spec(sizes, dtype, where)
        return super()._layout(operands, sizes, dtype, where)


POW = _Power(
    "pow", same_dtype, _pow, check=refuse("b", message="\"pow\" not implemented for '{dtype}'"), **_POWER
)
# PyTorch fills the result with ones, also where the exponent is infinite or NaN. Real powers of 1 are 1 anyway.
POWER_OF_ONE = _Power("pow", same_dtype, lambda a, b: _one(b), **_POWER)
FLOAT_POWER = Map("float_power", to_double, s.pow, **_POWER)
# fmt: off
_SIMPLE = (
    # exponents for which floats need no logarithm
    # exponent  one element                      derivative
    (0,         _one,                            zero_grad),
    (0.5,       s.sqrt,                          lambda ct, out, a: ct * (0.5 * a.rsqrt()).conj()),
    (1,         lambda a: a,                     pass_through),
    (2,         s.square,                        lambda ct, out, a: ct * (2 * a).conj()),
    (3,         lambda a: a * a * a,             lambda ct, out, a: ct * (3 * (a * a)).conj()),
    (-0.5,      s.rsqrt,                         lambda ct, out, a: ct * (-0.5 * (a.rsqrt() / a)).conj()),
    (-1,        s.reciprocal,                    lambda ct, out, a: -ct * (out * out).conj()),
    (-2,        lambda a: s.reciprocal(a * a),   lambda ct, out, a: ct * (-2 * (out / a)).conj()),
)
# fmt: on
SIMPLE_POWERS: dict[Any, Map] = {
    e: Map("pow", same_dtype, element, derivative=rule, node_name=_pow_node) for e, element, rule in _SIMPLE
}
_SIMPLE_FLOAT_POWERS = {
    e: Map("float_power", to_double, element, derivative=rule, node_name=_pow_node)
    for e, element, rule in _SIMPLE
}


@chosen("function method inplace")
def pow(input, exponent):
    """input to the power of `exponent`, elementwise; either may be a number.

    Integers wrap around. Raises: RuntimeError for integers to a negative number.
    """
    check_operands("pow", "input other", input, exponent)
    input, exponent = normalise("pow", (input, exponent))
    if not isinstance(input, Tensor):
        is_complex = isinstance(input, builtins.complex) or exponent.is_complex()
        return POWER_OF_ONE if is_complex and input == 1 else POW, (input, exponent)
    if isinstance(exponent, Tensor):
        return POW, (input, exponent)
    dtype = input.spec.dtype
    if type(exponent) is builtins.complex:
        keeps_dtype = dtype.is_complex
    else:
        keeps_dtype = dtype.category >= 2 or (type(exponent) is bool and dtype is bool_)
    if keeps_dtype and exponent in SIMPLE_POWERS:
        return SIMPLE_POWERS[exponent], (input,)
    if type(exponent) is int and dtype.category < 2:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        check_number(exponent, dtype)
        return _power_of(exponent), (input,)
    return POW, (input, exponent)


@chosen("function method")
def float_power(input, exponent):
    """input to the power of `exponent`, computed in float64 or complex128."""
    check_operands("float_power", "input other", input, exponent)
    keeps_dtype = isinstance(exponent, (int, float)) or (
        isinstance(exponent, builtins.complex) and input.spec.dtype.is_complex
    )
    if keeps_dtype and exponent in _SIMPLE_FLOAT_POWERS:
        return _SIMPLE_FLOAT_POWERS[exponent], (input,)
    # Convert now, because backward needs the operands and they may be overwritten until then.
    if needs_recording((input, exponent)):
        wide = FLOAT_POWER._types([spec_or_type(each) for each in (input, exponent)]).result
        input, exponent = (each.to(wide) if isinstance(each, Tensor) else each for each in (input, exponent))
    return FLOAT_POWER, (input, exponent)


def _float_power_(self: Tensor, exponent: Any) -> Tensor:
    """Apply in place `float_power`, for float64 and complex128."""
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
