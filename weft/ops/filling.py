"""One value everywhere: fill, zero and the check of what a dtype can hold."""

from __future__ import annotations

import math
from typing import Any

from ..core.dtype import DType, bool_, float16, float32, float64
from ..core.op import FUNCTIONS, check_inplace, needs_recording, public
from ..core.tensor import Tensor
from ..families.map import FILL, is_operand
from .copying import copy_values

_PLAIN = (bool, int, float)

_C_NAMES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "at::Half", "bfloat16": "at::BFloat16",
    "float32": "float", "float64": "double", "complex32": "c10::complex<at::Half>", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def check_number(value: Any, dtype: DType) -> None:
    """Raises: RuntimeError if `dtype` cannot hold the number: complex in a real type, or too large.

    Negative numbers wrap around in unsigned types, as in PyTorch.
    """
    if not _holds(value, dtype):
        raise RuntimeError(
            f"value cannot be converted to type {_C_NAMES.get(dtype.name, dtype.name)} without overflow"
        )


def _holds(value: Any, dtype: DType) -> bool:
    if isinstance(value, complex):
        if not dtype.is_complex:
            return value.imag == 0 and _holds(value.real, dtype)
        return _holds(value.real, dtype.to_real()) and _holds(value.imag, dtype.to_real())
    if dtype is bool_ or dtype.is_complex:
        return True
    if dtype.is_floating_point:
        return dtype.itemsize == 8 or not math.isfinite(value) or abs(value) <= _largest(dtype)
    if not math.isfinite(value):
        return False
    bits = 8 * dtype.itemsize
    high = 2 ** (bits - (dtype.kind == "i")) - 1
    low = -high - 1 if dtype.kind == "i" else -high
    return low <= value <= high


def _largest(dtype: DType) -> float:
    bias = 2 ** (dtype.exponent_bits - 1) - 1
    if dtype in (float16, float32, float64) or dtype.name in ("bfloat16", "float8_e5m2"):
        return (2 - 2.0**-dtype.mantissa_bits) * 2.0**bias
    return 448.0 if dtype.name == "float8_e4m3fn" else 57344.0


@public("function method")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write `value`, a number or a 0-dim tensor, everywhere.

    >>> import weft as torch
    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if isinstance(value, Tensor):
        if value.spec.shape:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {len(value.spec.shape)} dimensions."
            )
        if input.spec.repeats or needs_recording((input, value)):
            check_inplace(input, "fill")
        copy_values(input, value)
        return input
    if not is_operand(value):
        raise TypeError(f"fill_(): argument 'value' (position 1) must be Number, not {type(value).__name__}")
    own = input.spec
    if type(value) is not float or own.dtype is not float32 and own.dtype is not float64:
        check_number(value, own.dtype)
        if isinstance(value, complex) and not own.dtype.is_complex:
            value = value.real
    elif own.dtype is float32:
        check_number(value, float32)
    if own.numel and own.device.backend.has_memory:
        FILL.write(input, value)
    return input


@public("function")
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` that holds `value`, a number or a 0-dim tensor, everywhere."""
    return fill_(input.clone(), value)


@public("function method")
def zero_(input: Tensor) -> Tensor:
    """Write 0 everywhere."""
    return fill_(input, 0)
