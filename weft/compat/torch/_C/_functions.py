"""`torch._C._functions`: nodes of the graph that PyTorch's C++ part makes for Python code."""

from __future__ import annotations

from typing import Any

from weft.autograd.function import BackwardCFunction, Function
from weft.autograd.graph import Leaf as AccumulateGrad
from weft.autograd.graph import node_type
from weft.autograd.undefined import UndefinedGrad
from weft.core.tensor import Tensor

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


class _Error(Function):
    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Tensor) -> Any:  # type: ignore[override]
        ctx.message = message
        return tensors if len(tensors) > 1 else tensors[0]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(ctx.message)


_Error._backward_cls = node_type("Error", BackwardCFunction)


class DelayedError:
    """A function that returns its `num_inputs` tensors. Their derivative is an error with this message."""

    def __init__(self, message: str | bytes, num_inputs: int):
        self.message = message.decode() if isinstance(message, bytes) else message
        self.num_inputs = num_inputs

    def __call__(self, *tensors: Tensor) -> Any:
        if len(tensors) != self.num_inputs:
            raise TypeError(f"expected {self.num_inputs} arguments, got {len(tensors)} instead")
        return _Error.apply(self.message, *tensors)
