"""Warnings and errors for what makes the host wait for a device."""

from __future__ import annotations

from ..devices._gpu.runtime import Runtime
from ._devices import DEVICES

_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Choose what happens when bytes go between the host and a device, which waits: "default" nothing, "warn" or "error"; or 0, 1, 2.

    Raises: RuntimeError without a device, and for another mode.
    """
    DEVICES.init()
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected 0,1,2")
    Runtime.sync_debug_mode = debug_mode


def get_sync_debug_mode() -> int:
    """The number of the mode that `set_sync_debug_mode` has chosen.

    Raises: RuntimeError without a device.
    """
    DEVICES.init()
    return Runtime.sync_debug_mode
