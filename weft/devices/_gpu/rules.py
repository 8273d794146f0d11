"""How GPUs compute the primitives that they compute otherwise than the host.

All others have the host's rules (`engine/llvm.py`), so that an Expr gives the same bits: every operation is rounded once, and LLVM neither
contracts nor reorders them. Only the bits of a NaN may differ.
"""

from __future__ import annotations

from ...engine.expr import load
from ...engine.llvm import HOST, emit, intrinsic, scaled, value_type


def _slow_path(block, expr, lanes, *operands):
    """A branch: threads whose condition does not hold wait for those whose condition does."""
    condition, exception = expr.value
    inputs = zip(expr.args[:-1], operands[:-1], strict=True)
    given = {load(k, arg.dtype): name for k, (arg, name) in enumerate(inputs)}
    kind = value_type(expr.dtype)
    (flag,) = emit(block, [condition], given)
    result = block.variable(kind, operands[-1])
    with block.when(flag):
        (value,) = emit(block, [exception], given)
        block.set(result, kind, value)
    return block.get(result, kind)


GPU = {
    **HOST,
    "ldexp": scaled,
    "rint": intrinsic("rint"),  # in the mode of the processor, which is to the nearest, ties to even
    "slow_path": _slow_path,
}
