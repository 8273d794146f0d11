"""Results that pass no cotangent on: how programs, and `gradcheck`, ask a backward pass for missing cotangents."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .function import BackwardCFunction, Function
from .graph import node_type


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:  # type: ignore[override]
        return tensors if len(tensors) > 1 else tensors[0]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple:
        return (None,) * len(grad_outputs)


_Undefined._backward_cls = node_type("torch::autograd::UndefinedGradBackward", BackwardCFunction)


class UndefinedGrad:
    """A function that returns its tensors. Whatever computed them gets no cotangent, as if nothing used the results.

    >>> import weft as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = (y := x * 2).register_hook(print)
    >>> torch._C._functions.UndefinedGrad()(y).sum().backward()
    None
    """

    def __call__(self, *tensors: Tensor) -> Any:
        return _Undefined.apply(*tensors)
