"""Tensors that belong to a module: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import empty


class _ParameterType(type):
    """Also counts tensors of somebody else's subclasses as parameters, once they were made ones."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that a module counts among its parameters when it becomes one of its attributes.

    It shares memory with `data` and is a leaf of autograd's graph.
    Raises: RuntimeError if it should require a gradient and is neither floating point nor complex.

    >>> import weft as torch
    >>> torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __module__ = "torch.nn.parameter"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty(0)
        result = data.detach()
        if type(data) in (Tensor, cls):
            result = result.as_subclass(cls)
        else:
            result._is_param = True
        return result.requires_grad_() if requires_grad else result

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        # Only a subclass is named: `torch.nn.Parameter` may be another library's where a pickle is read.
        cls = None if type(self) is Parameter else type(self)
        return _parameter, (cls, self.detach().as_subclass(Tensor), self.requires_grad, self.__dict__)


def _parameter(cls: Any, data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Parameter:
    result = (cls or Parameter)(data, requires_grad)
    result.__dict__.update(state)
    return result


class _BufferType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a module counts among its buffers when it becomes one of its attributes.

    What it gives is a Tensor that shares memory with `data`, and is marked. `persistent` says whether it is part of
    the module's state_dict.

    >>> import weft as torch
    >>> torch.nn.Buffer(torch.ones(2))
    tensor([1., 1.])
    """

    __module__ = "torch.nn.parameter"

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result
