"""Computes sums, products, quotients and remainders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arguments import text
from ...core.batched import beneath
from ...core.derivative import nondifferentiable
from ...core.dtype import bool_, float32, float64, int32, uint64
from ...core.plans import PlanCache
from ...core.promotion import promote_types
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...engine.expr import load, slow_path
from ...families.array_op import ArrayMap, host_array
from ...families.calls import check_alpha, check_operands, chosen, publish, shortcut, with_alpha
from ...families.map import NO_BOOL_OR_COMPLEX, Map, keyed, refuse, same_dtype, to_float
from ..tensor.node_names import by_operand
from ..tensor.rules import conj, negative, pass_through, zero_grad
from .pointwise import is_float

# ---- Sums and products -----------------------------------------------------------------------------------------------


def _add(a, b):
    return a | b if isinstance(a, s.Expr) and a.dtype is bool_ else a + b


def _plus_product(a, x, y):
    """a + x * y; floats are rounded once, as PyTorch's kernels do on machines with fused multiply-add."""
    return s.fma(x, y, a) if isinstance(a, s.Expr) and a.dtype.kind == "f" else _add(a, x * y)


def _minus_product(a, x, y):
    return s.fma(-x, y, a) if isinstance(a, s.Expr) and a.dtype.kind == "f" else a - x * y


class Subtraction(Map):
    """Raises: RuntimeError if one of the operands is a bool."""

    def _types(self, operands):
        bools = [operand is bool or getattr(operand, "dtype", None) is bool_ for operand in operands[:2]]
        if all(bools):
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. "
                "Use the `^` or `logical_xor()` operator instead."
            )
        if any(bools):
            raise RuntimeError(
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
                "mask, use the `~` or `logical_not()` operator instead."
            )
        return super()._types(operands)


# fmt: off
ADD        = Map("add", same_dtype,         _add,                                            derivative=(pass_through, pass_through))
SUB        = Subtraction("sub", same_dtype, lambda a, b: a - b,                              derivative=(pass_through, negative),
                         node_name=by_operand("RsubBackward1", "SubBackward0", 0))
ADD_SCALED = Map("add", same_dtype,         lambda a, b, alpha: _plus_product(a, alpha, b),  deciding=2, limited=True,
                 derivative=(pass_through, lambda ct, out, a, b, alpha: ct * conj(alpha)))
SUB_SCALED = Subtraction("sub", same_dtype, lambda a, b, alpha: _minus_product(a, alpha, b), deciding=2, limited=True,
                 derivative=(pass_through, lambda ct, out, a, b, alpha: ct * conj(-alpha)))
MUL        = Map("mul", same_dtype,         lambda a, b: a * b,                              wide=True,
                 derivative=(lambda ct, out, a, b: ct * conj(b),
                             lambda ct, out, a, b: ct * conj(a)))
DIV        = Map("div", to_float,           lambda a, b: a / b,                              wide=True,
                 derivative=(lambda ct, out, a, b: ct / conj(b),
                             lambda ct, out, a, b: -ct * (a / b / b).conj()))
# fmt: on

plain_add = publish(ADD, 2, "", numbers="all")
plain_sub = publish(SUB, 2, "", numbers="all")
mul = publish(MUL, 2, "function method inplace", "multiply", numbers="all", doc="input * other, elementwise.")


add = with_alpha("add", plain_add, "", ADD, ADD_SCALED, "input + alpha * other, elementwise.")
sub = with_alpha("sub", plain_sub, "subtract", SUB, SUB_SCALED, "input - alpha * other, elementwise.")


@chosen("function")
def rsub(input: Tensor, other, *, alpha=1):
    """Compute other - alpha * input, elementwise."""
    check_operands("rsub", "other", input, other)
    if type(alpha) is int and alpha == 1:
        return SUB, (other, input)
    check_alpha(alpha, "rsub", other, input)
    return SUB_SCALED, (other, input, alpha)


# ---- Division ----------------------------------------------------------------------------------------------------


class Division(Map):
    """Integer division raises for a divisor of zero, so the divisors are read first."""

    is_kernel = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._dtypes = PlanCache(lambda *operands: self._types(operands).operands)

    def run(self, *operands):
        self._refuse_zero(operands)
        return super().run(*operands)

    def write(self, target, *operands):
        self._refuse_zero(operands)
        return super().write(target, *operands)

    def _refuse_zero(self, operands) -> None:
        if type(operands[1]) is int and operands[1] % 256:  # not zero in any integer type
            return
        for each in operands:
            if type(each) is float or isinstance(each, Tensor) and each.spec.dtype.category > 1:
                return
        (dividend, divisor), key = keyed(self.name, operands)
        dtype = self._dtypes[key]
        if dtype.category > 1 or isinstance(dividend, Tensor) and dividend.spec.numel == 0:
            return
        if not isinstance(divisor, Tensor):
            zero = int(divisor) % 2 ** (8 * dtype.itemsize) == 0
        elif not divisor.spec.device.backend.has_memory:
            return
        else:
            zero = not host_array(beneath(divisor)).astype(dtype.numpy, copy=False).all()
        if zero:
            raise RuntimeError("ZeroDivisionError")


def _quotient(a, b):
    """a / b of integers, truncated. Vectors of integers have no division, so floats divide that represent both exactly.

    The rounded quotient of integers of at most 53 bits (24 for float32) cannot reach the next integer. Larger ones are divided one by one.
    """
    dtype = a.dtype
    exact = float32 if dtype.itemsize < 4 else float64
    usual = s.cast(s.cast(a, exact) / s.cast(b, exact), dtype)
    if dtype.itemsize < 8:
        return usual
    x, y = load(0, dtype), load(1, dtype)
    return slow_path((a, b), usual, _beyond_53_bits(x) | _beyond_53_bits(y), _divided_alone(x, y))


def _beyond_53_bits(a):
    if a.dtype.kind == "u":
        return s.as_expr(2**53, a) < a
    return s.as_expr(2**54, s.bitcast(a, uint64)) < s.bitcast(a + 2**53, uint64)


def _divided_alone(a, b):
    """The processor traps at a divisor of zero, and when it divides the smallest integer by -1."""
    if a.dtype.kind == "u":
        return a / s.where(s.eq(b, 0), 1, b)
    negate = s.eq(b, -1)
    return s.where(negate, -a, a / s.where(negate | s.eq(b, 0), 1, b))


def _div_trunc(a, b):
    return s.trunc(a / b) if is_float(a) else _quotient(a, b)


def _fmod(a, b):
    return s.fmod(a, b) if is_float(a) else a - _quotient(a, b) * b


def _remainder(a, b):
    remainder = _fmod(a, b)
    if a.dtype.kind == "u":
        return remainder
    return s.where(s.ne(remainder, 0) & _differ_in_sign(remainder, b), remainder + b, remainder)


def _differ_in_sign(a, b):
    return (a < 0) ^ (b < 0)


def _floor_divide(a, b):
    if is_float(a):
        return _floor_divide_floats(a, b)
    quotient = _quotient(a, b)
    if a.dtype.kind == "u":
        return quotient
    remainder = a - quotient * b
    return s.where(s.ne(remainder, 0) & _differ_in_sign(remainder, b), quotient - 1, quotient)


def _floor_divide_floats(a, b):
    """Compute the floor from the exact remainder, as Python does, because a / b may be rounded up to the next integer."""
    remainder = s.fmod(a, b)
    quotient = (a - remainder) / b
    quotient = s.where(s.ne(remainder, 0) & _differ_in_sign(remainder, b), quotient - 1, quotient)
    whole = s.floor(quotient)
    whole = s.where(s.as_expr(0.5, a) < quotient - whole, whole + 1, whole)
    whole = s.where(s.eq(quotient, 0), s.copysign(s.as_expr(0.0, a), a / b), whole)
    return s.where(s.eq(b, 0), a / b, whole)


# fmt: off
_FLOOR = refuse("bc", message='"div_floor_cpu" not implemented for \'{dtype}\'')
_TRUNC = refuse("bc", message='"div_trunc_cpu" not implemented for \'{dtype}\'')
FLOOR_DIVIDE = Division("floor_divide", same_dtype, _floor_divide, check=_FLOOR)  # PyTorch has a derivative for div only
DIV_FLOOR    = Division("div",          same_dtype, _floor_divide, check=_FLOOR,             derivative=(zero_grad, zero_grad), node_name="DivBackward2")
DIV_TRUNC    = Division("div",          same_dtype, _div_trunc,    check=_TRUNC,             derivative=(zero_grad, zero_grad), node_name="DivBackward2")
REMAINDER    = Division("remainder",    same_dtype, _remainder,    check=NO_BOOL_OR_COMPLEX, node_name=by_operand("RemainderBackward0", "RemainderBackward1"),
                        derivative=(pass_through, lambda ct, out, a, b: -ct * DIV_FLOOR(a, b)))
FMOD         = Division("fmod",         same_dtype, _fmod,         check=NO_BOOL_OR_COMPLEX, node_name=by_operand("FmodBackward0", "FmodBackward1"),
                        derivative=(pass_through, lambda ct, out, a, b: -ct * DIV_TRUNC(a, b)))
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
        return DIV_FLOOR, (input, other)
    if rounding_mode == "trunc":
        return DIV_TRUNC, (input, other)
    text(rounding_mode, "div", "rounding_mode")
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
    )


shortcut(div, DIV, 2)


@chosen("function method inplace")
def true_divide(input, other):
    """Compute input / other, elementwise."""
    return DIV, (input, other)


# ---- Three operands -----------------------------------------------------------------------------------------------


def _lerp(a, b, weight):
    """Interpolate from the nearer end, so that weights 0 and 1 give the ends exactly."""
    near = s.absolute(weight) < 0.5
    return s.where(near, _plus_product(a, weight, b - a), _minus_product(b, b - a, 1.0 - weight))


# fmt: off
_LERP: dict[str, Any] = {"check": refuse("bui", message='"lerp_kernel" not implemented for \'{dtype}\''), "wide": True, "node_name": by_operand("LerpBackward0", "LerpBackward1", 2), "derivative": (
              lambda ct, out, a, b, weight: ct * (1 - conj(weight)),
              lambda ct, out, a, b, weight: ct * conj(weight),
              lambda ct, out, a, b, weight: ct * (b - a).conj())}
LERP    = Map("lerp", same_dtype, _lerp, deciding=2, limited=True, **_LERP)
LERP_TENSOR = Map("lerp", same_dtype, _lerp, **_LERP)  # a weight of 0 dims takes part in promotion
ADDCMUL = Map("addcmul", same_dtype, lambda a, b, c, value: _plus_product(a, value * b, c), check=refuse("b", message='"addcmul_cpu_out" not implemented for \'{dtype}\''), deciding=3, wide=True, limited=True,
              derivative=(pass_through,
                          lambda ct, out, a, b, c, value: ct * conj(c * value),
                          lambda ct, out, a, b, c, value: ct * conj(b * value)))
ADDCDIV = Map("addcdiv", same_dtype, lambda a, b, c, value: a + value * b / c, deciding=3, wide=True, limited=True,
              derivative=(pass_through,
                          lambda ct, out, a, b, c, value: ct * conj(value / c),
                          lambda ct, out, a, b, c, value: -ct * (value * b / (c * c)).conj()))
# fmt: on


@chosen("function method inplace")
def lerp(input: Tensor, end: Tensor, weight):
    """input + weight * (end - input), elementwise; `weight` is a number or a tensor. All tensors have one dtype."""
    dtype = input.spec.dtype
    for name, tensor in (("end", end), ("weight", weight)):
        if name == "weight" and isinstance(tensor, Tensor) and not tensor.spec.shape:
            continue  # is promoted like a number
        if isinstance(tensor, Tensor) and tensor.spec.dtype is not dtype:
            raise RuntimeError(
                f"expected dtype {dtype.name} for `{name}` but got dtype {tensor.spec.dtype.name}"
            )
    return LERP_TENSOR if isinstance(weight, Tensor) else LERP, (input, end, weight)


@chosen("function method inplace")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """Compute input + value * tensor1 * tensor2, elementwise."""
    return ADDCMUL, (input, tensor1, tensor2, value)


@chosen("function method inplace")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """input + value * tensor1 / tensor2, elementwise. Raises: RuntimeError if both are integers."""
    if all(isinstance(t, Tensor) and t.spec.dtype.category < 2 for t in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. Convert one of them to a floating point dtype."
        )
    return ADDCDIV, (input, tensor1, tensor2, value)


# ---- Integers --------------------------------------------------------------------------------------------------------

STEPS_AT_ONCE = 8  # of Euclid's algorithm, before the host waits to learn whether all elements are done


def _gcd_by_kernels(a: Tensor, b: Tensor) -> Tensor:
    """By Euclid's algorithm."""
    while bool(a.any()):
        for _ in range(STEPS_AT_ONCE):
            goes_on = a != 0
            rest = b.fmod(a.masked_fill(~goes_on, 1))
            a, b = rest.masked_fill(~goes_on, 0), a.where(goes_on, b)
    return b.abs()


def _lcm_by_kernels(a: Tensor, b: Tensor) -> Tensor:
    wide = promote_types(a.spec.dtype, int32)
    a, b = a.to(wide), b.to(wide)
    divisor = _gcd_by_kernels(a, b)
    return (a.div(divisor.masked_fill(divisor == 0, 1), rounding_mode="trunc") * b).abs()


GCD = ArrayMap(
    "gcd",
    same_dtype,
    np.gcd,
    check=refuse("bfc"),
    derivative=nondifferentiable,
    by_kernels=_gcd_by_kernels,
)


def _lcm(a, b):
    """Multiply as C does: narrow types are multiplied as int32, and wrap around only when they are stored."""
    wide = a.dtype if a.dtype.itemsize == 8 else np.promote_types(a.dtype, np.int32)
    return np.abs(np.lcm(a.astype(wide), b.astype(wide))).astype(a.dtype)


LCM = ArrayMap(
    "lcm",
    same_dtype,
    _lcm,
    check=refuse("bfc"),
    derivative=nondifferentiable,
    by_kernels=_lcm_by_kernels,
)
gcd = publish(GCD, 2, "function method inplace", numbers="", doc="The greatest common divisor, elementwise.")
lcm = publish(LCM, 2, "function method inplace", numbers="", doc="The least common multiple, elementwise.")
