"""What several parts of weft share, under PyTorch's names."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from .compat.missing import module_getattr
from .core import device as places
from .core.device import device as _device
from .core.dtype import DType
from .core.tensor import Tensor
from .ops.assembly.joining import cat


class KeyErrorMessage(str):
    """Text that a KeyError prints as it is, where it would print any other as a quoted key."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception that is being handled, to be raised in another thread or process.

    >>> from weft._utils import ExceptionWrapper
    >>> try:
    ...     [][0]
    ... except IndexError:
    ...     wrapper = ExceptionWrapper(where="in a worker")
    >>> try:
    ...     wrapper.reraise()
    ... except IndexError as error:
    ...     print(str(error).splitlines()[0])
    Caught IndexError in a worker.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        # Texts only: a traceback would keep alive what its frames hold, and cannot be pickled.
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the type that was caught, whose message has the original traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            if getattr(self.exc_type, "message", None):  # classes whose constructor asks for it by name
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:  # a constructor that asks for more
            error = RuntimeError(message)
        raise error from None


def _element_size(dtype: DType) -> int:
    """The bytes of one number."""
    return dtype.itemsize


def _is_privateuse1_backend_available() -> bool:
    """Whether an extension has registered a device, and the device is there."""
    module = getattr(sys.modules[__package__], places.private_name, None)
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
    module = getattr(sys.modules[__name__.rpartition(".")[0]], device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return module


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The number of a device; -1 for the CPU if that is allowed, None for None if it is `optional`.

    Raises: ValueError for anything else without a number.
    """
    if isinstance(device, str):
        device = _device(device)
    if isinstance(device, _device):
        if device.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return 0 if device.index is None else device.index
    if isinstance(device, int):
        return device
    if optional:
        return None
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


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
    from .compiler import is_compiling as answer  # above this module

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
        from .serialization import rebuild  # above this module

        return getattr(rebuild, _REBUILDERS[name])
    return _missing(name)
