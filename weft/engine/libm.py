"""Calls of the C library's float64 functions from kernels whose bits must be that library's own."""

from __future__ import annotations

from ..core.dtype import float64
from .expr import Expr, node, postorder
from .llvm import Block, emit, value_type


def libm(name: str, x: Expr) -> Expr:
    """`name(x)`; such an expression is emitted by `emit_with_libm` only."""
    return node("libm", float64, (x,), name)


def emit_with_libm(
    block: Block, roots: tuple[Expr, ...], leaves: dict[Expr, str], lanes: int = 1
) -> list[str]:
    """`llvm.emit` for expressions that call the C library, one lane after the other."""
    leaves = dict(leaves)
    for expr in postorder(roots):
        if expr.op == "libm":
            block.declarations.add(f"declare double @{expr.value}(double)")
            (x,) = emit(block, expr.args, leaves, lanes)
            leaves[expr] = _call_each(block, expr.value, x, lanes)
    return emit(block, roots, leaves, lanes)


def _call_each(block: Block, name: str, x: str, lanes: int) -> str:
    if lanes == 1:
        return block.let(f"call double @{name}(double {x})")
    kind, result = value_type(float64, lanes), "poison"
    for lane in range(lanes):
        one = block.let(f"extractelement {kind} {x}, i64 {lane}")
        value = block.let(f"call double @{name}(double {one})")
        result = block.let(f"insertelement {kind} {result}, double {value}, i64 {lane}")
    return result
