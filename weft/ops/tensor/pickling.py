"""Copies and pickles of tensors. Tensors that share memory also share it after one `deepcopy` or within one pickle."""

from __future__ import annotations

import copy
from typing import Any

from ...core.public import public
from ...core.spec import Spec
from ...core.storage import Storage
from ...core.tensor import VIEW_NOTES, Tensor, empty, make
from ..views.slicing import check_bounds


@public("method")
def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    """A copy in new memory. Copies with the same `memo` share memory if their originals do.

    Raises: RuntimeError for tensors that are not leaves; NotImplementedError for a layout without a rule for copies.
    """
    _check_layout(self, "__deepcopy__")
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage"
        )
    if id(self) in memo:
        return memo[id(self)]
    storage = copy.deepcopy(self._storage, memo)
    result: Any = _as(type(self), storage, self._byte_offset, self.spec)
    memo[id(self)] = result
    result.__dict__.update(copy.deepcopy(attributes(self), memo))
    if self.requires_grad:
        result.requires_grad_()
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    return result


@public("method")
def __reduce_ex__(self: Tensor, protocol: int) -> tuple:
    """The parts of a tensor for pickle and copy: its storage, which they handle once, and its metadata.

    The class is included only if it is a subclass, because `torch.Tensor` may be PyTorch's where the pickle is loaded.

    Raises: NotImplementedError for a layout without a rule for pickles, whose file could not be read.
    """
    _check_layout(self, "__reduce_ex__")
    storage = self._storage if self.spec.device.backend.has_memory else None
    parts = (storage, self._byte_offset, self.spec, self.requires_grad)
    if type(self) is Tensor:
        built: tuple = (_rebuilt, parts)
    else:
        built = (rebuilt, (type(self), *parts))
    state = attributes(self)
    return (*built, state) if state else built


def _check_layout(tensor: Tensor, name: str) -> None:
    """Raises: NotImplementedError for a tensor that is not plain, because only its layout knows its parts."""
    if type(tensor.spec) is not Spec:
        raise tensor.spec.rules.missing(name)  # type: ignore[attr-defined]


def attributes(tensor: Tensor) -> dict[str, Any]:
    """The attributes that users have set on a tensor."""
    return {name: value for name, value in tensor.__dict__.items() if name not in OF_AUTOGRAD}


# Attributes of autograd, which are neither saved nor copied.
OF_AUTOGRAD = frozenset(("_grad", "_views", *VIEW_NOTES))


def _rebuilt(storage: Storage | None, start: int, spec: Spec, requires_grad: bool) -> Tensor:
    return rebuilt(Tensor, storage, start, spec, requires_grad)


def rebuilt(cls: type, storage: Storage | None, start: int, spec: Spec, requires_grad: bool) -> Tensor:
    result = _as(cls, empty(spec)._storage if storage is None else storage, start, spec)
    return result.requires_grad_() if requires_grad else result


def _as(cls: type, storage: Storage, start: int, spec: Spec) -> Tensor:
    result = make(storage, start, spec)
    check_bounds(result)  # the storage may have been resized, or the pickle modified
    return result if cls is Tensor else result.as_subclass(cls)
