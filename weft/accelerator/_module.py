"""The module of the accelerator of this computer, such as `torch.cuda`, whose functions `torch.accelerator` calls."""

from __future__ import annotations

import importlib
from typing import Any

from ..core.device import accelerator
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
