"""Defines ops on the parts of numbers: neighbours, mantissa and exponent, NaN and infinity, complex numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

from ...core.derivative import nondifferentiable
from ...core.dtype import DTYPES, LEGACY_NAMES, DType, float16, float32, float64, int32, uint32, uint64
from ...core.limits import largest
from ...core.promotion import common_dtype
from ...core.public import public
from ...core.return_types import return_type
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...engine.convert import convert
from ...families.calls import check_operands, chosen
from ...families.map import COPY, ONLY_FLOATS, Map, Types, refuse, same_dtype
from ..tensor.rules import zero_grad

_NEXTAFTER = (lambda ct, out, a, b: ct.masked_fill(a == b, 0), zero_grad)


@functools.cache
def _nextafter(dtype: DType) -> Map:
    """The row for one dtype. Neighbouring numbers have neighbouring bit patterns, which differ from dtype to dtype."""
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

    return Map("nextafter", same_dtype, element, check=ONLY_FLOATS, derivative=_NEXTAFTER)


@chosen("function method inplace")
def nextafter(input: Tensor, other: Tensor):
    """Return the next representable number after `input` towards `other`."""
    check_operands("nextafter", "", input, other)
    dtype = common_dtype((input.spec, other.spec))
    return _nextafter(dtype if dtype.is_floating_point else float32), (input, other)


def _nan_to_num(a, nan, posinf, neginf):
    if isinstance(a, s.Complex):
        parts = (_nan_to_num(part, nan.real, posinf.real, neginf.real) for part in (a.real, a.imag))
        return s.Complex(*parts)
    replaced = s.where(s.eq(a, math.inf), posinf, s.where(s.eq(a, -math.inf), neginf, a))
    return s.where(s.isnan(a), nan, replaced)


NAN_TO_NUM = Map(
    "nan_to_num",
    same_dtype,
    _nan_to_num,
    deciding=1,
    derivative=lambda ct, out, a, nan, posinf, neginf: ct.where(a.isfinite(), 0),
)


@chosen("function method inplace")
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
):
    """Replace NaN (by 0) and infinities (by the largest and smallest finite numbers), or by the given numbers."""
    dtype = input.spec.dtype
    if dtype.category < 2:
        return COPY, (input,)
    limit = largest(dtype.to_real())
    replacements = (
        0.0 if nan is None else nan,
        limit if posinf is None else posinf,
        -limit if neginf is None else neginf,
    )
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
    exponent = (
        s.cast((pattern >> mantissa) & field, int32)
        - bias
        - s.where(tiny, s.const(64, int32), s.const(0, int32))
    )
    plain = s.bitcast((pattern & ~s.const(field << mantissa, own)) | (bias << mantissa), a.dtype)
    special = s.eq(a, 0) | ~s.isfinite(a)
    return s.where(special, a, plain), s.where(special, s.const(0, int32), exponent)


def _float_to_int32(common: DType) -> Types:
    return Types(common, int32)


_FREXP = refuse("buic", RuntimeError, "torch.frexp() only supports floating-point dtypes")
FREXP_EXPONENT = Map(
    "frexp", _float_to_int32, lambda a: _frexp(a)[1], check=_FREXP, derivative=nondifferentiable
)
FREXP_MANTISSA = Map(
    "frexp",
    same_dtype,
    lambda a: _frexp(a)[0],
    check=_FREXP,
    derivative=lambda ct, out, a: ct / FREXP_EXPONENT(a).exp2(),
)


@public("function method", out=True)
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mantissa in [0.5, 1) and the int32 exponent, with input = mantissa * 2**exponent."""
    return return_type("frexp", ("mantissa", "exponent"))((FREXP_MANTISSA(input), FREXP_EXPONENT(input)))


# ---- Complex numbers from two real ones ------------------------------------------------------------------------------


def _real_to_complex(common: DType) -> Types:
    return Types(common, common.to_complex())


def _two_reals(name: str, first: str, a: Any, second: str, b: Any) -> None:
    for position, (argument, operand) in enumerate(((first, a), (second, b)), 1):
        if not isinstance(operand, Tensor):
            kind = type(operand).__name__
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind}"
            )
    one, other = LEGACY_NAMES[a.spec.dtype], LEGACY_NAMES[b.spec.dtype]
    if not {a.spec.dtype, b.spec.dtype} <= {float16, float32, float64}:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {one} and {other}"
        )
    if one != other:
        raise RuntimeError(
            f"Expected object of scalar type {one} but got scalar type {other} for second argument"
        )


# fmt: off
COMPLEX = Map("complex", _real_to_complex, s.Complex,
              derivative=(lambda ct, out, a, b: ct.real,
                          lambda ct, out, a, b: ct.imag))
POLAR   = Map("polar",   _real_to_complex, lambda size, angle: s.Complex(size * s.cos(angle), size * s.sin(angle)),
              derivative=(lambda ct, out, size, angle: (ct * out.sgn().conj()).real,
                          lambda ct, out, size, angle: (ct * out.conj()).imag))
# fmt: on


@public("function")
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, elementwise. Raises: RuntimeError unless both are of one floating point dtype."""
    _two_reals("complex", "real", real, "imag", imag)
    if out is None:
        return COMPLEX(real, imag)
    expected, got = LEGACY_NAMES[real.spec.dtype.to_complex()], LEGACY_NAMES[out.spec.dtype]
    if expected != got:
        raise RuntimeError(
            f"Expected object of scalar type {expected} but got scalar type {got} for argument 'out'"
        )
    return COMPLEX.into(out, real, imag)


@chosen("function")
def polar(abs: Tensor, angle: Tensor):
    """abs * exp(i angle), elementwise. Raises: RuntimeError unless both are of one floating point dtype."""
    _two_reals("polar", "abs", abs, "angle", angle)
    return POLAR, (abs, angle)
