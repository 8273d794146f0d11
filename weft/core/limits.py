"""The limits of dtypes: torch.finfo, torch.iinfo, and range checks for numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

from .dtype import DTYPES, DType, bool_, get_default_dtype


class finfo:  # noqa: N801 (PyTorch's name)
    """Limits of a floating point dtype. For a complex dtype, the limits of its real dtype.

    >>> import weft as torch
    >>> torch.finfo(torch.float16).max, torch.finfo(torch.float32).eps
    (65504.0, 1.1920928955078125e-07)
    """

    def __init__(self, type: DType | None = None):
        dtype = get_default_dtype() if type is None else type
        if not isinstance(dtype, DType):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        dtype = dtype.to_real()
        if not dtype.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        self._dtype = dtype
        self.dtype = dtype.name
        self.bits = 8 * dtype.itemsize
        # For e5m2fnuz PyTorch returns half of the distance between 1 and the next number.
        self.eps = 2.0 ** -(dtype.mantissa_bits + (dtype.name == "float8_e5m2fnuz"))
        self.max = largest(dtype)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - dtype.exponent_bias)
        self.resolution = 10.0 ** -int((dtype.mantissa_bits) * 0.30103)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self._dtype is other._dtype

    def __hash__(self) -> int:
        return hash(self._dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


@functools.cache
def largest(dtype: DType) -> float:
    """The largest finite value of a real floating point dtype.

    Formats without infinity use the largest exponent for finite numbers as well.
    """
    top = 2**dtype.exponent_bits - 1
    fraction = 2.0 - 2.0**-dtype.mantissa_bits
    if dtype.name == "float8_e4m3fn":  # the all-ones pattern is NaN
        return (2.0 - 2.0 ** (1 - dtype.mantissa_bits)) * 2.0 ** (top - dtype.exponent_bias)
    if dtype.is_fnuz:
        return fraction * 2.0 ** (top - dtype.exponent_bias)
    return fraction * 2.0 ** (top - 1 - dtype.exponent_bias)


class iinfo:  # noqa: N801 (PyTorch's name)
    """Limits of an integer dtype.

    >>> import weft as torch
    >>> torch.iinfo(torch.uint8)
    iinfo(min=0, max=255, dtype=uint8)
    """

    def __init__(self, type: DType):
        if not isinstance(type, DType) or not type.is_integral:
            if type is bool_:
                raise TypeError("torch.bool is not supported by torch.iinfo")
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
            )
        self._dtype = type
        self.dtype = type.name
        self.bits = 8 * type.itemsize
        self.min = -(2 ** (self.bits - 1)) if type.kind == "i" else 0
        self.max = 2 ** (self.bits - (type.kind == "i")) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self._dtype is other._dtype

    def __hash__(self) -> int:
        return hash(self._dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# ---- Which numbers fit -----------------------------------------------------------------------------------------------


def _limits(dtype: DType) -> tuple[float, float]:
    """The smallest and the largest number that `check_number` accepts for a dtype."""
    if dtype.kind in "ui":
        high: float = 2 ** (8 * dtype.itemsize - (dtype.kind == "i")) - 1
        return (-high - 1 if dtype.kind == "i" else -high), high
    part = dtype.to_real()
    if dtype is bool_ or part.itemsize == 8:
        return -math.inf, math.inf
    return -largest(part), largest(part)


LIMITS = {dtype: _limits(dtype) for dtype in DTYPES.values()}
_C_NAMES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def check_number(value: Any, dtype: DType) -> None:
    """Raises: RuntimeError if `dtype` cannot represent the number: a complex number in a real dtype, or a number too large.

    Negative integers wrap around in unsigned types, as in PyTorch; negative floats do not.
    """
    try:
        held = _holds(value, dtype)
    except TypeError:
        raise TypeError(f"argument 'value' must be Number, not {type(value).__name__}") from None
    if not held:
        raise overflow(dtype)


def overflow(dtype: DType) -> RuntimeError:
    """The error for a number that the dtype cannot represent."""
    name = _C_NAMES.get(dtype.name, dtype.name)
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


def _holds(value: Any, dtype: DType) -> bool:
    if isinstance(value, complex):
        if not dtype.is_complex:
            return dtype is bool_ or value.imag == 0 and _holds(value.real, dtype)
        return _holds(value.real, dtype.to_real()) and _holds(value.imag, dtype.to_real())
    low, high = LIMITS[dtype]
    if type(value) is float and value < 0 and dtype.kind == "u":
        return False
    return low <= value <= high or dtype.kind not in "ui" and not math.isfinite(value)
