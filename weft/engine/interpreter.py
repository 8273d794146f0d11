"""Expr graphs evaluated with NumPy, node by node: slow and obvious, what compiled kernels are tested against."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtype import REDUCED_FLOATS, DType, float64, int32, int64, uint32, uint64
from .expr import Expr, postorder


def evaluate(
    roots: Sequence[Expr], operands: Sequence[np.ndarray] | Mapping[Any, np.ndarray], params: Sequence = ()
) -> list[np.ndarray]:
    """The values of `roots` for every element of the operands, which broadcast; `load(k)` is `operands[k]`.

    A load (operand, part) is the real (0) or imaginary (1) part of a complex operand.
    """
    values: dict[Expr, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for expr in postorder(tuple(roots)):
            if expr.op == "load":
                values[expr] = _load(expr, operands)
            elif expr.op == "param":
                values[expr] = np.asarray(params[expr.value], expr.dtype.numpy)
            elif expr.op == "const":
                values[expr] = _constant(expr.dtype, expr.value)
            else:
                values[expr] = TABLE[expr.op](expr, *(values[arg] for arg in expr.args))
    return [values[root] for root in roots]


def _load(expr: Expr, operands: Any) -> np.ndarray:
    if not isinstance(expr.value, tuple):
        return operands[expr.value]
    index, part = expr.value
    name = ("real", "imag")[part]
    whole = operands[index]
    return whole[name] if whole.dtype.names else getattr(whole, name)


def _constant(dtype: DType, bits: int) -> np.ndarray:
    if dtype.kind == "b":
        return np.asarray(bool(bits))
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype.numpy.newbyteorder("<"))[0].astype(
        dtype.numpy
    )


def _leaf(expr: Expr) -> np.ndarray:
    raise KeyError(f"{expr!r} is a leaf: it has no operands to compute from")


def _numpy(function: Callable) -> Callable:
    """A primitive that NumPy has under another name; integers keep their type."""
    return lambda expr, *operands: function(*operands)


def _divide(expr: Expr, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if expr.dtype.kind == "f":
        return a / b
    return np.floor_divide(a - np.fmod(a, b), b)  # what remains divides evenly: floor is the truncation


@functools.cache
def _fma_of_libm() -> Callable[[float, float, float], float]:
    function = ctypes.CDLL(ctypes.util.find_library("m") or "ucrtbase").fma
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    return function


def _fma(expr: Expr, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    a, b, c = np.broadcast_arrays(a, b, c)
    if expr.dtype is float64:
        triples = zip(a.ravel().tolist(), b.ravel().tolist(), c.ravel().tolist(), strict=True)
        return np.array([_fma_of_libm()(*triple) for triple in triples]).reshape(a.shape)
    return _fma_through_float64(a, b, c)


def _fma_through_float64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The product is exact in float64, the sum is rounded to odd, so that rounding it again is right.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57 (2008).
    """
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    odd = np.where((error > 0) == (total > 0), bits | 1, bits - 1)
    return np.where(inexact, odd, bits).view(np.float64).astype(np.float32)


def _shift_left(expr: Expr, a: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.left_shift(a, count).astype(expr.dtype.numpy)


def _count_leading_zeros(expr: Expr, a: np.ndarray) -> np.ndarray:
    width = 8 * expr.dtype.itemsize
    bits = np.asarray(a).view(f"u{expr.dtype.itemsize}")
    zeros = np.full(bits.shape, width, expr.dtype.numpy)
    for position in range(width):
        zeros = np.where(bits >> position != 0, expr.dtype.numpy.type(width - 1 - position), zeros)
    return zeros


def _popcount(expr: Expr, a: np.ndarray) -> np.ndarray:
    return np.bitwise_count(np.asarray(a).view(f"u{expr.dtype.itemsize}")).astype(expr.dtype.numpy)


def _bitcast(expr: Expr, a: np.ndarray) -> np.ndarray:
    return np.asarray(a).view(expr.dtype.numpy)


def _cast(expr: Expr, a: np.ndarray) -> np.ndarray:
    """Conversion as PyTorch's C++ does it on x86."""
    source, target = expr.args[0].dtype, expr.dtype
    if target.kind == "b":
        return a.astype(np.bool_) if source.kind != "f" else a != 0
    if target.kind == "f":
        return _to_float(a, source, target)
    if source.kind != "f":
        return a.astype(target.numpy)
    if source.itemsize < 4:
        a = a.astype(np.float32)
    if target is uint64:
        return _float_to_uint64(a)
    through = int64 if target.itemsize == 8 or target is uint32 else int32
    return _truncate(a, through).astype(target.numpy)


def _to_float(a: np.ndarray, source: DType, target: DType) -> np.ndarray:
    if target not in REDUCED_FLOATS or source is target:
        return a.astype(target.numpy)
    single = a.astype(np.float32)
    if target.name == "float8_e4m3fn":  # saturates, where ml_dtypes gives NaN
        single = np.clip(single, np.float32(-448), np.float32(448))
    return single.astype(target.numpy)


def _truncate(a: np.ndarray, target: DType) -> np.ndarray:
    """A float as int32 or int64; the minimum stands for everything out of range ("integer indefinite" on x86)."""
    info = np.iinfo(target.numpy)
    whole = np.trunc(a)
    fits = (whole >= float(info.min)) & (whole < -float(info.min))
    return np.where(fits, np.where(fits, whole, 0).astype(target.numpy), target.numpy.type(info.min))


def _float_to_uint64(a: np.ndarray) -> np.ndarray:
    """Values from 2**63 on convert after moving them down; negative ones wrap as int64 does."""
    half = a.dtype.type(2.0**63)
    large = a >= half
    bits = _truncate(np.where(large, a - half, a), int64).view(np.uint64)
    return np.where(large, bits ^ np.uint64(2**63), bits)


def _slow_path(expr: Expr, *operands: np.ndarray) -> np.ndarray:
    *xs, usual = operands
    holds, exception = evaluate(expr.value, xs)
    return np.where(holds, exception, usual)


# What the interpreter knows of arithmetic: primitive -> NumPy function.
TABLE: dict[str, Callable] = {
    "load": _leaf,
    "param": _leaf,
    "const": _leaf,
    "add": _numpy(np.add),
    "sub": _numpy(np.subtract),
    "mul": _numpy(np.multiply),
    "div": _divide,
    "rem": _numpy(np.fmod),
    "neg": _numpy(np.negative),
    "abs": _numpy(np.absolute),
    "fma": _fma,
    "sqrt": _numpy(np.sqrt),
    "floor": _numpy(np.floor),
    "ceil": _numpy(np.ceil),
    "trunc": _numpy(np.trunc),
    "rint": _numpy(np.rint),
    "copysign": _numpy(np.copysign),
    "ldexp": _numpy(np.ldexp),
    "and": _numpy(np.bitwise_and),
    "or": _numpy(np.bitwise_or),
    "xor": _numpy(np.bitwise_xor),
    "not": _numpy(np.invert),
    "shl": _shift_left,
    "shr": _numpy(np.right_shift),
    "popcount": _popcount,
    "clz": _count_leading_zeros,
    "lt": _numpy(np.less),
    "le": _numpy(np.less_equal),
    "eq": _numpy(np.equal),
    "ne": _numpy(np.not_equal),
    "select": _numpy(np.where),
    "cast": _cast,
    "bitcast": _bitcast,
    "slow_path": _slow_path,
}
