"""`out_dtype`: an operator whose result has another dtype than its arguments promote to."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ..keys import DispatchKey
from ..namespaces import HigherOrderOperator


class OutDtypeOperator(HigherOrderOperator):
    """`torch.ops.higher_order.out_dtype`."""

    def __init__(self) -> None:
        super().__init__("out_dtype")

    def __call__(self, op: Any, output_dtype: Any, *args: Any) -> Any:
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator()


@out_dtype.py_impl(DispatchKey.CompositeExplicitAutograd)
def _computed(op: Any, output_dtype: Any, *args: Any) -> Any:
    return op(*(each.to(output_dtype) if isinstance(each, Tensor) else each for each in args)).to(
        output_dtype
    )
