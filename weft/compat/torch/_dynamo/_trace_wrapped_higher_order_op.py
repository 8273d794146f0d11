"""`torch._dynamo._trace_wrapped_higher_order_op`: how functions that index by tensors are mapped with `vmap`."""

from __future__ import annotations

from weft.overrides import BaseTorchFunctionMode


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """In PyTorch `x[i]` needs this mode where `i` is a number that `vmap` maps over; in weft it works as it is."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def _restore(self) -> None:
        pass
