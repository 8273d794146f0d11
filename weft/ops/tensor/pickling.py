"""Copies and pickles of tensors. Tensors that share memory also share it after one `deepcopy` or within one pickle."""

from __future__ import annotations

import copy
import copyreg
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
    result = _copied_wrapper(self) if self.spec.device.is_claimed else _copied(self, memo)
    memo[id(self)] = result
    for name, value in slots(self).items():
        setattr(result, name, copy.deepcopy(value, memo))
    result.__dict__.update(copy.deepcopy(attributes(self), memo))
    if self.requires_grad:
        result.requires_grad_()
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    return result


def _copied(tensor: Tensor, memo: dict) -> Tensor:
    return _as(type(tensor), copy.deepcopy(tensor._storage, memo), tensor._byte_offset, tensor.spec)


def _copied_wrapper(tensor: Tensor) -> Tensor:
    """A copy of a tensor without memory, which its `__torch_dispatch__` makes."""
    result = tensor.clone()
    if type(result) is not type(tensor):
        raise RuntimeError(
            "deepcopy works for classes of tensors without memory for which cloning returns another instance of the same "
            f"subclass, but clone() of a {type(tensor).__name__} returns a {type(result).__name__}; define __deepcopy__"
        )
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
    state = pickled_state(self)
    return (*built, state) if state else built


def _check_layout(tensor: Tensor, name: str) -> None:
    """Raises: NotImplementedError for a tensor that is not plain, because only its layout knows its parts."""
    if type(tensor.spec) is not Spec:
        raise tensor.spec.rules.missing(name)  # type: ignore[attr-defined]


def attributes(tensor: Tensor) -> dict[str, Any]:
    """The attributes that users have set on a tensor."""
    return {name: value for name, value in tensor.__dict__.items() if name not in OF_AUTOGRAD}


def slots(tensor: Tensor) -> dict[str, Any]:
    """The values of the slots that the class of a tensor adds to those of Tensor."""
    if type(tensor) is Tensor:
        return {}
    own = set(copyreg._slotnames(type(tensor))) - set(copyreg._slotnames(Tensor))  # type: ignore[attr-defined]
    return {name: getattr(tensor, name) for name in sorted(own) if hasattr(tensor, name)}


def pickled_state(tensor: Tensor) -> Any:
    """The state that a pickle keeps of a tensor: its attributes, or a pair of these and its slots."""
    own = slots(tensor)
    return (attributes(tensor), own) if own else attributes(tensor)


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
