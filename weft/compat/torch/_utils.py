"""What several parts of weft share, under PyTorch's names."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from weft.accelerator._module import module_of
from weft.compat.missing import module_getattr
from weft.core import device as places
from weft.core.device import device_index as _get_device_index
from weft.core.dtype import DType
from weft.core.names import ROOT
from weft.core.tensor import Tensor
from weft.ops.assembly.joining import cat
from weft.utils.data._utils.errors import ExceptionWrapper, KeyErrorMessage


def _element_size(dtype: DType) -> int:
    """The bytes of one number."""
    return dtype.itemsize


def _is_privateuse1_backend_available() -> bool:
    """Whether an extension has registered a device, and the device is there."""
    module = getattr(sys.modules[ROOT], places.private_name, None)
    is_available = getattr(module, "is_available", None)
    return bool(is_available and is_available())


def _get_available_device_type() -> str | None:
    """The kind of accelerator; None without one."""
    return places.accelerator()


def _get_all_device_indices() -> list[int] | None:
    """The numbers of all accelerators; None without one."""
    kind = places.accelerator()
    return None if kind is None else list(range(places.device_count(kind)))


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.cuda`, `torch.cpu`.

    Raises: RuntimeError if there is none.
    """
    return module_of(device_type)


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other, in one dimension.

    >>> import weft as torch
    >>> parts = [torch.ones(2, 1), torch.zeros(1)]
    >>> flat = torch._utils._flatten_dense_tensors(parts)
    >>> flat, [part.shape for part in torch._utils._unflatten_dense_tensors(flat, parts)]
    (tensor([1., 1., 0.]), [torch.Size([2, 1]), torch.Size([1])])
    """
    return cat([each.contiguous().view(-1) for each in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` with the sizes of `tensors`, in their order."""
    parts = flat.split([each.numel() for each in tensors])
    return tuple(part.view(each.shape) for part, each in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type, each group at most `size_limit` bytes unless it is a single tensor."""
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for each in tensors:
        size = each.numel() * each.element_size()
        group, total = groups.get(each.type(), ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[each.type()] = [*group, each], total + size
    yield from (group for group, _ in groups.values() if group)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The tensors, which are in order within their types, in the order of the types of `ordered_tensors`."""
    by_type: dict[str, list[Tensor]] = {}
    for each in tensors:
        by_type.setdefault(each.type(), []).append(each)
    of_type = {kind: iter(each) for kind, each in by_type.items()}
    return tuple(next(of_type[each.type()]) for each in ordered_tensors)


def _import_dotted_name(name: str) -> Any:
    """`a.b.c` as an object: a module, or an attribute of one."""
    first, *rest = name.split(".")
    return functools.reduce(getattr, rest, __import__(first))


def cpu_count() -> int | None:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def is_compiling() -> bool:
    """Whether `torch.compile` or `torch.export` traces: `torch.compiler.is_compiling`."""
    from weft.compiler import is_compiling as answer  # loaded when first used

    return answer()


class classproperty:  # noqa: N801 (used as a decorator)
    """A property of the class itself."""

    def __init__(self, func: Callable[[Any], Any]):
        self.func = func

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.func(owner)


# Files name these functions; who reads files lazily calls them.
_REBUILDERS = {
    "_rebuild_tensor": "rebuild_tensor",
    "_rebuild_tensor_v2": "rebuild_tensor_v2",
    "_rebuild_tensor_v3": "rebuild_tensor_v3",
    "_rebuild_qtensor": "rebuild_qtensor",
    "_rebuild_sparse_tensor": "rebuild_sparse_tensor",
    "_rebuild_parameter": "rebuild_parameter",
    "_rebuild_parameter_with_state": "rebuild_parameter_with_state",
}
_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name in _REBUILDERS:
        from weft.serialization import rebuild  # loaded when first used

        return getattr(rebuild, _REBUILDERS[name])
    return _missing(name)
