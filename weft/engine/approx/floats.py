"""Defines the layout of floats, and constants as floats."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from ...core.dtype import DType, float32, float64
from ..expr import Expr, const, select

INF, NAN = math.inf, math.nan


class _Format(NamedTuple):
    """Describes a float type's layout."""

    mantissa: int  # stored bits
    bias: int
    magic: float  # adding it rounds to an integer, which then is in the low bits
    smallest_normal: float


FORMAT = {
    float32: _Format(23, 127, 1.5 * 2.0**23, 2.0**-126),
    float64: _Format(52, 1023, 1.5 * 2.0**52, 2.0**-1022),
}


def bits(value: float, dtype: DType) -> int:
    """Return the bit pattern of a float, as a signed integer."""
    return struct.unpack("<i", struct.pack("<f", value))[0] if dtype is float32 else bits64(value)


def bits64(value: float) -> int:
    return struct.unpack("<q", struct.pack("<d", value))[0]


def clamp(x: Expr, low: float, high: float) -> Expr:
    """NaN passes."""
    x = select(const(high, x.dtype) < x, high, x)
    return select(x < low, low, x)


def split_float(value: float, rest: float, dtype: DType) -> tuple[float, float]:
    """value + rest as two floats; the first has 9 (float32) or 12 trailing zero bits: times k it is exact."""
    keep = -(1 << 9) if dtype is float32 else -(1 << 12)
    if dtype is float32:
        high = struct.unpack("<f", struct.pack("<i", bits(value, dtype) & keep))[0]
    else:
        high = struct.unpack("<d", struct.pack("<q", bits64(value) & keep))[0]
    return high, (value - high) + rest


def nearest_float(value: float, rest: float, dtype: DType) -> tuple[float, float]:
    """Return the nearest float of the type to value + rest, and what that misses."""
    if dtype is float64:
        return value, rest
    high = struct.unpack("<f", struct.pack("<f", value))[0]
    return high, (value - high) + rest
