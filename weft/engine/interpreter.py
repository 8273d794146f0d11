"""Expr graphs evaluated with an array library, node by node: with NumPy slow and obvious, what compiled kernels are tested against."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtype import REDUCED_FLOATS, DType, float64, int32, int64, uint32, uint64
from .expr import Expr, postorder

# Primitives that NumPy, and what has its interface, has under another name; integers keep their type.
_NAMES = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "rem": "fmod",
    "neg": "negative",
    "abs": "absolute",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "copysign": "copysign",
    "ldexp": "ldexp",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "invert",
    "shr": "right_shift",
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "select": "where",
}


class Interpreter:
    """Evaluates Exprs with `xp`: NumPy, or a module with its interface. Arrays may be what that library traces."""

    def __init__(self, xp: Any):
        self.xp = xp
        self.table: dict[str, Callable] = {
            **{op: _ignoring_expr(getattr(xp, name)) for op, name in _NAMES.items()},
            **{op: self._leaf for op in ("load", "param", "const")},
            "div": self.divide,
            "fma": self.fma,
            "shl": self.shift_left,
            "popcount": self.popcount,
            "clz": self.count_leading_zeros,
            "cast": self.cast,
            "bitcast": self.bitcast,
            "slow_path": self.slow_path,
        }

    def evaluate(self, roots: Sequence[Expr], operands: Sequence | Mapping, params: Sequence = ()) -> list:
        """The values of `roots` for every element of the operands, which broadcast; `load(k)` is `operands[k]`.

        A load (operand, part) is the real (0) or imaginary (1) part of a complex operand.
        """
        values: dict[Expr, Any] = {}
        for expr in postorder(tuple(roots)):
            if expr.op == "load":
                values[expr] = self.load(expr, operands)
            elif expr.op == "param":
                values[expr] = self.xp.asarray(params[expr.value], expr.dtype.numpy)
            elif expr.op == "const":
                values[expr] = _constant(expr.dtype, expr.value)
            else:
                values[expr] = self.table[expr.op](expr, *(values[arg] for arg in expr.args))
        return [values[root] for root in roots]

    def load(self, expr: Expr, operands: Any) -> Any:
        if not isinstance(expr.value, tuple):
            return operands[expr.value]
        index, part = expr.value
        name = ("real", "imag")[part]
        whole = operands[index]
        return whole[name] if whole.dtype.names else getattr(whole, name)

    def _leaf(self, expr: Expr) -> Any:
        raise KeyError(f"{expr!r} is a leaf: it has no operands to compute from")

    def divide(self, expr: Expr, a: Any, b: Any) -> Any:
        if expr.dtype.kind == "f":
            return a / b
        # What remains divides evenly: floor is the truncation.
        return self.xp.floor_divide(a - self.xp.fmod(a, b), b)

    def fma(self, expr: Expr, a: Any, b: Any, c: Any) -> Any:
        a, b, c = np.broadcast_arrays(a, b, c)
        if expr.dtype is float64:
            triples = zip(a.ravel().tolist(), b.ravel().tolist(), c.ravel().tolist(), strict=True)
            return np.array([_fma_of_libm()(*triple) for triple in triples]).reshape(a.shape)
        return _fma_through_float64(a, b, c)

    def shift_left(self, expr: Expr, a: Any, count: Any) -> Any:
        return self.xp.left_shift(a, count).astype(expr.dtype.numpy)

    def count_leading_zeros(self, expr: Expr, a: Any) -> Any:
        width = 8 * expr.dtype.itemsize
        bits = np.asarray(a).view(f"u{expr.dtype.itemsize}")
        zeros = np.full(bits.shape, width, expr.dtype.numpy)
        for position in range(width):
            zeros = np.where(bits >> position != 0, expr.dtype.numpy.type(width - 1 - position), zeros)
        return zeros

    def popcount(self, expr: Expr, a: Any) -> Any:
        bits = self.xp.asarray(a).view(f"u{expr.dtype.itemsize}")
        return self.xp.bitwise_count(bits).astype(expr.dtype.numpy)

    def bitcast(self, expr: Expr, a: Any) -> Any:
        return self.xp.asarray(a).view(expr.dtype.numpy)

    def cast(self, expr: Expr, a: Any) -> Any:
        """Conversion as PyTorch's C++ does it on x86."""
        source, target = expr.args[0].dtype, expr.dtype
        if target.kind == "b":
            return a.astype(np.bool_) if source.kind != "f" else a != 0
        if target.kind == "f":
            return self._to_float(a, source, target)
        if source.kind != "f":
            return a.astype(target.numpy)
        if source.itemsize < 4:
            a = a.astype(np.float32)
        if target is uint64:
            return self._float_to_uint64(a)
        through = int64 if target.itemsize == 8 or target is uint32 else int32
        return self._truncate(a, through).astype(target.numpy)

    def _to_float(self, a: Any, source: DType, target: DType) -> Any:
        if target not in REDUCED_FLOATS or source is target:
            return a.astype(target.numpy)
        single = a.astype(np.float32)
        if target.name == "float8_e4m3fn":  # saturates, where ml_dtypes gives NaN
            single = self.xp.clip(single, np.float32(-448), np.float32(448))
        return single.astype(target.numpy)

    def _truncate(self, a: Any, target: DType) -> Any:
        """A float as int32 or int64; the minimum stands for everything out of range ("integer indefinite" on x86)."""
        info, where = np.iinfo(target.numpy), self.xp.where
        whole = self.xp.trunc(a)
        fits = (whole >= float(info.min)) & (whole < -float(info.min))
        return where(fits, where(fits, whole, 0).astype(target.numpy), target.numpy.type(info.min))

    def _float_to_uint64(self, a: Any) -> Any:
        """Values from 2**63 on convert after moving them down; negative ones wrap as int64 does."""
        half = a.dtype.type(2.0**63)
        large = a >= half
        bits = self._truncate(self.xp.where(large, a - half, a), int64).view(np.uint64)
        return self.xp.where(large, bits ^ np.uint64(2**63), bits)

    def slow_path(self, expr: Expr, *operands: Any) -> Any:
        *xs, usual = operands
        holds, exception = self.evaluate(expr.value, xs)
        return self.xp.where(holds, exception, usual)


def _ignoring_expr(function: Callable) -> Callable:
    return lambda expr, *operands: function(*operands)


def _constant(dtype: DType, bits: int) -> np.ndarray:
    if dtype.kind == "b":
        return np.asarray(bool(bits))
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype.numpy.newbyteorder("<"))[0].astype(
        dtype.numpy
    )


@functools.cache
def _fma_of_libm() -> Callable[[float, float, float], float]:
    # `find_library` finds nothing in containers without compilers and ldconfig.
    name = "ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m") or "libm.so.6"
    function = ctypes.CDLL(name).fma
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    return function


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


NUMPY = Interpreter(np)


def evaluate(
    roots: Sequence[Expr], operands: Sequence[np.ndarray] | Mapping[Any, np.ndarray], params: Sequence = ()
) -> list[np.ndarray]:
    """What `Interpreter.evaluate` returns with NumPy, which warns of nothing."""
    with np.errstate(all="ignore"):
        return NUMPY.evaluate(roots, operands, params)
