"""Elementwise arithmetic and functions. A row is the whole definition of an op; how to add one: `docs/adding-an-op.md`."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtype import (
    DTYPES,
    LEGACY_NAMES,
    DType,
    bool_,
    complex128,
    float16,
    float32,
    float64,
    int32,
    uint32,
    uint64,
)
from ..core.op import add_function, add_inplace, public
from ..core.promotion import common_dtype
from ..core.return_types import return_type
from ..core.tensor import Tensor
from ..engine import scalar as s
from ..engine.convert import convert
from ..families.library import LibraryMap, array
from ..families.map import (
    COPY,
    NO_BOOL_OR_COMPLEX,
    NO_COMPLEX,
    ONLY_FLOATS,
    Map,
    Types,
    add_forms,
    check_operands,
    chosen,
    inplace_of,
    inplace_unary,
    keep,
    normalise,
    promote_bool,
    publish,
    refuse,
    spec_or_type,
    to_bool,
    to_float,
    to_real,
    to_real_float,
)


def is_float(a: Any) -> bool:
    return isinstance(a, s.Expr) and a.dtype.kind == "f"


def floats_only(function: Callable) -> Callable:
    """`function` for floats, the identity for integers."""
    return lambda a: function(a) if is_float(a) else a


def float_to_bool(common: DType) -> Types:
    """Ask a question of a float: integers count as the default float."""
    return Types(to_float(common).operands, bool_)


# ---- One operand -------------------------------------------------------------------------------------------------


def _frac(a):
    return a - s.trunc(a)


def _relu(a):
    return s.where(a < 0, s.lift(0, a), a)


def _sinc(a):
    angle = a * math.pi
    return s.where(s.eq(a, 0), 1.0, s.sin(angle) / angle)


def _isreal(a):
    return s.eq(a.imag, 0) if isinstance(a, s.Complex) else s.eq(a, a) | s.ne(a, a)


NO_BOOL_ABS = refuse("b")
_NEGATION = refuse(
    "b",
    RuntimeError,
    "Negation, the `-` operator, on a bool tensor is not supported. "
    "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
)
_SIGN = refuse(
    "c",
    message="Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
)
_ROUNDING = refuse("c", message="{name} is not supported for complex inputs")
_INFINITE = refuse("c", RuntimeError, "{name} does not support complex inputs.")
_SIGNBIT = refuse("c", message="signbit is not implemented for complex tensors.")
_DEGREES = refuse("c", RuntimeError, "{name} is not supported for complex tensors.")
_RELU = refuse("b", RuntimeError, "Boolean inputs not supported for relu")
_NO_COMPLEX_RELU = refuse("c", message="clamp is not supported for complex types")

# fmt: off
_UNARY = (
    # names                       promotion      one element              rejects        what
    ("abs absolute",              to_real,       s.absolute,              NO_BOOL_ABS,   "the absolute value"),
    ("sgn",                       keep,          s.sgn,                   None,          "the sign; of a complex number, its direction"),
    ("sign",                      keep,          s.sign,                  _SIGN,         "-1, 0 or 1; 0 for NaN"),
    ("angle",                     to_real_float, s.angle,                 None,          "the angle in the complex plane, in radians"),
    ("neg negative",              keep,          lambda a: -a,            _NEGATION,     "the negative"),
    ("reciprocal",                to_float,      s.reciprocal,            None,          "1 / input"),
    ("square",                    promote_bool,  s.square,                None,          "input * input"),
    ("sqrt",                      to_float,      s.sqrt,                  None,          "the square root"),
    ("rsqrt",                     to_float,      s.rsqrt,                 None,          "1 / sqrt(input)"),
    ("exp",                       to_float,      s.exp,                   None,          "e to the power of input"),
    ("exp2 special.exp2",         to_float,      s.exp2,                  None,          "2 to the power of input"),
    ("expm1 special.expm1",       to_float,      s.expm1,                 None,          "exp(input) - 1, accurate near 0"),
    ("log",                       to_float,      s.log,                   None,          "the natural logarithm"),
    ("log2",                      to_float,      s.log2,                  None,          "the logarithm to base 2"),
    ("log10",                     to_float,      s.log10,                 None,          "the logarithm to base 10"),
    ("log1p special.log1p",       to_float,      s.log1p,                 None,          "log(1 + input), accurate near 0"),
    ("sin",                       to_float,      s.sin,                   None,          "the sine of an angle in radians"),
    ("cos",                       to_float,      s.cos,                   None,          "the cosine of an angle in radians"),
    ("tan",                       to_float,      s.tan,                   None,          "the tangent of an angle in radians"),
    ("asin arcsin",               to_float,      s.asin,                  None,          "the inverse sine, in radians"),
    ("acos arccos",               to_float,      s.acos,                  None,          "the inverse cosine, in radians"),
    ("atan arctan",               to_float,      s.atan,                  None,          "the inverse tangent, in radians"),
    ("sinh",                      to_float,      s.sinh,                  None,          "the hyperbolic sine"),
    ("cosh",                      to_float,      s.cosh,                  None,          "the hyperbolic cosine"),
    ("tanh",                      to_float,      s.tanh,                  None,          "the hyperbolic tangent"),
    ("asinh arcsinh",             to_float,      s.asinh,                 None,          "the inverse hyperbolic sine"),
    ("acosh arccosh",             to_float,      s.acosh,                 None,          "the inverse hyperbolic cosine"),
    ("atanh arctanh",             to_float,      s.atanh,                 None,          "the inverse hyperbolic tangent"),
    ("sinc special.sinc",         to_float,      _sinc,                   None,          "sin(pi input) / (pi input); 1 at 0"),
    ("sigmoid special.expit",     to_float,      s.sigmoid,               None,          "1 / (1 + exp(-input))"),
    ("erf special.erf",           to_float,      s.erf,                   NO_COMPLEX,    "the error function"),
    ("erfc special.erfc",         to_float,      s.erfc,                  NO_COMPLEX,    "1 - erf(input), accurate for large input"),
    ("erfinv special.erfinv",     to_float,      s.erfinv,                NO_COMPLEX,    "the inverse of the error function"),
    ("floor",                     keep,          floats_only(s.floor),    _ROUNDING,     "the largest integer that is not above"),
    ("ceil",                      keep,          floats_only(s.ceil),     _ROUNDING,     "the smallest integer that is not below"),
    ("trunc fix",                 keep,          floats_only(s.trunc),    _ROUNDING,     "the integer part"),
    ("frac",                      keep,          _frac,                   ONLY_FLOATS,   "what trunc takes away"),
    ("deg2rad",                   to_float,      lambda a: a * (math.pi / 180), _DEGREES, "degrees as radians"),
    ("rad2deg",                   to_float,      lambda a: a * (180 / math.pi), _DEGREES, "radians as degrees"),
)
_QUESTIONS = (
    # names                       promotion      one element              rejects        what
    ("isnan",                     float_to_bool, s.isnan,                 None,          "whether an element is NaN"),
    ("isinf",                     float_to_bool, s.isinf,                 None,          "whether an element is infinite"),
    ("isfinite",                  float_to_bool, s.isfinite,              None,          "whether an element is neither NaN nor infinite"),
    ("isposinf",                  float_to_bool, lambda a: s.eq(a, math.inf),  _INFINITE, "whether an element is +infinity"),
    ("isneginf",                  float_to_bool, lambda a: s.eq(a, -math.inf), _INFINITE, "whether an element is -infinity"),
    ("isreal",                    to_bool,       _isreal,                 None,          "whether an element has no imaginary part"),
    ("signbit",                   to_bool,       s.signbit,               _SIGNBIT,      "whether the sign bit is set, that of -0.0 included"),
)
# fmt: on

# Ops by name, for those that compose or derive them.
OPS: dict[str, Map] = {}


def _publish_unary(table, forms: str) -> None:
    for names, promotion, element, check, what in table:
        name, *aliases = names.split()
        OPS[name] = Map(name, promotion, element, check=check)
        publish(OPS[name], 1, forms, *aliases, doc=f"Of each element {what}.")


_publish_unary(_UNARY, "function method inplace")


def _abs_(self: Tensor) -> Tensor:
    """In-place form of `abs`. Raises: RuntimeError for complex tensors."""
    if self.spec.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return OPS["abs"].inplace(self)


for _name in ("abs", "absolute"):
    add_inplace(_name, _abs_)
add_function("abs_", _abs_)
_publish_unary(_QUESTIONS, "function method")
RELU = Map("relu", keep, _relu, check=lambda name, dtype: (_RELU(name, dtype), _NO_COMPLEX_RELU(name, dtype)))
relu = publish(RELU, 1, "function method inplace", doc="max(input, 0) of each element.")


CONJ = Map("conj_physical", keep, s.conj)
add_inplace("conj_physical", inplace_unary(CONJ))
add_function("conj_physical_", Tensor.conj_physical_)


@public("function method", out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, carried out at once; a real tensor itself."""
    return CONJ(input) if input.spec.dtype.is_complex else input


@public("function method")
def positive(input: Tensor) -> Tensor:
    """The tensor itself. Raises: RuntimeError for bool."""
    if input.spec.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ---- Sums and products -----------------------------------------------------------------------------------------------


def _add(a, b):
    return a | b if isinstance(a, s.Expr) and a.dtype is bool_ else a + b


_BOOL_SUBTRACTION = refuse(
    "b",
    RuntimeError,
    "Subtraction, the `-` operator, with two bool tensors is not supported. "
    "Use the `^` or `logical_xor()` operator instead.",
)
# fmt: off
ADD        = Map("add", keep,     _add,                                                   wide=True)
ADD_SCALED = Map("add", keep,     lambda a, b, alpha: _add(a, alpha * b),    deciding=2,  wide=True)
SUB        = Map("sub", keep,     lambda a, b: a - b,                        check=_BOOL_SUBTRACTION, wide=True)
SUB_SCALED = Map("sub", keep,     lambda a, b, alpha: a - alpha * b, deciding=2, check=_BOOL_SUBTRACTION, wide=True)
MUL        = Map("mul", keep,     lambda a, b: a * b,                                     wide=True)
DIV        = Map("div", to_float, lambda a, b: a / b,                                     wide=True)
# fmt: on

plain_add = publish(ADD, 2, "", numbers="all")
plain_sub = publish(SUB, 2, "", numbers="all")
plain_div = publish(DIV, 2, "", numbers="all")
mul = publish(MUL, 2, "function method inplace", "multiply", numbers="all", doc="input * other, elementwise.")


def _with_alpha(name: str, plain: Callable, alias: str, op: Map, scaled: Map, what: str) -> Callable:
    """`function(input, other, *, alpha=1, out=None)` and its in-place form."""
    plain_inplace = inplace_of(op)

    def function(input, other, *, alpha=1, out=None):
        if type(alpha) is int and alpha == 1:
            return plain(input, other, out=out)
        _check_alpha(alpha, common_dtype(map(spec_or_type, normalise(name, (input, other)))))
        return scaled(input, other, alpha) if out is None else scaled.into(out, input, other, alpha)

    def method(self, other, *, alpha=1):
        if type(alpha) is int and alpha == 1:
            return plain_inplace(self, other)
        _check_alpha(alpha, common_dtype(map(spec_or_type, normalise(name, (self, other)))))
        return scaled.inplace(self, other, alpha)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = what
    method.__name__ = method.__qualname__ = f"{name}_"
    for each in (name, alias):
        if each:
            add_forms(each, ("function", "method", "inplace"), function, method, function_inplace=False)
    return function


def _check_alpha(alpha: Any, dtype: DType) -> None:
    if isinstance(alpha, bool):
        if dtype is not bool_:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
    elif isinstance(alpha, float) and dtype.category < 2:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    elif isinstance(alpha, builtins.complex) and not dtype.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


add = _with_alpha("add", plain_add, "", ADD, ADD_SCALED, "input + alpha * other, elementwise.")
sub = _with_alpha("sub", plain_sub, "subtract", SUB, SUB_SCALED, "input - alpha * other, elementwise.")


@chosen("function")
def rsub(input, other, *, alpha=1):
    """other - alpha * input, elementwise."""
    check_operands("rsub", "other", input, other)
    if alpha != 1:
        _check_alpha(alpha, common_dtype(map(spec_or_type, normalise("rsub", (other, input)))))
    return (SUB, (other, input)) if alpha == 1 else (SUB_SCALED, (other, input, alpha))


# ---- Division ----------------------------------------------------------------------------------------------------


class Division(Map):
    """Integer division: a zero divisor is an error, so divisors are looked at first."""

    is_kernel = False

    def __call__(self, *operands):
        self._refuse_zero(operands)
        return super().__call__(*operands)

    def write(self, target, *operands):
        self._refuse_zero(operands)
        return super().write(target, *operands)

    def _refuse_zero(self, operands) -> None:
        if any(type(o) is float or isinstance(o, Tensor) and o.spec.dtype.category > 1 for o in operands):
            return
        operands = normalise(self.name, operands)
        dtype = self._types([spec_or_type(operand) for operand in operands]).operands
        dividend, divisor = operands
        if dtype.category > 1 or isinstance(dividend, Tensor) and dividend.spec.numel == 0:
            return
        if not isinstance(divisor, Tensor):
            zero = int(divisor) % 2 ** (8 * dtype.itemsize) == 0
        elif not divisor.spec.device.backend.has_memory:
            return
        else:
            zero = not array(divisor).astype(dtype.numpy, copy=False).all()
        if zero:
            raise RuntimeError("ZeroDivisionError")


def _safe_divisor(a, b):
    """For signed integers: the quotient of the smallest by -1 traps, so divide by 1 and negate."""
    return s.eq(b, -1), s.where(s.eq(b, -1), s.lift(1, b), b)


def _div_trunc(a, b):
    if is_float(a):
        return s.trunc(a / b)
    if a.dtype.kind == "u":
        return a / b
    negate, safe = _safe_divisor(a, b)
    return s.where(negate, -a, a / safe)


def _fmod(a, b):
    if a.dtype.kind != "i":
        return a % b
    negate, safe = _safe_divisor(a, b)
    return s.where(negate, s.lift(0, a), a % safe)


def _remainder(a, b):
    rest = _fmod(a, b)
    if a.dtype.kind == "u":
        return rest
    return s.where(s.ne(rest, 0) & _differ_in_sign(rest, b), rest + b, rest)


def _differ_in_sign(a, b):
    return (a < 0) ^ (b < 0)


def _floor_divide(a, b):
    if a.dtype.kind == "u":
        return a / b
    if is_float(a):
        return _floor_divide_floats(a, b)
    quotient, rest = _div_trunc(a, b), _fmod(a, b)
    return s.where(s.ne(rest, 0) & _differ_in_sign(rest, b), quotient - 1, quotient)


def _floor_divide_floats(a, b):
    """From the exact remainder, as Python does it: floor(a / b) would round up across an integer."""
    rest = a % b
    quotient = (a - rest) / b
    quotient = s.where(s.ne(rest, 0) & _differ_in_sign(rest, b), quotient - 1, quotient)
    whole = s.floor(quotient)
    whole = s.where(s.lift(0.5, a) < quotient - whole, whole + 1, whole)
    whole = s.where(s.eq(quotient, 0), s.copysign(s.lift(0.0, a), a / b), whole)
    return s.where(s.eq(b, 0), a / b, whole)


# fmt: off
FLOOR_DIVIDE = Division("floor_divide", keep, _floor_divide, check=refuse("bc", message='"div_floor_cpu" not implemented for \'{dtype}\''))
DIV_TRUNC    = Division("div",          keep, _div_trunc,    check=refuse("bc", message='"div_trunc_cpu" not implemented for \'{dtype}\''))
REMAINDER    = Division("remainder",    keep, _remainder,    check=NO_BOOL_OR_COMPLEX)
FMOD         = Division("fmod",         keep, _fmod,         check=NO_BOOL_OR_COMPLEX)
floor_divide = publish(FLOOR_DIVIDE, 2, "function method inplace", numbers="all", doc="The largest integers not above input / other.")
remainder    = publish(REMAINDER,    2, "function method inplace", numbers="input other", doc="Python's input % other: the sign is that of other.")
fmod         = publish(FMOD,         2, "function method inplace",                        doc="C's fmod: the sign is that of input.")
# fmt: on


@chosen("function method inplace", "divide")
def div(input, other, *, rounding_mode=None):
    """input / other, elementwise; `rounding_mode` "floor" or "trunc" rounds the quotient to an integer.

    Integers divide to the default float unless rounded. Raises: RuntimeError for an integer divisor of zero if rounded.
    """
    if rounding_mode is None:
        return DIV, (input, other)
    if rounding_mode == "floor":
        return FLOOR_DIVIDE, (input, other)
    if rounding_mode == "trunc":
        return DIV_TRUNC, (input, other)
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
    )


@chosen("function method inplace")
def true_divide(input, other):
    """input / other, elementwise."""
    return DIV, (input, other)


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


POW = Map("pow", keep, _pow, check=refuse("b", message='"pow" not implemented for \'{dtype}\''))
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


def check_fits(value: Any, dtype: DType) -> None:
    """Raises: RuntimeError for a number that the dtype cannot hold."""
    if dtype is bool_ or dtype.is_complex:
        return
    if isinstance(value, builtins.complex) and value.imag:
        fits = False
    elif dtype.kind in "ui":
        info = np.iinfo(dtype.numpy)
        # PyTorch lets negative numbers wrap around in unsigned types.
        fits = value != value or (-info.max if dtype.kind == "u" else info.min) <= value.real <= info.max
    else:
        fits = not math.isfinite(value.real) or abs(value.real) <= largest(dtype)
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {_C_NAMES.get(dtype.name, dtype.name)} without overflow")


_C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "float32": "float",
    "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
}  # fmt: skip


def largest(dtype: DType) -> float:
    """The largest finite number of a real floating point dtype."""
    if dtype in (float32, float64):
        return float(np.finfo(dtype.numpy).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype.numpy).max)


@chosen("function method inplace")
def float_power(input, exponent):
    """input to the power of `exponent`, computed in float64 or complex128."""
    check_operands("float_power", "input other", input, exponent)
    if isinstance(exponent, (int, float)) and exponent in _SIMPLE_FLOAT_POWERS:
        return _SIMPLE_FLOAT_POWERS[exponent], (input,)
    return FLOAT_POWER, (input, exponent)


def _float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place form of `float_power`, for float64 and complex128."""
    types = FLOAT_POWER._types([spec_or_type(operand) for operand in normalise("float_power", (self, exponent))])
    if types.result is not self.spec.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {LEGACY_NAMES[self.spec.dtype]} but the operation's result "
            f"requires dtype {LEGACY_NAMES[types.result]}"
        )
    return FLOAT_POWER.inplace(self, exponent)


Tensor.float_power_ = _float_power_


@chosen("function method inplace")
def ldexp(input, other):
    """input * 2**other, elementwise."""
    check_operands("ldexp", "", input, other)
    return MUL, (input, POW(2.0, other))


# ---- Two and three operands ------------------------------------------------------------------------------------------


def _logaddexp(exp: Callable, factor: float) -> Callable:
    """log(exp(a) + exp(b)), from the larger and the difference."""

    def element(a, b):
        if isinstance(a, s.Complex):
            return _complex_logaddexp(a, b)
        larger, smaller = s.maximum(a, b), s.minimum(a, b)
        total = larger + s.log1p(exp(smaller - larger)) * factor
        return s.where(s.isinf(a) & s.eq(a, b), a, total)

    return element


def _complex_logaddexp(a, b):
    swap = a.real < b.real
    larger, smaller = s.where(swap, b, a), s.where(swap, a, b)
    return larger + s.log(s.exp(smaller - larger) + 1.0)


def _xlogy(a, b):
    return s.where(s.isnan(b), b, s.where(s.eq(a, 0), s.lift(0.0, a), a * s.log(b)))


def _heaviside(a, b):
    above = s.where(s.lift(0, a) < a, s.lift(1, b), s.lift(0, b))
    return s.where(s.eq(a, 0), b, above)


def _lerp(a, b, weight):
    """From the nearer end, so that weights 0 and 1 give the ends exactly."""
    near = s.absolute(weight) < 0.5
    return s.where(near, a + weight * (b - a), b - (b - a) * (1.0 - weight))


_HEAVISIDE = refuse("c", RuntimeError, "heaviside is not yet implemented for complex tensors.")
# fmt: off
_BINARY = (
    # names                    promotion  one element                  rejects       numbers  what
    ("atan2 arctan2",          to_float,  s.atan2,                     NO_COMPLEX,   "",      "the angle of the point (other, input), in radians"),
    ("hypot",                  keep,      s.hypot,                     ONLY_FLOATS,  "",      "sqrt(input**2 + other**2) without overflow"),
    ("copysign",               to_float,  s.copysign,                  NO_COMPLEX,   "other", "input with the sign of other"),
    ("xlogy special.xlogy",    to_float,  _xlogy,                      NO_COMPLEX,   "input other", "input * log(other); 0 where input is 0"),
    ("logaddexp",              keep,      _logaddexp(s.exp, 1.0),      refuse("bui"), "",     "log(exp(input) + exp(other))"),
    ("logaddexp2",             keep,      _logaddexp(s.exp2, 1 / math.log(2)), ONLY_FLOATS, "", "log2(2**input + 2**other)"),
)
# fmt: on
for _names, _promotion, _element, _check, _numbers, _what in _BINARY:
    _name, *_aliases = _names.split()
    OPS[_name] = Map(_name, _promotion, _element, check=_check)
    _forms = "function method" if _name.startswith("logadd") else "function method inplace"
    publish(OPS[_name], 2, _forms, *_aliases, numbers=_numbers, doc=f"{_what}, elementwise.")

HEAVISIDE = Map("heaviside", keep, _heaviside, check=_HEAVISIDE)


@chosen("function method inplace")
def heaviside(input, values):
    """0 where input < 0, `values` where it is 0, 1 where input > 0. Raises: RuntimeError for different dtypes."""
    check_operands("heaviside", "", input, values)
    if values.spec.dtype is not input.spec.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return HEAVISIDE, (input, values)


@functools.cache
def _nextafter(dtype: DType) -> Map:
    """The neighbours of a dtype are one bit pattern apart, so each dtype has its own row."""
    bits = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[dtype.itemsize]

    def element(a, b):
        own = DTYPES[bits]
        start = convert(a, dtype)
        pattern = s.bitcast(start, own)
        sign = s.const(1 << (8 * dtype.itemsize - 1), own)
        away = s.where((a < b) ^ (a < 0), pattern + 1, pattern - 1)
        smallest = s.const(1, own) | (s.bitcast(convert(b, dtype), own) & sign)
        stepped = s.where(s.eq(a, 0), smallest, away)
        moved = convert(s.bitcast(stepped, dtype), a.dtype)
        result = s.where(s.eq(a, b), b, moved)
        return s.where(s.isnan(a), a, s.where(s.isnan(b), b, result))

    return Map("nextafter", keep, element, check=ONLY_FLOATS)


@chosen("function method inplace")
def nextafter(input, other):
    """The next representable number after `input` towards `other`."""
    check_operands("nextafter", "", input, other)
    dtype = common_dtype((input.spec, other.spec))
    return _nextafter(dtype if dtype.is_floating_point else float32), (input, other)


# fmt: off
LERP    = Map("lerp", keep, _lerp, check=refuse("bui", message='"lerp_kernel" not implemented for \'{dtype}\''), deciding=2, wide=True)
ADDCMUL = Map("addcmul", keep, lambda a, b, c, value: a + value * b * c, check=refuse("b", message='"addcmul_cpu_out" not implemented for \'{dtype}\''), deciding=3, wide=True)
ADDCDIV = Map("addcdiv", keep, lambda a, b, c, value: a + value * b / c, deciding=3, wide=True)
# fmt: on


@chosen("function method inplace")
def lerp(input, end, weight):
    """input + weight * (end - input), elementwise; `weight` is a number or a tensor. All tensors have one dtype."""
    dtype = input.spec.dtype
    for name, tensor in (("end", end), ("weight", weight)):
        if isinstance(tensor, Tensor) and tensor.spec.dtype is not dtype:
            raise RuntimeError(f"expected dtype {dtype.name} for `{name}` but got dtype {tensor.spec.dtype.name}")
    if not isinstance(weight, Tensor):
        check_fits(weight, dtype)
    return LERP, (input, end, weight)


@chosen("function method inplace")
def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2, elementwise."""
    return ADDCMUL, (input, tensor1, tensor2, value)


@chosen("function method inplace")
def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2, elementwise. Raises: RuntimeError if both are integers."""
    if all(isinstance(t, Tensor) and t.spec.dtype.category < 2 for t in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. Convert one of them to a floating point dtype."
        )
    return ADDCDIV, (input, tensor1, tensor2, value)


# ---- Functions with further arguments --------------------------------------------------------------------------------


def _decimals(a, scale):
    return s.rint(a * scale) / scale


def _decimals_left(a, scale):
    return s.rint(a / scale) * scale


_ROUND = refuse("bc", message='"round_vml_cpu" not implemented for \'{dtype}\'')
ROUND = Map("round", keep, floats_only(s.rint), check=_ROUND)
# PyTorch divides by 10**-decimals for negative decimals: both ways are exact for what float32 can represent.
ROUND_RIGHT = Map("round", keep, _decimals, check=ONLY_FLOATS, deciding=1, wide=True)
ROUND_LEFT = Map("round", keep, _decimals_left, check=ONLY_FLOATS, deciding=1, wide=True)



@chosen("function method inplace")
def round(input, *, decimals=None):
    """To the nearest integer, half to even; or floats to `decimals` places (negative: tens, hundreds ...)."""
    return (ROUND, (input,)) if decimals is None else _round_to(input, decimals)


def _round_to(input, decimals):
    if decimals >= 0:
        return ROUND_RIGHT, (input, float(10**decimals))
    return ROUND_LEFT, (input, float(10**-decimals))


@public(name="special.round", out=True)
def special_round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Floats to the nearest number with `decimals` places, half to even."""
    op, operands = _round_to(input, decimals)
    return op(*operands)


def _logit(a):
    return s.log(a / (1.0 - a))


LOGIT = Map("logit", to_float, _logit, check=NO_COMPLEX)
LOGIT_CLAMPED = Map(
    "logit",
    to_float,
    lambda a, low, high: _logit(s.where(a < low, low, s.where(high < a, high, a))),
    check=NO_COMPLEX,
    deciding=1,
    wide=True,
)


@chosen("function method inplace", "special.logit")
def logit(input, eps=None):
    """log(input / (1 - input)), elementwise; `eps` clamps input to [eps, 1 - eps] first."""
    return (LOGIT, (input,)) if eps is None else (LOGIT_CLAMPED, (input, float(eps), 1.0 - eps))


def _nan_to_num(a, nan, posinf, neginf):
    if isinstance(a, s.Complex):
        parts = (_nan_to_num(part, nan.real, posinf.real, neginf.real) for part in (a.real, a.imag))
        return s.Complex(*parts)
    replaced = s.where(s.eq(a, math.inf), posinf, s.where(s.eq(a, -math.inf), neginf, a))
    return s.where(s.isnan(a), nan, replaced)


NAN_TO_NUM = Map("nan_to_num", keep, _nan_to_num, deciding=1)


@chosen("function method inplace")
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """Replace NaN (by 0) and infinities (by the largest and smallest finite numbers), or by the given numbers."""
    dtype = input.spec.dtype
    if dtype.category < 2:
        return COPY, (input,)
    limit = largest(dtype.to_real())
    replacements = (0.0 if nan is None else nan, limit if posinf is None else posinf, -limit if neginf is None else neginf)
    return NAN_TO_NUM, (input, *map(float, replacements))


# ---- frexp: two results ----------------------------------------------------------------------------------------------


def _frexp(a):
    """Mantissa in [0.5, 1) with the sign, and exponent; zeros, infinities and NaN stay as they are, with exponent 0."""
    single = a.dtype is float32
    own, mantissa, bias = (uint32, 23, 126) if single else (uint64, 52, 1022)
    tiny = s.absolute(a) < (2.0**-126 if single else 2.0**-1022)
    scaled = s.where(tiny, a * 2.0**64, a)
    pattern = s.bitcast(scaled, own)
    field = (1 << (8 * a.dtype.itemsize - 1 - mantissa)) - 1
    exponent = s.cast((pattern >> mantissa) & field, int32) - bias - s.where(tiny, s.const(64, int32), s.const(0, int32))
    plain = s.bitcast((pattern & ~s.const(field << mantissa, own)) | (bias << mantissa), a.dtype)
    special = s.eq(a, 0) | ~s.isfinite(a)
    return s.where(special, a, plain), s.where(special, s.const(0, int32), exponent)


def _float_to_int32(common: DType) -> Types:
    return Types(common, int32)


_FREXP = refuse("buic", RuntimeError, "torch.frexp() only supports floating-point dtypes")
FREXP_MANTISSA = Map("frexp", keep, lambda a: _frexp(a)[0], check=_FREXP)
FREXP_EXPONENT = Map("frexp", _float_to_int32, lambda a: _frexp(a)[1], check=_FREXP)


@public("function method", out=True)
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa in [0.5, 1) and int32 exponent, with input = mantissa * 2**exponent."""
    return return_type("frexp", ("mantissa", "exponent"))((FREXP_MANTISSA(input), FREXP_EXPONENT(input)))


# ---- Complex numbers from two real ones ------------------------------------------------------------------------------


def _real_to_complex(common: DType) -> Types:
    return Types(common, common.to_complex())


def _two_reals(name: str, first: str, a: Any, second: str, b: Any) -> None:
    for position, (argument, operand) in enumerate(((first, a), (second, b)), 1):
        if not isinstance(operand, Tensor):
            kind = type(operand).__name__
            raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind}")
    one, other = LEGACY_NAMES[a.spec.dtype], LEGACY_NAMES[b.spec.dtype]
    if not {a.spec.dtype, b.spec.dtype} <= {float16, float32, float64}:
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {one} and {other}")
    if one != other:
        raise RuntimeError(f"Expected object of scalar type {one} but got scalar type {other} for second argument")


COMPLEX = Map("complex", _real_to_complex, s.Complex)
POLAR = Map("polar", _real_to_complex, lambda size, angle: s.Complex(size * s.cos(angle), size * s.sin(angle)))


@public("function")
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, elementwise. Raises: RuntimeError unless both are of one floating point dtype."""
    _two_reals("complex", "real", real, "imag", imag)
    if out is None:
        return COMPLEX(real, imag)
    wanted, given = LEGACY_NAMES[real.spec.dtype.to_complex()], LEGACY_NAMES[out.spec.dtype]
    if wanted != given:
        raise RuntimeError(
            f"Expected object of scalar type {wanted} but got scalar type {given} for argument 'out'"
        )
    return COMPLEX.into(out, real, imag)


@chosen("function")
def polar(abs, angle):
    """abs * exp(i angle), elementwise. Raises: RuntimeError unless both are of one floating point dtype."""
    _two_reals("polar", "abs", abs, "angle", angle)
    return POLAR, (abs, angle)


# ---- Integers --------------------------------------------------------------------------------------------------------

GCD = LibraryMap("gcd", keep, np.gcd, check=refuse("bfc"))
LCM = LibraryMap("lcm", keep, lambda a, b: np.abs(np.lcm(a, b)), check=refuse("bfc"))
gcd = publish(GCD, 2, "function method inplace", numbers="", doc="The greatest common divisor, elementwise.")
lcm = publish(LCM, 2, "function method inplace", numbers="", doc="The least common multiple, elementwise.")
