"""`torch.autograd.Variable`, the type of tensors that require grad before PyTorch 0.4."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .current_pass import ExecutionEngine


class VariableMeta(type):
    """Makes `isinstance(tensor, Variable)` true for every tensor."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor)` is a new tensor with the same memory.

    >>> import weft as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)
