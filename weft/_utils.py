"""What several parts of weft share, under PyTorch's names."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn

from .compat.missing import module_getattr
from .core.device import device as _device
from .core.dtype import DType


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


def _get_available_device_type() -> str | None:
    """The kind of accelerator: None, this version computes on the CPU only."""
    return None


def _get_all_device_indices() -> list[int] | None:
    """The numbers of all accelerators: None, there are none."""
    return None


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


# Files name these functions; who reads files lazily calls them.
_REBUILDERS = {
    "_rebuild_tensor": "rebuild_tensor",
    "_rebuild_tensor_v2": "rebuild_tensor_v2",
    "_rebuild_tensor_v3": "rebuild_tensor_v3",
    "_rebuild_parameter": "rebuild_parameter",
    "_rebuild_parameter_with_state": "rebuild_parameter_with_state",
}
_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name in _REBUILDERS:
        from .serialization import rebuild  # above this module

        return getattr(rebuild, _REBUILDERS[name])
    return _missing(name)
