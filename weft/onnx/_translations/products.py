"""Products of matrices."""

from __future__ import annotations

import math
from typing import Any

from .._builder import Builder
from .base import translates


@translates("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def matmul(b: Builder, input: Any, other: Any) -> str:
    return b.op("MatMul", b.tensor(input), b.tensor(other))


@translates("linear")
def linear(b: Builder, input: Any, weight: Any, bias: Any = None) -> str:
    transposed = b.op("Transpose", b.tensor(weight), perm=[1, 0])
    product = b.op("MatMul", b.tensor(input), transposed)
    return product if bias is None else b.op("Add", product, b.tensor(bias))


@translates("addmm")
def addmm(b: Builder, input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> str:
    return b.op("Gemm", b.tensor(mat1), b.tensor(mat2), b.tensor(input), alpha=float(alpha), beta=float(beta))


@translates("baddbmm")
def baddbmm(b: Builder, input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> str:
    dtype = b.result().dtype
    product = b.op("Mul", b.op("MatMul", b.tensor(batch1), b.tensor(batch2)), b.constant(alpha, dtype))
    return b.op("Add", b.op("Mul", b.tensor(input), b.constant(beta, dtype)), product)


@translates("einsum")
def einsum(b: Builder, equation: str, *operands: Any) -> str:
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    return b.op("Einsum", *(b.tensor(each) for each in operands), equation=equation)


@translates("bilinear")
def bilinear(b: Builder, input1: Any, input2: Any, weight: Any, bias: Any = None) -> str:
    product = b.op(
        "Einsum", b.tensor(input1), b.tensor(weight), b.tensor(input2), equation="...i,oij,...j->...o"
    )
    return product if bias is None else b.op("Add", product, b.tensor(bias))


@translates("outer", "ger")
def outer(b: Builder, input: Any, vec2: Any) -> str:
    dtype = b.result().dtype
    columns = b.op("Unsqueeze", b.tensor(input, dtype), b.axes(1))
    return b.op("Mul", columns, b.op("Unsqueeze", b.tensor(vec2, dtype), b.axes(0)))


@translates("cdist")
def cdist(b: Builder, x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> str:
    rows = b.op("Unsqueeze", b.tensor(x1), b.axes(-2))
    away = b.op("Sub", rows, b.op("Unsqueeze", b.tensor(x2), b.axes(-3)))
    return _norm(b, away, p)


def _norm(b: Builder, value: str, p: float, keepdims: int = 0) -> str:
    """A norm over the last dimension."""
    if p in (1, 2):
        return b.op("ReduceL1" if p == 1 else "ReduceL2", value, b.axes(-1), keepdims=keepdims)
    size = b.op("Abs", value)
    if p == math.inf:
        return b.op("ReduceMax", size, b.axes(-1), keepdims=keepdims)
    dtype = b.result().dtype
    total = b.op("ReduceSum", b.op("Pow", size, b.constant(p, dtype)), b.axes(-1), keepdims=keepdims)
    return b.op("Pow", total, b.constant(1 / p, dtype))


@translates("pairwise_distance")
def pairwise_distance(
    b: Builder, x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> str:
    away = b.op("Add", b.op("Sub", b.tensor(x1), b.tensor(x2)), b.constant(eps, b.result().dtype))
    return _norm(b, away, p, int(keepdim))


@translates("cosine_similarity")
def cosine_similarity(b: Builder, x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> str:
    first, second, axes = b.tensor(x1), b.tensor(x2), b.axes(dim)
    product = b.op("ReduceSum", b.op("Mul", first, second), axes, keepdims=0)
    least = b.constant(eps, b.result().dtype)
    sizes = [b.op("Max", b.op("ReduceL2", each, axes, keepdims=0), least) for each in (first, second)]
    return b.op("Div", product, b.op("Mul", *sizes))
