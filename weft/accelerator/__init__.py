"""weft.accelerator: the accelerator of this computer, whatever its kind: `torch.cuda` where there is a CUDA device."""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from ..core.device import accelerator, device
from ..core.dtype import DTYPES
from ..core.restoring import Restoring
from ..core.streams import Stream
from ._module import module
from .memory import (
    empty_cache as empty_cache,
)
from .memory import (
    empty_host_cache as empty_host_cache,
)
from .memory import (
    get_memory_info as get_memory_info,
)
from .memory import (
    max_memory_allocated as max_memory_allocated,
)
from .memory import (
    max_memory_reserved as max_memory_reserved,
)
from .memory import (
    memory_allocated as memory_allocated,
)
from .memory import (
    memory_reserved as memory_reserved,
)
from .memory import (
    memory_stats as memory_stats,
)
from .memory import (
    reset_accumulated_memory_stats as reset_accumulated_memory_stats,
)
from .memory import (
    reset_peak_memory_stats as reset_peak_memory_stats,
)

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
    "device_count", "device_index", "empty_cache", "empty_host_cache", "get_device_capability",
    "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether an accelerator can be used.

    >>> import weft as torch
    >>> torch.accelerator.is_available() == (torch.accelerator.device_count() > 0)
    True
    """
    return accelerator() is not None


def device_count() -> int:
    """How many accelerators can be used."""
    return module().device_count() if is_available() else 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The device type of the accelerator, or None without one."""
    name = accelerator()
    return None if name is None else device(name)


def synchronize(device: Any = None, /) -> None:
    """Wait for the accelerator's work.

    Raises: RuntimeError without an accelerator.
    """
    module().synchronize(device)


def current_device_index() -> int:
    """The number of the current accelerator.

    Raises: RuntimeError without one.
    """
    return module().current_device()


def current_device_idx() -> int:
    """`current_device_index`, by its old name."""
    return current_device_index()


def set_device_index(device: Any, /) -> None:
    """Choose the current accelerator.

    Raises: RuntimeError without one.
    """
    module().set_device(device)


def set_device_idx(device: Any, /) -> None:
    """`set_device_index`, by its old name."""
    set_device_index(device)


class device_index(Restoring):  # noqa: N801 (PyTorch's name)
    """A context in which another accelerator is the current one; with None it does nothing.

    Raises: RuntimeError when it is entered without an accelerator.
    """

    def __init__(self, device: int | None, /):
        self.idx = device
        self.prev_idx: int | None = None

    def __enter__(self) -> None:
        if self.idx is not None:
            before = current_device_index()
            set_device_index(self.idx)
            self.prev_idx = before

    def _restore(self) -> None:
        if self.prev_idx is not None:
            set_device_index(self.prev_idx)


def current_stream(device: Any = None, /) -> Stream:
    """The current stream of an accelerator.

    Raises: RuntimeError without one.
    """
    return module().current_stream(device)


def set_stream(stream: Stream) -> None:
    """Choose the current stream.

    Raises: RuntimeError without an accelerator.
    """
    module().set_stream(stream)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What an accelerator can do: "supported_dtypes", the dtypes of its tensors.

    Raises: RuntimeError without one.
    """
    module().get_device_properties(device)  # raises if there is no such device
    return {"supported_dtypes": set(DTYPES.values())}


__getattr__ = module_getattr(__name__, names={"Graph": "graphs"})
