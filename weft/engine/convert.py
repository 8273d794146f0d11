"""Conversions between dtypes, as expressions. Kernels convert the values that they load and store."""

from __future__ import annotations

from ..core.dtype import REDUCED_FLOATS, DType, bfloat16, float16, float32, uint8, uint16, uint32
from .expr import Expr, bitcast, cast, const, eq, ne, select
from .host import converts_half


def convert(a: Expr, dtype: DType) -> Expr:
    """`a` converted to `dtype`, rounded or truncated as PyTorch does. Both dtypes must be real."""
    source = a.dtype
    if source is dtype:
        return a
    if _is_bits(source):
        return convert(_widen(a), dtype)
    if _is_bits(dtype):
        return _narrow(convert(a, float32), dtype)
    if dtype is float16 and source is not float32:
        return cast(convert(a, float32), float16)
    if source is float16 and dtype is not float32:
        return convert(cast(a, float32), dtype)
    return cast(a, dtype)


def _is_bits(dtype: DType) -> bool:
    """Whether the processor cannot convert this float dtype, so that expressions take its bits apart."""
    return dtype in REDUCED_FLOATS and not (dtype is float16 and converts_half())


def _bits_type(dtype: DType) -> DType:
    return uint8 if dtype.itemsize == 1 else uint16


def _infinity(dtype: DType) -> int:
    """The bits of infinity in a format that has it: all bits of the exponent."""
    return ((1 << dtype.exponent_bits) - 1) << dtype.mantissa_bits


def _widen(a: Expr) -> Expr:
    """Widen a narrow float to float32, exactly. Shift the bits into place, then rescale the exponent by a product."""
    dtype = a.dtype
    width = 8 * dtype.itemsize
    bits = cast(bitcast(a, _bits_type(dtype)), uint32)
    if dtype.name == "bfloat16":
        return bitcast(bits << 16, float32)
    sign = (bits >> (width - 1)) << 31
    rest = (bits & ((1 << (width - 1)) - 1)) << (23 - dtype.mantissa_bits)
    # Read as float32, the value is too small by 2**(bias difference), also if subnormal. One exact product corrects it.
    value = bitcast(rest, float32) * const(2.0 ** (127 - dtype.exponent_bias), float32)
    value = bitcast(bitcast(value, uint32) | sign, float32)
    nan = const(float("nan"), float32)
    magnitude = bits & ((1 << (width - 1)) - 1)
    if dtype.is_fnuz:
        return select(eq(bits, 1 << (width - 1)), nan, value)
    if dtype.name == "float8_e4m3fn":
        return select(eq(magnitude, 0x7F), nan, value)
    if dtype is float16:  # as F16C does it: the mantissa of a NaN is kept, and the NaN made quiet
        special = (
            sign
            | 0x7F800000
            | rest
            | select(const(0x7C00, uint32) < magnitude, const(0x400000, uint32), const(0, uint32))
        )
        return select(magnitude < const(0x7C00, uint32), value, bitcast(special, float32))
    infinite = bitcast(sign | 0x7F800000, float32)
    value = select(eq(magnitude, _infinity(dtype)), infinite, value)
    return select(const(_infinity(dtype), uint32) < magnitude, nan, value)


def _narrow(a: Expr, dtype: DType) -> Expr:
    """Round float32 to a narrow float, to nearest even."""
    if dtype.name == "bfloat16":
        return _to_bfloat16(a)
    width, mantissa = 8 * dtype.itemsize, dtype.mantissa_bits
    bits = bitcast(a, uint32)
    sign = (bits >> 31) << (width - 1)
    magnitude = bitcast(bits & 0x7FFFFFFF, float32)
    # Normal results: round the bits of the float32 at the new last place; a carry into the exponent is correct.
    whole = bitcast(magnitude, uint32)
    drop = 23 - mantissa
    odd = (whole >> drop) & 1
    rounded = (whole + ((1 << (drop - 1)) - 1) + odd) >> drop
    normal = rounded - ((127 - dtype.exponent_bias) << mantissa)
    # Subnormal results: adding a power of two lets the adder round at the right place.
    smallest_exponent = 1 - dtype.exponent_bias - mantissa
    magic = 2.0 ** (smallest_exponent + 23)
    subnormal = bitcast(magnitude + magic, uint32) - bitcast(const(magic, float32), uint32)
    result = select(magnitude < 2.0 ** (1 - dtype.exponent_bias), subnormal, normal)
    if dtype is float16:
        # As F16C does it: the upper bits of the mantissa of a NaN are kept, and the NaN is made quiet.
        infinite = const(0x7C00, uint32)
        result = select(infinite < result, infinite, result)
        quiet = (whole >> drop) & 0x3FF | 0x7E00
        result = select(ne(magnitude, magnitude), quiet, result) | sign
        return bitcast(cast(result, uint16), float16)
    return bitcast(cast(_special(result, magnitude, sign, dtype), _bits_type(dtype)), dtype)


def _special(result: Expr, magnitude: Expr, sign: Expr, dtype: DType) -> Expr:
    """Handle overflow, infinity, NaN and the sign, per format."""
    width = 8 * dtype.itemsize
    top = (1 << (width - 1)) - 1
    if dtype.is_fnuz:  # no infinity, no negative zero; 0x80 is the only NaN
        nan = const(1 << (width - 1), uint32)
        overflow = (const(top, uint32) < result) | ~(magnitude < float("inf"))
        signed = select(eq(result, 0), result, result | sign)
        return select(overflow, nan, signed)
    if dtype.name == "float8_e4m3fn":  # no infinity: everything beyond becomes the largest value
        beyond = (const(0x7E, uint32) < result) | ~(magnitude < float("inf"))
        result = select(beyond, const(0x7E, uint32), result)
        return select(ne(magnitude, magnitude), const(0x7F, uint32), result) | sign
    beyond = (const(_infinity(dtype) - 1, uint32) < result) | ~(magnitude < float("inf"))
    result = select(beyond, const(_infinity(dtype), uint32), result)
    return select(ne(magnitude, magnitude), const(top, uint32), result) | sign


def _to_bfloat16(a: Expr) -> Expr:
    bits = bitcast(a, uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    chosen = select(ne(a, a), quiet, rounded)
    return bitcast(cast(chosen, uint16), bfloat16)
