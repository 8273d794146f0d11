"""Functions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._builder import Builder
from .arithmetic import result_dtype
from .base import TRANSLATIONS, translate_rows, translates


def _unary(kind: str, **attributes: Any) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, inplace: bool = False, **_: Any) -> str:
        return b.op(kind, b.tensor(input, result_dtype(b)), **attributes)

    return translation


for _kind, _names in {
    "Abs": "abs absolute abs_",
    "Acos": "acos arccos",
    "Acosh": "acosh arccosh",
    "Asin": "asin arcsin",
    "Asinh": "asinh arcsinh",
    "Atan": "atan arctan",
    "Atanh": "atanh arctanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp exp_",
    "Floor": "floor",
    "Log": "log",
    "Neg": "neg negative __neg__",
    "Reciprocal": "reciprocal",
    "Relu": "relu relu_",
    "Sigmoid": "sigmoid sigmoid_",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh tanh_",
    "Mish": "mish",
    "HardSwish": "hardswish",
}.items():
    translates(*_names.split())(_unary(_kind))


translates("identity", "clone", "contiguous", "detach", "alias", "positive", "dropout", "alpha_dropout", "feature_alpha_dropout",
           "dropout1d", "dropout2d", "dropout3d", "dropout_", "requires_grad_", "cpu", "lift_fresh", "resolve_conj", "resolve_neg")(
    lambda b, input, *_, **__: b.op("Identity", b.tensor(input))
)  # fmt: skip


translate_rows(
    {
        "rsqrt": lambda b, input: b.op("Reciprocal", b.op("Sqrt", b.tensor(input, b.result().dtype))),
        "item": lambda b, input: b.reshape(b.tensor(input, result_dtype(b)), []),
    }
)


@translates("square")
def square(b: Builder, input: Any) -> str:
    value = b.tensor(input, b.result().dtype)
    return b.op("Mul", value, value)


def _after(base: str, of: Callable[[Builder, str, Any], str]) -> None:
    TRANSLATIONS[base] = lambda b, input, **_: of(b, b.tensor(input, b.result().dtype), b.result().dtype)


_after("log2", lambda b, x, t: b.op("Div", b.op("Log", x), b.constant(math.log(2), t)))
_after("log10", lambda b, x, t: b.op("Div", b.op("Log", x), b.constant(math.log(10), t)))
_after("log1p", lambda b, x, t: b.op("Log", b.op("Add", x, b.constant(1, t))))
_after("expm1", lambda b, x, t: b.op("Sub", b.op("Exp", x), b.constant(1, t)))
_after("exp2", lambda b, x, t: b.op("Pow", b.constant(2, t), x))
_after("erfc", lambda b, x, t: b.op("Sub", b.constant(1, t), b.op("Erf", x)))
_after("trunc", lambda b, x, t: b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x))))
_after("frac", lambda b, x, t: b.op("Sub", x, b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x)))))
_after("log_sigmoid", lambda b, x, t: b.op("Neg", b.op("Softplus", b.op("Neg", x))))
_after("tanhshrink", lambda b, x, t: b.op("Sub", x, b.op("Tanh", x)))


@translates("round")
def round(b: Builder, input: Any, *, decimals: int = 0) -> str:
    value, dtype = b.tensor(input, result_dtype(b)), result_dtype(b)
    if decimals == 0:
        return b.op("Round", value) if dtype.is_floating_point else b.op("Identity", value)
    scale = b.constant(10.0 ** abs(decimals), dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return b.op(back, b.op("Round", b.op(there, value, scale)), scale)


@translates("logit")
def logit(b: Builder, input: Any, eps: Any = None) -> str:
    value, dtype = b.tensor(input), b.result().dtype
    if eps is not None:
        value = b.op("Clip", value, b.constant(eps, dtype), b.constant(1 - eps, dtype))
    return b.op("Log", b.op("Div", value, b.op("Sub", b.constant(1, dtype), value)))


@translates("nan_to_num")
def nan_to_num(b: Builder, input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> str:
    from ... import finfo

    value, dtype = b.tensor(input), b.result().dtype
    high = finfo(dtype).max if posinf is None else posinf
    low = finfo(dtype).min if neginf is None else neginf
    found = b.op("Where", b.op("IsNaN", value), b.constant(nan or 0.0, dtype), value)
    found = b.op("Where", b.op("IsInf", value, detect_negative=0), b.constant(high, dtype), found)
    return b.op("Where", b.op("IsInf", value, detect_positive=0), b.constant(low, dtype), found)


@translates("atan2", "arctan2")
def atan2(b: Builder, input: Any, other: Any) -> str:
    dtype = b.result().dtype
    y, x, zero = b.tensor(input, dtype), b.tensor(other, dtype), b.constant(0, dtype)
    angle = b.op("Atan", b.op("Div", y, x))
    turn = b.op("Where", b.op("Less", y, zero), b.constant(-math.pi, dtype), b.constant(math.pi, dtype))
    angle = b.op("Where", b.op("Less", x, zero), b.op("Add", angle, turn), angle)
    both = b.op("And", b.op("Equal", x, zero), b.op("Equal", y, zero))
    return b.op("Where", both, zero, angle)


@translates("hypot")
def hypot(b: Builder, input: Any, other: Any) -> str:
    dtype = b.result().dtype
    x, y = b.tensor(input, dtype), b.tensor(other, dtype)
    return b.op("Sqrt", b.op("Add", b.op("Mul", x, x), b.op("Mul", y, y)))
