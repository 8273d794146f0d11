"""The modules of devices, such as `torch.cuda`; `torch.accelerator` calls the functions of the accelerator's."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ..core.device import accelerator, as_device
from ..core.names import ROOT


def none_available() -> RuntimeError:
    """The error of what needs an accelerator."""
    return RuntimeError("Cannot access accelerator device when none is available.")


def module() -> Any:
    """The module.

    Raises: RuntimeError without an accelerator.
    """
    name = accelerator()
    if name is None:
        raise none_available()
    return importlib.import_module(f"{ROOT}.{name}")


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device: `torch.cpu`, `torch.cuda`, ...; without an argument, of the accelerator or else of the CPU.

    Raises: RuntimeError for a device that has no module.

    >>> import weft as torch
    >>> torch.get_device_module("cpu") is torch.cpu
    True
    """
    return module_of(as_device((accelerator() or "cpu") if device is None else device).type)


def module_of(kind: str) -> ModuleType:
    """The module of a kind of device.

    Raises: RuntimeError if there is none.
    """
    try:
        return importlib.import_module(f"{ROOT}.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None
