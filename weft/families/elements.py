"""Conversions of one element: from memory to the type that a kernel computes in, rounding, and back to memory."""

from __future__ import annotations

from typing import Any

from ..core.dtype import DType, bool_, compute_type, uint8
from ..core.spec import Spec
from ..engine.complexes import Complex
from ..engine.convert import convert
from ..engine.expr import const, load, param
from ..engine.loops import Result


def load_as(index: int, operand: Spec, compute: DType) -> Any:
    """Operand `index` of the kernel, converted to the compute type; a pending conjugation or negation is applied."""
    if operand.dtype.is_complex:
        part = operand.dtype.to_real()
        real, imag = load((index, 0), part), load((index, 1), part)  # type: ignore[arg-type]
        wide = compute_type(operand.dtype).to_real()
        value: Any = Complex(convert(real, wide), convert(imag, wide))
        if operand.conj:
            value = Complex(value.real, -value.imag)
    else:
        value = load(index, operand.dtype)
    value = as_type(value, compute)
    return -value if operand.neg else value


def param_as(index: int, compute: DType) -> Any:
    if compute.is_complex:
        return Complex(param(index, compute.to_real()), param(index + 1, compute.to_real()))
    if compute is bool_:  # arrives as a byte
        return convert(param(index, uint8), bool_)
    return param(index, compute)


def const_as(value: Any, compute: DType) -> Any:
    """A Python number as a constant. A complex number has no imaginary part where `compute` is real."""
    if compute.is_complex:
        part = compute.to_real()
        return Complex(const(value.real, part), const(value.imag, part))
    return const(value.real, compute)


def rounded(value: Any, dtype: DType) -> Any:
    """A value in the compute type of `dtype`, rounded to `dtype` if that is narrower. All rounding between ops is done here."""
    compute = compute_type(dtype)
    if compute is dtype:
        return value
    if not isinstance(value, Complex):
        return convert(convert(value, dtype), compute)
    part, wide = dtype.to_real(), compute.to_real()
    return Complex(convert(convert(value.real, part), wide), convert(convert(value.imag, part), wide))


def as_type(value: Any, dtype: DType) -> Any:
    """An Expr or Complex converted to `dtype`. A real type drops the imaginary part; a bool is true if either part is not 0."""
    if isinstance(value, Complex):
        if dtype.is_complex:
            part = dtype.to_real()
            return Complex(convert(value.real, part), convert(value.imag, part))
        if dtype is bool_:
            return convert(value.real, bool_) | convert(value.imag, bool_)
        return convert(value.real, dtype)
    if dtype.is_complex:
        real = convert(value, dtype.to_real())
        return Complex(real, const(0.0, real.dtype))
    return convert(value, dtype)


def store_as(value: Any, result: Spec) -> Result:
    """The parts that are stored, in the dtype of the result. If the result is a lazy view, its pending conjugation or negation is
    undone first.
    """
    dtype = result.dtype
    if result.neg:
        value = -value
    value = as_type(value, compute_type(dtype))
    if not dtype.is_complex:
        return Result((convert(value, dtype),))
    part = dtype.to_real()
    imag = -value.imag if result.conj else value.imag
    return Result((convert(value.real, part), convert(imag, part)))
