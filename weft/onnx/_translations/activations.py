"""Activations, and softmax."""

from __future__ import annotations

import math
from typing import Any

from .._builder import Builder
from .base import translate_rows, translates

translate_rows(
    {
        "relu6": lambda b, input, inplace=False: clamp(b, input, 0, 6),
        "clamp_min clamp_min_": lambda b, input, min: clamp(b, input, min=min),
        "clamp_max clamp_max_": lambda b, input, max: clamp(b, input, max=max),
        "selu": lambda b, input, inplace=False: b.op("Selu", b.tensor(input)),
        "celu": lambda b, input, alpha=1.0, inplace=False: b.op("Celu", b.tensor(input), alpha=float(alpha)),
    }
)


@translates("hardtanh")
def hardtanh(
    b: Builder, input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> str:
    return clamp(b, input, min_val, max_val)


@translates("clamp", "clip", "clamp_")
def clamp(b: Builder, input: Any, min: Any = None, max: Any = None) -> str:
    dtype = b.result().dtype
    value = b.tensor(input, dtype)
    if b.is_tensor(min) or b.is_tensor(max):
        value = value if min is None else b.op("Max", value, b.tensor(min, dtype))
        return value if max is None else b.op("Min", value, b.tensor(max, dtype))
    return b.op("Clip", value, b.tensor(min, dtype), b.tensor(max, dtype))


@translates("silu")
def silu(b: Builder, input: Any, inplace: bool = False) -> str:
    value = b.tensor(input)
    return b.op("Mul", value, b.op("Sigmoid", value))


@translates("gelu")
def gelu(b: Builder, input: Any, approximate: str = "none") -> str:
    value, dtype = b.tensor(input), b.result().dtype
    if b.opset >= 20:
        return b.op("Gelu", value, approximate=approximate)
    half = b.op("Mul", value, b.constant(0.5, dtype))
    if approximate == "none":
        inner = b.op("Erf", b.op("Mul", value, b.constant(math.sqrt(0.5), dtype)))
    else:
        cube = b.op("Mul", b.op("Mul", b.op("Mul", value, value), value), b.constant(0.044715, dtype))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", value, cube), b.constant(math.sqrt(2 / math.pi), dtype)))
    return b.op("Mul", half, b.op("Add", inner, b.constant(1, dtype)))


@translates("leaky_relu", "leaky_relu_")
def leaky_relu(b: Builder, input: Any, negative_slope: float = 0.01, inplace: bool = False) -> str:
    return b.op("LeakyRelu", b.tensor(input), alpha=float(negative_slope))


@translates("elu", "elu_")
def elu(b: Builder, input: Any, alpha: float = 1.0, inplace: bool = False) -> str:
    return b.op("Elu", b.tensor(input), alpha=float(alpha))


@translates("prelu")
def prelu(b: Builder, input: Any, weight: Any) -> str:
    slope, rank = b.tensor(weight), b.meta(input).dim()
    if rank > 2 and b.meta(weight).numel() > 1:  # one slope for each channel, which is dimension 1
        slope = b.reshape(slope, [-1] + [1] * (rank - 2))
    return b.op("PRelu", b.tensor(input), slope)


@translates("hardsigmoid")
def hardsigmoid(b: Builder, input: Any, inplace: bool = False) -> str:
    return b.op("HardSigmoid", b.tensor(input), alpha=1 / 6, beta=0.5)


@translates("softplus")
def softplus(b: Builder, input: Any, beta: float = 1, threshold: float = 20) -> str:
    value, dtype = b.tensor(input), b.result().dtype
    scaled = b.op("Mul", value, b.constant(beta, dtype))
    smooth = b.op("Div", b.op("Softplus", scaled), b.constant(beta, dtype))
    return b.op("Where", b.op("Greater", scaled, b.constant(threshold, dtype)), value, smooth)


@translates("threshold")
def threshold(b: Builder, input: Any, threshold: float, value: float, inplace: bool = False) -> str:
    x, dtype = b.tensor(input), b.result().dtype
    return b.op("Where", b.op("Greater", x, b.constant(threshold, dtype)), x, b.constant(value, dtype))


@translates("glu")
def glu(b: Builder, input: Any, dim: int = -1) -> str:
    first, second = b.op("Split", b.tensor(input), axis=dim, num_outputs=2, outputs=2)
    return b.op("Mul", first, b.op("Sigmoid", second))


@translates("softmax")
def softmax(b: Builder, input: Any, dim: int = -1, *_: Any, **__: Any) -> str:
    return b.op("Softmax", b.tensor(input, b.result().dtype), axis=-1 if dim is None else dim)


@translates("log_softmax")
def log_softmax(b: Builder, input: Any, dim: int = -1, *_: Any, **__: Any) -> str:
    return b.op("LogSoftmax", b.tensor(input, b.result().dtype), axis=-1 if dim is None else dim)


@translates("softmin")
def softmin(b: Builder, input: Any, dim: Any = None, *_: Any, **__: Any) -> str:
    return b.op("Softmax", b.op("Neg", b.tensor(input, b.result().dtype)), axis=-1 if dim is None else dim)


@translates("softshrink")
def softshrink(b: Builder, input: Any, lambd: float = 0.5) -> str:
    return b.op("Shrink", b.tensor(input), bias=float(lambd), lambd=float(lambd))


@translates("hardshrink")
def hardshrink(b: Builder, input: Any, lambd: float = 0.5) -> str:
    return b.op("Shrink", b.tensor(input), bias=0.0, lambd=float(lambd))


@translates("rrelu")
def rrelu(
    b: Builder,
    input: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *_: Any,
    **__: Any,
) -> str:
    if training:
        raise NotImplementedError(
            "rrelu in training mode, which draws random slopes: call model.eval() before exporting"
        )
    return b.op("LeakyRelu", b.tensor(input), alpha=(lower + upper) / 2)
