"""Products of matrices."""

from __future__ import annotations

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
