"""`torch.autograd.Variable`: what tensors that require grad were before version 0.4."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


class VariableMeta(type):
    """Takes all tensors for Variables."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor)` is a tensor on the same memory; all tensors are Variables.

    >>> import weft as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)
