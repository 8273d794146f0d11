"""Python's operators on tensors."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.map import Map, binary, inplace_of, is_operand, reflected
from . import pointwise as rows


def _install(symbol: str, op: Map) -> None:
    """`a symbol b`, `b symbol a` and `a symbol= b`."""
    setattr(Tensor, f"__{symbol}__", binary(op, operator=True))
    setattr(Tensor, f"__r{symbol}__", reflected(op))
    method = inplace_of(op)

    def augmented(self, other):
        return method(self, other) if is_operand(other) else NotImplemented

    setattr(Tensor, f"__i{symbol}__", augmented)


for _symbol, _op in {"add": rows.ADD, "mul": rows.MUL}.items():
    _install(_symbol, _op)
