"""Elementwise arithmetic and functions. A row is the whole definition of an op; `docs/adding-an-op.md` says how to add one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.arguments import integer
from ...core.derivative import nondifferentiable, round_once
from ...core.dtype import FLOAT, DType, bool_, float32, float64
from ...core.entry import entry
from ...core.public import add_inplace, public
from ...core.registry import add_function
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.calls import check_operands, chosen, publish
from ...families.map import (
    NO_COMPLEX,
    ONLY_FLOATS,
    Map,
    Types,
    promote_bool,
    refuse,
    same_dtype,
    to_bool,
    to_float,
    to_real,
    to_real_float,
)
from ..tensor.node_names import by_operand
from ..tensor.rules import negative, pass_through, zero_grad


def is_float(a: Any) -> bool:
    return isinstance(a, s.Expr) and a.dtype.kind == "f"


def floats_only(function: Callable) -> Callable:
    """Apply `function` to floats, the identity to integers."""
    return lambda a: function(a) if is_float(a) else a


def float_to_bool(common: DType) -> Types:
    """The types of predicates of floats, such as `isnan`, which compute integers in the default float."""
    return Types(to_float(common).operands, bool_)


# Rows whose nodes PyTorch does not name after the function.
_NODE_NAMES: dict[str, Any] = {
    "square": "PowBackward0",
    "copysign": by_operand("CopysignBackward1", "CopysignBackward0"),
}


# ---- One operand -------------------------------------------------------------------------------------------------


def _frac(a):
    return a - s.trunc(a)


@s.one_function
def _relu(a):
    return s.where(a < 0, s.as_expr(0, a), a)


def _sinc(a):
    angle = a * math.pi
    return s.where(s.eq(a, 0), 1.0, s.sin(angle) / angle)


def _isreal(a):
    return s.eq(a.imag, 0) if isinstance(a, s.Complex) else s.eq(a, a) | s.ne(a, a)


# ---- Their derivatives, where they do not fit a row


def _sgn_rule(ct, out, a):
    """The sign of a real number is constant. That of a complex number changes its direction, but not its length."""
    if not a.is_complex():
        return zero_grad(ct, None)
    along = out * (ct * out.conj()).real
    is_zero = a == 0  # masked on both sides of the division, because 0 / 0 in its derivative is NaN
    return (ct - along).masked_fill(is_zero, 0) / a.abs().masked_fill(is_zero, 1)


def _acosh_rule(ct, out, a):
    if a.is_complex():  # the root of a product is not the product of roots
        return ct * ((a + 1).rsqrt() * (a - 1).rsqrt()).conj()
    return ct * (a * a - 1).rsqrt()


def _sinc_rule(ct, out, a):
    angle, square = a * math.pi, a * a * math.pi
    slope = (angle * angle.cos() - angle.sin()) / square
    return (ct * slope.conj()).masked_fill(square == 0, 0)  # the square of a tiny number is zero, too


LN_2, LN_10, TWO_BY_ROOT_PI = math.log(2), math.log(10), 2 / math.sqrt(math.pi)

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
    # names                       promotion      one element              rejects        derivative                                                   what
    ("abs absolute",              to_real,       s.absolute,              NO_BOOL_ABS,   lambda ct, out, a: ct * a.sgn(),                             "the absolute value"),
    ("sgn",                       same_dtype,    s.sgn,                   None,          _sgn_rule,                                                   "the sign; of a complex number, its direction"),
    ("sign",                      same_dtype,    s.sign,                  _SIGN,         zero_grad,                                                        "-1, 0 or 1; 0 for NaN"),
    ("neg negative",              same_dtype,    lambda a: -a,            _NEGATION,     negative,                                                    "the negative"),
    ("reciprocal",                to_float,      s.reciprocal,            None,          lambda ct, out, a: -ct * (out * out).conj(),                 "1 / input"),
    ("square",                    promote_bool,  s.square,                None,          lambda ct, out, a: ct * (2 * a).conj(),                      "input * input"),
    ("sqrt",                      to_float,      s.sqrt,                  None,          lambda ct, out, a: ct / (2 * out.conj()),                    "the square root"),
    ("rsqrt",                     to_float,      s.rsqrt,                 None,          lambda ct, out, a: -0.5 * ct * (out * out * out).conj(),     "1 / sqrt(input)"),
    ("exp",                       to_float,      s.exp,                   None,          lambda ct, out, a: ct * out.conj(),                          "e to the power of input"),
    ("exp2 special.exp2",         to_float,      s.exp2,                  None,          lambda ct, out, a: ct * out.conj() * LN_2,                   "2 to the power of input"),
    ("expm1 special.expm1",       to_float,      s.expm1,                 None,          lambda ct, out, a: ct * (out.conj() + 1),                    "exp(input) - 1, accurate near 0"),
    ("log",                       to_float,      s.log,                   None,          lambda ct, out, a: ct / a.conj(),                            "the natural logarithm"),
    ("log2",                      to_float,      s.log2,                  None,          lambda ct, out, a: ct / (a.conj() * LN_2),                   "the logarithm to base 2"),
    ("log10",                     to_float,      s.log10,                 None,          lambda ct, out, a: ct / (a.conj() * LN_10),                  "the logarithm to base 10"),
    ("log1p special.log1p",       to_float,      s.log1p,                 None,          lambda ct, out, a: ct / (a + 1).conj(),                      "log(1 + input), accurate near 0"),
    ("sin",                       to_float,      s.sin,                   None,          lambda ct, out, a: ct * a.cos().conj(),                      "the sine of an angle in radians"),
    ("cos",                       to_float,      s.cos,                   None,          lambda ct, out, a: ct * -a.sin().conj(),                     "the cosine of an angle in radians"),
    ("tan",                       to_float,      s.tan,                   None,          lambda ct, out, a: ct * (1 + out * out).conj(),              "the tangent of an angle in radians"),
    ("asin arcsin",               to_float,      s.asin,                  None,          lambda ct, out, a: ct * (1 - a * a).rsqrt().conj(),          "the inverse sine, in radians"),
    ("acos arccos",               to_float,      s.acos,                  None,          lambda ct, out, a: ct * -(1 - a * a).rsqrt().conj(),         "the inverse cosine, in radians"),
    ("atan arctan",               to_float,      s.atan,                  None,          lambda ct, out, a: ct / (a * a + 1).conj(),                  "the inverse tangent, in radians"),
    ("sinh",                      to_float,      s.sinh,                  None,          lambda ct, out, a: ct * a.cosh().conj(),                     "the hyperbolic sine"),
    ("cosh",                      to_float,      s.cosh,                  None,          lambda ct, out, a: ct * a.sinh().conj(),                     "the hyperbolic cosine"),
    ("tanh",                      to_float,      s.tanh,                  None,          round_once(lambda ct, out, a: ct * (1 - out * out).conj()),  "the hyperbolic tangent"),
    ("asinh arcsinh",             to_float,      s.asinh,                 None,          lambda ct, out, a: ct * (a * a + 1).rsqrt().conj(),          "the inverse hyperbolic sine"),
    ("acosh arccosh",             to_float,      s.acosh,                 None,          _acosh_rule,                                                 "the inverse hyperbolic cosine"),
    ("atanh arctanh",             to_float,      s.atanh,                 None,          lambda ct, out, a: ct / (1 - a * a).conj(),                  "the inverse hyperbolic tangent"),
    ("sinc special.sinc",         to_float,      _sinc,                   None,          _sinc_rule,                                                  "sin(pi input) / (pi input); 1 at 0"),
    ("sigmoid special.expit",     to_float,      s.sigmoid,               None,          round_once(lambda ct, out, a: ct * ((1 - out) * out).conj()), "1 / (1 + exp(-input))"),
    ("erf special.erf",           to_float,      s.erf,                   NO_COMPLEX,    lambda ct, out, a: ct * (TWO_BY_ROOT_PI * (-(a * a)).exp()), "the error function"),
    ("erfc special.erfc",         to_float,      s.erfc,                  NO_COMPLEX,    lambda ct, out, a: ct * (-TWO_BY_ROOT_PI * (-(a * a)).exp()),"1 - erf(input), accurate for large input"),
    ("erfinv special.erfinv",     to_float,      s.erfinv,                NO_COMPLEX,    lambda ct, out, a: ct * ((out * out).exp() / TWO_BY_ROOT_PI),"the inverse of the error function"),
    ("floor",                     same_dtype,    floats_only(s.floor),    _ROUNDING,     zero_grad,                                                        "the largest integer that is not above"),
    ("ceil",                      same_dtype,    floats_only(s.ceil),     _ROUNDING,     zero_grad,                                                        "the smallest integer that is not below"),
    ("trunc fix",                 same_dtype,    floats_only(s.trunc),    _ROUNDING,     zero_grad,                                                        "the integer part"),
    ("frac",                      same_dtype,    _frac,                   ONLY_FLOATS,   pass_through,                                                        "what trunc takes away"),
    ("deg2rad",                   to_float,      lambda a: a * (math.pi / 180), _DEGREES, lambda ct, out, a: ct * (math.pi / 180),                     "degrees as radians"),
    ("rad2deg",                   to_float,      lambda a: a * (180 / math.pi), _DEGREES, lambda ct, out, a: ct * (180 / math.pi),                     "radians as degrees"),
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

# The rows by name.
OPS: dict[str, Map] = {}


def _publish_unary(table, forms: str) -> None:
    for names, promotion, element, check, derivative, what in table:
        name, *aliases = names.split()
        OPS[name] = Map(
            name, promotion, element, check=check, derivative=derivative, node_name=_NODE_NAMES.get(name)
        )
        # The in-place form is `abs_` below.
        shown = forms.removesuffix(" inplace") if name == "abs" else forms
        publish(OPS[name], 1, shown, *aliases, doc=f"Of each element {what}.")


_publish_unary(_UNARY, "function method inplace")


def _abs_(self: Tensor) -> Tensor:
    """In-place form of `abs`. Raises: RuntimeError for complex tensors."""
    if self.spec.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return OPS["abs"].inplace(self)


for _name in ("abs", "absolute"):
    add_inplace(_name, _abs_)
add_function("abs_", entry(_abs_))
_publish_unary([(*row[:-1], nondifferentiable, row[-1]) for row in _QUESTIONS], "function method")


def _relu_check(name: str, dtype: DType) -> None:
    _RELU(name, dtype)
    _NO_COMPLEX_RELU(name, dtype)


RELU = Map(
    "relu", same_dtype, _relu, check=_relu_check, derivative=lambda ct, out, a: ct.masked_fill(out <= 0, 0)
)
relu = publish(RELU, 1, "function method inplace", doc="max(input, 0) of each element.")


def _angle_rule(ct, out, a):
    if not a.is_complex():
        return zero_grad(ct, None)
    return (ct * (a / a.abs().square()) * 1j).masked_fill(a == 0, 0)


ANGLE = OPS["angle"] = Map("angle", to_real_float, s.angle, derivative=_angle_rule)


@public("function method", out=True)
def angle(input: Tensor) -> Tensor:
    """The angle of each element in the complex plane, in radians; a contiguous tensor if input is complex."""
    return ANGLE(input.contiguous() if input.spec.dtype.is_complex else input)


@public("function method")
def positive(input: Tensor) -> Tensor:
    """The tensor itself. Raises: RuntimeError for bool."""
    if input.spec.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ---- Two and three operands ------------------------------------------------------------------------------------------


def _logaddexp(exp: Callable, factor: float) -> Callable:
    """log(exp(a) + exp(b)), computed as the larger plus log(1 + exp(-difference)), which does not overflow."""

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
    found = larger + s.log(s.exp(smaller - larger) + 1.0)
    # The difference of equal infinite numbers is NaN. exp(-inf) is 0, whatever the imaginary part is.
    equal = s.isinf(a.real) & s.eq(a.real, b.real)
    found = s.where(equal, s.where(a.real < 0, smaller, s.log(s.exp(a) + s.exp(b))), found)
    nan = s.as_expr(math.nan, a.real)
    is_nan = s.isnan(a.real) | s.isnan(a.imag) | s.isnan(b.real) | s.isnan(b.imag)
    return s.where(is_nan, s.Complex(nan, nan), found)


def _xlogy(a, b):
    return s.where(s.isnan(b), b, s.where(s.eq(a, 0), s.as_expr(0.0, a), a * s.log(b)))


def _heaviside(a, b):
    above = s.where(s.as_expr(0, a) < a, s.as_expr(1, b), s.as_expr(0, b))
    return s.where(s.eq(a, 0), b, above)


_HEAVISIDE = refuse("c", RuntimeError, "heaviside is not yet implemented for complex tensors.")
# fmt: off
_BINARY = (
    # names                    promotion  one element                  rejects       numbers
    #                          derivatives
    #                          what
    ("atan2 arctan2",          to_float,   s.atan2,                     NO_COMPLEX,   "",
                               (lambda ct, out, a, b: ct * b * (a * a + b * b).reciprocal().masked_fill((a == 0) & (b == 0), 0),
                                lambda ct, out, a, b: ct * -a * (a * a + b * b).reciprocal().masked_fill((a == 0) & (b == 0), 0)),
                               "the angle of the point (other, input), in radians"),
    ("hypot",                  same_dtype, s.hypot,                     ONLY_FLOATS,  "",
                               (lambda ct, out, a, b: ct * a / out,
                                lambda ct, out, a, b: ct * b / out),
                               "sqrt(input**2 + other**2) without overflow"),
    ("copysign",               to_float,   s.copysign,                  NO_COMPLEX,   "other",
                               (lambda ct, out, a, b: ct * (out / a).masked_fill(a == 0, 0),
                                zero_grad),
                               "input with the sign of other"),
    ("xlogy special.xlogy",    to_float,   _xlogy,                      NO_COMPLEX,   "input other",
                               (lambda ct, out, a, b: ct.xlogy(b).masked_fill((a == 0) & (b <= 0), 0),
                                lambda ct, out, a, b: ct * a / b),
                               "input * log(other); 0 where input is 0"),
    ("logaddexp",              same_dtype, _logaddexp(s.exp, 1.0),      refuse("bui"), "",
                               (lambda ct, out, a, b: ct / (1 + (b - a).exp()).conj(),
                                lambda ct, out, a, b: ct / (1 + (a - b).exp()).conj()),
                               "log(exp(input) + exp(other))"),
    ("logaddexp2",             same_dtype, _logaddexp(s.exp2, 1 / math.log(2)), ONLY_FLOATS, "",
                               (lambda ct, out, a, b: ct / (1 + (b - a).exp2()),
                                lambda ct, out, a, b: ct / (1 + (a - b).exp2())),
                               "log2(2**input + 2**other)"),
)
# fmt: on
for _names, _promotion, _element, _check, _numbers, _derivative, _what in _BINARY:
    _name, *_aliases = _names.split()
    OPS[_name] = Map(
        _name, _promotion, _element, check=_check, derivative=_derivative, node_name=_NODE_NAMES.get(_name)
    )
    _forms = "function method" if _name.startswith("logadd") else "function method inplace"
    publish(OPS[_name], 2, _forms, *_aliases, numbers=_numbers, doc=f"{_what}, elementwise.")

# PyTorch has no derivative of it.
HEAVISIDE = Map("heaviside", same_dtype, _heaviside, check=_HEAVISIDE)


def _ldexp(a, b):
    """Compute float32 in float64, because 2**b may overflow float32 although the result does not. 0 stays 0 for every b."""
    if not isinstance(a, s.Expr):
        return a * s.exp2(b)
    if a.dtype is float32:
        return s.cast(_ldexp(s.cast(a, float64), s.cast(b, float64)), float32)
    return s.where(s.eq(a, 0), a, a * s.exp2(b))


# fmt: off
LDEXP        = Map("ldexp", to_float, _ldexp, derivative=(lambda ct, out, a, b: ct * b.exp2().conj(), None))
LDEXP_FLOATS = Map("ldexp", same_dtype, lambda a, power: a * power,
                   derivative=(lambda ct, out, a, power: ct * power.conj(),
                               lambda ct, out, a, power: ct * a.conj()))
# fmt: on


@chosen("function method inplace")
def ldexp(input: Tensor, other: Tensor):
    """Compute input * 2**other, elementwise."""
    check_operands("ldexp", "", input, other)
    if other.spec.dtype.category < FLOAT:
        return LDEXP, (input, other)
    return LDEXP_FLOATS, (input, OPS["exp2"](other))  # 2**other has the dtype of the exponent


@chosen("function method inplace")
def heaviside(input: Tensor, values: Tensor):
    """0 where input < 0, `values` where it is 0, 1 where input > 0. Raises: RuntimeError for different dtypes."""
    check_operands("heaviside", "", input, values)
    if values.spec.dtype is not input.spec.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return HEAVISIDE, (input, values)


# ---- Functions with further arguments --------------------------------------------------------------------------------


def _decimals(a, scale):
    return s.rint(a * scale) / scale


def _decimals_left(a, scale):
    return s.rint(a / scale) * scale


_ROUND = refuse("bc", message="\"round_vml_cpu\" not implemented for '{dtype}'")
ROUND = Map("round", same_dtype, floats_only(s.rint), check=_ROUND, derivative=zero_grad)
# For negative decimals PyTorch divides by 10**-decimals. Both formulas are exact for numbers that float32 can represent.
_TO_DECIMALS: dict[str, Any] = {
    "check": ONLY_FLOATS,
    "deciding": 1,
    "wide": True,
    "derivative": zero_grad,
    "node_name": "RoundBackward1",
}
ROUND_RIGHT = Map("round", same_dtype, _decimals, **_TO_DECIMALS)
ROUND_LEFT = Map("round", same_dtype, _decimals_left, **_TO_DECIMALS)


@chosen("function method inplace")
def round(input: Tensor, *, decimals: int | None = None):
    """Round to the nearest integer, half to even, or floats to `decimals` places (negative: tens, hundreds ...)."""
    return (ROUND, (input,)) if decimals is None else _round_to(input, decimals)


def _round_to(input, decimals):
    decimals = integer(decimals, "round", "decimals")
    scale = float(10 ** abs(decimals)) if abs(decimals) <= 308 else math.inf
    return ROUND_RIGHT if decimals >= 0 else ROUND_LEFT, (input, scale)


@public(name="special.round", out=True)
def special_round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round floats to the nearest number with `decimals` places, half to even."""
    op, operands = _round_to(input, decimals)
    return op(*operands)


def _logit(a):
    return s.log(a / (1.0 - a))


LOGIT = Map(
    "logit",
    to_float,
    _logit,
    check=NO_COMPLEX,
    derivative=lambda ct, out, a: (ct / (a * (1 - a))).masked_fill((a < 0) | (a > 1), math.nan),
)
LOGIT_CLAMPED = Map(
    "logit",
    to_float,
    lambda a, low, high: _logit(s.where(a < low, low, s.where(high < a, high, a))),
    check=NO_COMPLEX,
    deciding=1,
    wide=True,
    limited=True,
    derivative=lambda ct, out, a, low, high: (ct / (a * (1 - a))).masked_fill((a < low) | (a > high), 0),
)


@chosen("function method inplace", "special.logit")
def logit(input: Tensor, eps: float | None = None):
    """log(input / (1 - input)), elementwise; `eps` clamps input to [eps, 1 - eps] first."""
    return (LOGIT, (input,)) if eps is None else (LOGIT_CLAMPED, (input, float(eps), 1.0 - eps))
