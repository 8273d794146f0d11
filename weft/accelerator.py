"""weft.accelerator: which accelerator there is. This version computes on the CPU only, and says so."""

from __future__ import annotations

from typing import Any

from .compat.missing import module_getattr
from .core.device import device


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


def synchronize(device: Any = None) -> None:
    """Wait for the accelerator's work.

    Raises: RuntimeError without an accelerator.
    """
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The number of the current accelerator.

    Raises: RuntimeError without one.
    """
    raise RuntimeError("Cannot access accelerator device when none is available.")


__getattr__ = module_getattr(__name__)
