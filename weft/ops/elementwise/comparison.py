"""Compares, takes the larger or smaller of two operands, clamps, and computes logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.checking import check_tensor
from ...core.derivative import nondifferentiable
from ...core.dtype import FLOAT, LEGACY_NAMES, DType, bool_, float32, float64
from ...core.limits import check_number
from ...core.promotion import common_dtype
from ...core.public import public
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.array_op import check_values
from ...families.calls import check_operands, chosen, publish, shortcut
from ...families.map import Map, Types, common_device, normalise, refuse, same_dtype, spec_or_type, to_bool
from ..tensor.node_names import by_operand
from .pointwise import OPS, is_float

_ORDER = refuse("c")


def _logical(common: DType) -> Types:
    """Operands of any dtype are compared as bools."""
    return Types(bool_, bool_)


# fmt: off
_COMPARISONS = (
    # names               one element             rejects  what
    ("eq",                s.eq,                   None,    "whether input equals other"),
    ("ne not_equal",      s.ne,                   None,    "whether input differs from other"),
    ("lt less",           lambda a, b: a < b,     _ORDER,  "whether input < other"),
    ("le less_equal",     lambda a, b: a <= b,    _ORDER,  "whether input <= other"),
    ("gt greater",        lambda a, b: a > b,     _ORDER,  "whether input > other"),
    ("ge greater_equal",  lambda a, b: a >= b,    _ORDER,  "whether input >= other"),
)
_LOGIC = (
    ("logical_and",       lambda a, b: a & b,              "whether both are true"),
    ("logical_or",        lambda a, b: a | b,              "whether one is true"),
    ("logical_xor",       lambda a, b: a ^ b,              "whether exactly one is true"),
)
# fmt: on
for _names, _element, _check, _what in _COMPARISONS:
    _name, *_aliases = _names.split()
    _node = f"{_name.capitalize()}Backward"  # of the in-place form, because only that is recorded
    OPS[_name] = Map(
        _name,
        to_bool,
        _element,
        check=_check,
        derivative=nondifferentiable,
        node_name=by_operand(f"{_node}0", f"{_node}1"),
    )
    publish(
        OPS[_name], 2, "function method inplace", *_aliases, doc=f"{_what}, elementwise: bools.".capitalize()
    )
for _name, _element, _what in _LOGIC:
    OPS[_name] = Map(_name, _logical, _element, derivative=nondifferentiable)
    publish(
        OPS[_name], 2, "function method inplace", numbers="", doc=f"{_what}, elementwise: bools.".capitalize()
    )
OPS["logical_not"] = Map("logical_not", _logical, lambda a: ~a, derivative=nondifferentiable)
publish(OPS["logical_not"], 1, "function method inplace", doc="Whether an element is zero or false.")


# ---- Extrema -----------------------------------------------------------------------------------------------------


@s.one_function
def _maximum(a, b):
    """NaN if one of the operands is NaN; the first operand if both are equal."""
    return s.where((a < b) | _isnan(b), b, a)


@s.one_function
def _minimum(a, b):
    return s.where((b < a) | _isnan(b), b, a)


def _isnan(a):
    return s.isnan(a) if is_float(a) else s.ne(a, a)


@s.one_function
def _fmax(a, b):
    """The other operand if one is NaN."""
    return s.where((a < b) | _isnan(a), b, a)


@s.one_function
def _fmin(a, b):
    return s.where((b < a) | _isnan(a), b, a)


_NO_COMPLEX = refuse("c", RuntimeError, "{name} not implemented for complex tensors.")
# fmt: off
_EXTREMA = (
    # name       one element  what                                               derivatives: equal ones share
    ("maximum",  _maximum,    "the larger one; NaN if one is NaN",               (lambda ct, out, a, b: (ct / 2).where(a == b, ct).masked_fill(a < b, 0),
                                                                                  lambda ct, out, a, b: (ct / 2).where(a == b, ct).masked_fill(a > b, 0))),
    ("minimum",  _minimum,    "the smaller one; NaN if one is NaN",              (lambda ct, out, a, b: (ct / 2).where(a == b, ct).masked_fill(a > b, 0),
                                                                                  lambda ct, out, a, b: (ct / 2).where(a == b, ct).masked_fill(a < b, 0))),
    ("fmax",     _fmax,       "the larger one; the number if the other is NaN",  (lambda ct, out, a, b: ct.where((a >= b) | b.isnan(), 0),
                                                                                  lambda ct, out, a, b: ct.masked_fill((a >= b) | b.isnan(), 0))),
    ("fmin",     _fmin,       "the smaller one; the number if the other is NaN", (lambda ct, out, a, b: ct.where((a <= b) | b.isnan(), 0),
                                                                                  lambda ct, out, a, b: ct.masked_fill((a <= b) | b.isnan(), 0))),
)
# fmt: on
for _name, _element, _what, _derivative in _EXTREMA:
    OPS[_name] = Map(_name, same_dtype, _element, check=_NO_COMPLEX, derivative=_derivative)
    publish(OPS[_name], 2, "function method", numbers="", doc=f"Of each pair {_what}.")


# ---- Clamping ----------------------------------------------------------------------------------------------------


def _clamp_node(inputs, static):
    return "ClampBackward0" if any(isinstance(bound, Tensor) for bound in inputs[1:]) else "ClampBackward1"


_CLAMP = refuse("c", message="clamp is not supported for complex types")
# fmt: off
_AT_LEAST = (lambda ct, out, a, low: ct.where(a >= low, 0),
             lambda ct, out, a, low: ct.where(a < low, 0))
_AT_MOST  = (lambda ct, out, a, high: ct.where(a <= high, 0),
             lambda ct, out, a, high: ct.where(a > high, 0))
_BETWEEN  = (lambda ct, out, a, low, high: ct.where((a >= low) & (a <= high), 0),
             lambda ct, out, a, low, high: ct.where((low < high) & (a < low), 0),
             lambda ct, out, a, low, high: ct.where((high < low) | (a > high), 0))
CLAMP     = Map("clamp",     same_dtype, lambda a, low, high: _minimum(_maximum(a, low), high), check=_CLAMP, derivative=_BETWEEN,  node_name=_clamp_node)
CLAMP_MIN = Map("clamp_min", same_dtype, _maximum,                                              check=_CLAMP, derivative=_AT_LEAST, node_name=by_operand("ClampMinBackward0", "ClampMinBackward1"))
CLAMP_MAX = Map("clamp_max", same_dtype, _minimum,                                              check=_CLAMP, derivative=_AT_MOST,  node_name=by_operand("ClampMaxBackward0", "ClampMaxBackward1"))
# The same rows for `clamp` with one bound, because autograd names their nodes after `clamp`.
AT_LEAST  = Map("clamp_min", same_dtype, _maximum,                                              check=_CLAMP, derivative=_AT_LEAST, node_name=_clamp_node)
AT_MOST   = Map("clamp_max", same_dtype, _minimum,                                              check=_CLAMP, derivative=_AT_MOST,  node_name=_clamp_node)
# fmt: on


@chosen("function method inplace", "clip")
def clamp(input: Tensor, min=None, max=None):
    """Clamp to [min, max], elementwise. Bounds are numbers or tensors; None means no bound. If min > max, the result is max."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return bounded(AT_LEAST, input, min)
    if min is None:
        return bounded(AT_MOST, input, max)
    return bounded(CLAMP, input, min, max)


def _are_usual_bounds(input: Any, low: Any, high: Any) -> bool:
    return getattr(input, "dtype", None) in (float32, float64) and {low, high} <= {int, float}


shortcut(clamp, CLAMP, 3, _are_usual_bounds, small=True)


@chosen("function method inplace")
def clamp_min(input: Tensor, min):
    """Replace elements below `min` by it, elementwise."""
    return bounded(CLAMP_MIN, input, min)


@chosen("function method inplace")
def clamp_max(input: Tensor, max):
    """Replace elements above `max` by it, elementwise."""
    return bounded(CLAMP_MAX, input, max)


def bounded(op: Map, input: Tensor, *bounds: Any) -> tuple[Map, Sequence[Any]]:
    """A row and its operands, which are checked."""
    if type(input) is not Tensor:
        check_operands(op.name, "other", input)
    if input.spec.dtype in (float32, float64):
        for bound in bounds:
            if type(bound) not in (int, float) or not -1e30 < bound < 1e30:
                break
        else:
            return op, (input, *bounds)  # the usual case needs no further checks
    operands = normalise(op.name, (input, *bounds))
    dtype = common_dtype(map(spec_or_type, operands))
    for bound in operands[1:]:
        if not isinstance(bound, Tensor):
            if dtype is bool_:
                raise NotImplementedError(f"\"{op.name}_scalar_cpu\" not implemented for 'Bool'")
            check_number(bound, dtype)
    return op, operands


# ---- Closeness ---------------------------------------------------------------------------------------------------


def _isclose(equal_nan: bool) -> Callable:
    def element(a, b, rtol, atol):
        allowed = _real(atol) + s.absolute(rtol * b)
        close = s.eq(a, b) | s.isfinite(a) & s.isfinite(b) & (s.absolute(a - b) <= allowed)
        return close | s.isnan(a) & s.isnan(b) if equal_nan else close

    return element


def _real(a):
    return a.real if isinstance(a, s.Complex) else a


def _close_types(common: DType) -> Types:
    return Types(float64 if common.category < 2 else common, bool_)


ISCLOSE = {
    equal_nan: Map(
        "isclose", _close_types, _isclose(equal_nan), deciding=2, wide=True, derivative=nondifferentiable
    )
    for equal_nan in (False, True)
}


@public("function method")
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether |input - other| <= atol + rtol * |other|, elementwise; infinities are close to themselves only.

    Raises: RuntimeError for different dtypes or negative tolerances.
    """
    for position, operand in enumerate((input, other)):
        if not isinstance(operand, Tensor):
            name = ("input", "other")[position]
            raise TypeError(
                f"isclose(): argument '{name}' (position {position + 1}) must be Tensor, not {type(operand).__name__}"
            )
    if input.spec.dtype is not other.spec.dtype:
        raise RuntimeError(f"{LEGACY_NAMES[input.spec.dtype]} did not match {LEGACY_NAMES[other.spec.dtype]}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    if rtol == atol == 0 and input.spec.dtype.category < FLOAT:
        return OPS["eq"](input, other)  # float64 cannot tell integers beyond 2**53 apart
    return ISCLOSE[bool(equal_nan)](input, other, float(rtol), float(atol))


@public("function method")
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close; see `isclose`."""
    close = isclose(input, other, rtol, atol, equal_nan)
    check_values("allclose", close)
    return bool(close.all())


@public("function method")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements."""
    check_tensor(other, "equal", "other", 2)
    common_device("equal", (input.spec, other.spec))
    if input.spec.shape != other.spec.shape:
        return False
    equals = OPS["eq"](input, other)
    check_values("equal", equals)
    return bool(equals.all())
