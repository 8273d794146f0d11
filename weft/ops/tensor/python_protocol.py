"""What makes a Tensor a Python object: conversion to numbers and lists, printing, length, iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batched import DataDependent, is_sample
from ...core.dtype import DType, float64, int64
from ...core.limits import overflow
from ...core.public import public
from ...core.recording import needs_recording
from ...core.registry import add_member
from ...core.tensor import Tensor
from ...core.warn import warn_once
from ...families.array_op import host_array
from ..assembly.copying import clone
from .printing import tensor_format, tensor_repr


@public("method")
def item(self: Tensor) -> Any:
    """Return the only element as a Python number.

    Raises: RuntimeError unless there is exactly one element.
    """
    spec = self.spec
    if spec.numel != 1:
        raise RuntimeError(
            f"a Tensor with {spec.numel} elements cannot be converted to Scalar\n"
            f"item: shape {list(spec.shape)}; tolist() gives all numbers"
        )
    backend = spec.device.backend
    if not backend.has_memory:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    check_value(self, ITEM)
    read = backend.readers.get(spec.dtype.name)
    if read is None or spec.conj or spec.neg:
        return host_array(self).item()
    return read(self._storage.ptr + self._byte_offset).value


ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, because "
    "it has another value in each sample: use operations on tensors instead."
)
CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. Its value differs from sample "
    "to sample: use torch.where instead."
)


def check_value(self: Tensor, message: str) -> None:
    """Raises: RuntimeError if the tensor has another value in each sample that `vmap` maps over."""
    if type(self) is not Tensor and is_sample(self):
        raise DataDependent(message)


@public("method")
def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers; a number for a 0-dim tensor."""
    if self.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return host_array(self).tolist()


def _only(self: Tensor) -> Any:
    if self.spec.numel != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return self.item()


def _real(value: Any, dtype: DType) -> Any:
    if isinstance(value, complex):
        if value.imag:
            raise overflow(dtype)
        return value.real
    return value


def _warn_if_recorded(self: Tensor) -> None:
    if needs_recording((self,)):
        warn_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first."
        )


def __float__(self: Tensor) -> float:
    _warn_if_recorded(self)
    return float(_real(_only(self), float64))


def __int__(self: Tensor) -> int:
    return int(_real(_only(self), int64))


def __complex__(self: Tensor) -> complex:
    _warn_if_recorded(self)
    return complex(_only(self))


def __bool__(self: Tensor) -> bool:
    if self.spec.numel != 1:
        kind = "no values" if self.spec.numel == 0 else "more than one value"
        raise RuntimeError(
            f"Boolean value of Tensor with {kind} is ambiguous\n"
            f"bool: shape {list(self.spec.shape)}; say any() or all(), and & | ~ between masks for and, or, not"
        )
    check_value(self, CONTROL_FLOW)
    return bool(self.item())


def __index__(self: Tensor) -> int:
    if self.spec.numel != 1 or self.spec.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self.item())


def __len__(self: Tensor) -> int:
    if not self.spec.shape:
        raise TypeError("len() of a 0-d tensor")
    return self.spec.shape[0]


def __iter__(self: Tensor):
    if not self.spec.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind())


def __reversed__(self: Tensor) -> Tensor:
    return self if not self.spec.shape else self.flip(0)


def __contains__(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex, bool, np.number)):
        return bool((self == element).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_repr(self, tensor_contents=tensor_contents)


def __format__(self: Tensor, spec: str) -> str:
    return tensor_format(self, spec)


for _function in (
    __float__,
    __int__,
    __complex__,
    __bool__,
    __index__,
    __len__,
    __iter__,
    __reversed__,
    __contains__,
    __repr__,
    __format__,
):
    add_member(_function.__name__, _function)


@public("function method")
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor with a pending conjugation carried out: itself if there is none."""
    return clone(input) if input.spec.conj else input


@public("function method")
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor with a pending negation carried out: itself if there is none."""
    return clone(input) if input.spec.neg else input
