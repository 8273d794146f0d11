"""Typed scalar expressions, from which kernels are generated.

An Expr is a node of a graph over about thirty primitives. Nodes are interned: equal expressions are one object, so that a graph
can be a dictionary key. A complex number is a pair of expressions (`complexes.py`). Functions such as exp are expanded into
primitives (`approx/`).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..core.dtype import DType, bool_, float32, float64, int32, int64

# name -> number of operands (None: one or more). Each target (`llvm.py`, `interpreter.py`) has a table with the same keys.
PRIMITIVES = {
    "load": 0,  # operand `value` of the kernel at the current element, in its own dtype
    "param": 0,  # scalar argument `value` of the kernel
    "const": 0,  # `value` is the bit pattern
    "add": 2, "sub": 2, "mul": 2, "div": 2, "rem": 2,  # integer div and rem truncate; a zero divisor is undefined
    "neg": 1, "abs": 1, "fma": 3, "sqrt": 1,
    "floor": 1, "ceil": 1, "trunc": 1, "rint": 1,  # floats; rint rounds half to even
    "copysign": 2,
    "ldexp": 2,  # (float y, integer k of its width): y * 2**k, rounded once; |k| < twice the largest exponent, unless y is NaN
    "and": 2, "or": 2, "xor": 2, "not": 1, "shl": 2, "shr": 2,  # shr keeps the sign of signed types
    "popcount": 1, "clz": 1,
    "lt": 2, "le": 2, "eq": 2, "ne": 2,  # -> bool; comparisons with NaN are false, except ne
    "select": 3,  # (condition, if true, if false)
    "cast": 1,  # to `dtype`, as PyTorch converts (see `llvm.py`)
    "bitcast": 1,  # the same bits as another dtype of this size
    "slow_path": None,  # (*xs, usual result); `value`: (condition, result where it holds), of loads standing for the xs
}  # fmt: skip

_interned: WeakValueDictionary[tuple, Expr] = WeakValueDictionary()
# The results of functions such as exp, which consist of many primitives, with the operands. `work.py` counts such a function once.
_functions: WeakKeyDictionary[Expr, tuple[Expr, ...]] = WeakKeyDictionary()


class Expr:
    """Represents one scalar value in a kernel, built by the functions of this module or by operators."""

    __slots__ = ("op", "dtype", "args", "value", "digest", "__weakref__")

    def __init__(self, op: str, dtype: DType, args: tuple[Expr, ...], value: Any):
        self.op, self.dtype, self.args, self.value = op, dtype, args, value
        self.digest = ""  # see `source.digest`

    # fmt: off
    def __add__(self, other): return _binary("add", self, other)
    def __radd__(self, other): return _binary("add", as_expr(other, self), self)
    def __sub__(self, other): return _binary("sub", self, other)
    def __rsub__(self, other): return _binary("sub", as_expr(other, self), self)
    def __mul__(self, other): return _binary("mul", self, other)
    def __rmul__(self, other): return _binary("mul", as_expr(other, self), self)
    def __truediv__(self, other): return _binary("div", self, other)
    def __rtruediv__(self, other): return _binary("div", as_expr(other, self), self)
    def __mod__(self, other): return _binary("rem", self, other)
    def __neg__(self): return node("neg", self.dtype, (self,))
    def __and__(self, other): return _binary("and", self, other)
    def __or__(self, other): return _binary("or", self, other)
    def __xor__(self, other): return _binary("xor", self, other)
    def __invert__(self): return node("not", self.dtype, (self,))
    def __lshift__(self, other): return _binary("shl", self, other)
    def __rshift__(self, other): return _binary("shr", self, other)
    def __lt__(self, other): return _compare("lt", self, other)
    def __le__(self, other): return _compare("le", self, other)
    def __gt__(self, other): return _compare("lt", as_expr(other, self), self)
    def __ge__(self, other): return _compare("le", as_expr(other, self), self)
    # Comparisons for equality are the functions eq() and ne(), because == must compare the objects: an Expr is a dictionary key.
    # fmt: on

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args)) if self.args else repr(self.value)
        return f"{self.op}:{self.dtype.name}({inner})"

    def __bool__(self):
        raise TypeError("an Expr has no truth value: use select(condition, a, b) instead of if")


def node(op: str, dtype: DType, args: tuple[Expr, ...] = (), value: Any = None) -> Expr:
    """Return the interned Expr with these parts."""
    key = (op, dtype, args, value)
    found = _interned.get(key)
    return found if found is not None else _interned.setdefault(key, Expr(op, dtype, args, value))


def one_function(function: Callable) -> Callable:
    """Decorator for a mathematical function of Exprs: its result is known as one function of its operands, not as many primitives."""

    @functools.wraps(function)
    def noted(*operands: Any) -> Any:
        result = function(*operands)
        inputs = tuple([each for each in operands if isinstance(each, Expr)])
        if result.args and result not in inputs:
            _functions.setdefault(result, inputs)
        return result

    return noted


def operands_of_function(expr: Expr) -> tuple[Expr, ...] | None:
    """The operands of the function that made an expression; None if it is a primitive."""
    return _functions.get(expr)


def const(value: Any, dtype: DType) -> Expr:
    """A constant. Its key is the bit pattern, because 0.0 == -0.0 and nan != nan."""
    if dtype is float32:
        bits = struct.unpack("<I", struct.pack("<f", to_float32(value)))[0]
    elif dtype is float64:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    elif dtype is bool_:
        bits = int(bool(value))
    else:
        bits = int(value) & ((1 << (8 * dtype.itemsize)) - 1)
    return node("const", dtype, (), bits)


def to_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def load(index: int, dtype: DType) -> Expr:
    return node("load", dtype, (), index)


def param(index: int, dtype: DType) -> Expr:
    return node("param", dtype, (), index)


def as_expr(value: Any, like: Expr) -> Expr:
    """A Python number as a constant of the dtype of `like`; an Expr as it is."""
    return value if isinstance(value, Expr) else const(value, like.dtype)


def _binary(op: str, a: Expr, b: Any) -> Expr:
    if not isinstance(b, Expr):
        if not isinstance(b, (bool, int, float)):
            return NotImplemented
        b = const(b, a.dtype)
    _same(op, a, b)
    return node(op, a.dtype, (a, b))


def _compare(op: str, a: Expr, b: Any) -> Expr:
    b = as_expr(b, a)
    _same(op, a, b)
    return node(op, bool_, (a, b))


def _same(op: str, a: Expr, b: Expr) -> None:
    if a.dtype is not b.dtype:
        raise TypeError(f"{op}: operands are {a.dtype} and {b.dtype}: cast one of them first")


# fmt: off
def eq(a, b): return _compare("eq", a, b)
def ne(a, b): return _compare("ne", a, b)
def sqrt(a): return node("sqrt", a.dtype, (a,))
def floor(a): return node("floor", a.dtype, (a,))
def ceil(a): return node("ceil", a.dtype, (a,))
def trunc(a): return node("trunc", a.dtype, (a,))
def rint(a): return node("rint", a.dtype, (a,))
def absolute(a): return node("abs", a.dtype, (a,))
def popcount(a): return node("popcount", a.dtype, (a,))
def clz(a): return node("clz", a.dtype, (a,))
# fmt: on


def copysign(magnitude: Expr, sign: Any) -> Expr:
    return _binary("copysign", magnitude, as_expr(sign, magnitude))


def ldexp(y: Expr, k: Expr) -> Expr:
    """y * 2**k, rounded once. If y is not NaN, |k| is less than twice the largest exponent."""
    return node("ldexp", y.dtype, (y, k))


def fma(a: Any, b: Any, c: Any) -> Expr:
    """Compute a * b + c, rounded once."""
    like = next(x for x in (a, b, c) if isinstance(x, Expr))
    a, b, c = as_expr(a, like), as_expr(b, like), as_expr(c, like)
    _same("fma", a, b)
    _same("fma", b, c)
    return node("fma", a.dtype, (a, b, c))


def select(condition: Expr, a: Any, b: Any) -> Expr:
    """`a` where the condition holds, else `b`; both are computed."""
    a = as_expr(a, b) if not isinstance(a, Expr) else a
    b = as_expr(b, a)
    _same("select", a, b)
    return node("select", a.dtype, (condition, a, b))


def cast(a: Expr, dtype: DType) -> Expr:
    return a if a.dtype is dtype else node("cast", dtype, (a,))


def bitcast(a: Expr, dtype: DType) -> Expr:
    if a.dtype.itemsize != dtype.itemsize:
        raise TypeError(f"bitcast: {a.dtype} has {a.dtype.itemsize} bytes, {dtype} has {dtype.itemsize}")
    return a if a.dtype is dtype else node("bitcast", dtype, (a,))


def slow_path(xs: Expr | tuple[Expr, ...], usual: Expr, condition: Expr, exception: Expr) -> Expr:
    """`exception` where `condition` holds, else `usual`. In `condition` and `exception`, load(k) stands for xs[k].

    Unlike `select`, this computes the exception only for the elements that need it, so that the exception may be expensive.
    """
    xs = (xs,) if isinstance(xs, Expr) else xs
    return node("slow_path", usual.dtype, (*xs, usual), (condition, exception))


def isnan(a: Expr) -> Expr:
    return ne(a, a)


def int_like(a: Expr) -> DType:
    """Return the signed integer type as wide as a float's."""
    return int32 if a.dtype is float32 else int64


def horner(x: Expr, coefficients) -> Expr:
    """The polynomial with these coefficients, highest power first, by fused multiply-adds."""
    first, *rest = coefficients
    total = as_expr(first, x)
    for coefficient in rest:
        total = fma(total, x, coefficient)
    return total


def postorder(roots: tuple[Expr, ...]) -> list[Expr]:
    """Each node below the roots once, operands before users. It is iterative, so that deep graphs do not overflow the stack."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            order.append(expr)
        elif expr not in seen:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((arg, False) for arg in reversed(expr.args) if arg not in seen)
    return order


def substitute(roots: tuple[Expr, ...], leaf: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """Return the expressions with `leaf(each)` in place of each load and param.

    The exception of a `slow_path` stays as it is, because its loads stand for operands of the node.
    """
    found: dict[Expr, Expr] = {}
    for each in postorder(roots):
        if each.op in ("load", "param"):
            found[each] = leaf(each)
        elif each.args:
            found[each] = node(each.op, each.dtype, tuple([found[arg] for arg in each.args]), each.value)
            if (operands := _functions.get(each)) is not None:
                _functions.setdefault(found[each], tuple([found[arg] for arg in operands]))
        else:
            found[each] = each
    return tuple([found[root] for root in roots])
