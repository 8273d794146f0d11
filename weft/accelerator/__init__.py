"""weft.accelerator: which accelerator there is. This version computes on the CPU only, and says so."""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from ..core.device import device
from ..core.streams import Stream
from .graphs import Graph as Graph
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
    none_available,
)
from .memory import (
    reset_accumulated_memory_stats as reset_accumulated_memory_stats,
)
from .memory import (
    reset_peak_memory_stats as reset_peak_memory_stats,
)


def is_available() -> bool:
    """Whether an accelerator can be used.

    >>> import weft as torch
    >>> torch.accelerator.is_available(), torch.accelerator.device_count()
    (False, 0)
    """
    return False


def device_count() -> int:
    """How many accelerators can be used."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The device type of the accelerator, or None without one."""
    return None


def synchronize(device: Any = None, /) -> None:
    """Wait for the accelerator's work.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def current_device_index() -> int:
    """The number of the current accelerator.

    Raises: RuntimeError without one.
    """
    raise none_available()


def current_device_idx() -> int:
    """`current_device_index`, by its old name."""
    raise none_available()


def set_device_index(device: Any, /) -> None:
    """Choose the current accelerator.

    Raises: RuntimeError without one.
    """
    raise none_available()


def set_device_idx(device: Any, /) -> None:
    """`set_device_index`, by its old name."""
    raise none_available()


class device_index:  # noqa: N801 (PyTorch's name)
    """A context in which another accelerator is the current one; with None it does nothing.

    Raises: RuntimeError when it is entered without an accelerator.
    """

    def __init__(self, device: int | None, /):
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise none_available()

    def __exit__(self, *exception: Any) -> None:
        pass


def current_stream(device: Any = None, /) -> Stream:
    """The current stream of an accelerator.

    Raises: RuntimeError without one.
    """
    raise none_available()


def set_stream(stream: Stream) -> None:
    """Choose the current stream.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What an accelerator can do.

    Raises: RuntimeError without one.
    """
    raise none_available()


__getattr__ = module_getattr(__name__)
