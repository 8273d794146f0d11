"""XLA devices: JAX compiles the work of many calls as one function, for the processors, GPUs or TPUs that it finds.

JAX is imported when a program asks for a device.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from ...core.device import device

if TYPE_CHECKING:
    from .lazy import Xla


_started: dict[int, Xla] = {}


def is_installed() -> bool:
    """Whether JAX is there."""
    return importlib.util.find_spec("jax") is not None


def device_count() -> int:
    """How many devices JAX finds; 0 where it is not installed."""
    if not is_installed():
        return 0
    import jax

    return jax.local_device_count()


def backend(where: device) -> Xla:
    """Return the device of a number.

    Raises: RuntimeError without JAX, or if JAX finds fewer devices.
    """
    if not is_installed():
        raise RuntimeError(
            f"device {where} was asked for, and XLA's devices need JAX, which is not installed: pip install 'weft[xla]'"
        )
    index = where.index or 0
    if index >= device_count():
        raise RuntimeError(f"device {where} was asked for, and JAX finds {device_count()}")
    if index not in _started:
        from .lazy import Xla  # imported here, because it loads JAX

        _started.setdefault(index, Xla(device("xla", index)))
    return _started[index]


def started() -> list[Xla]:
    """The devices that the program has used."""
    return list(_started.values())
