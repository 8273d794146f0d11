"""`torch.utils._import_utils`: whether a package is there, without importing it."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether there is a module of this name.

    >>> _check_module_exists("numpy"), _check_module_exists("nump")
    (True, False)
    """
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # of the package that the module is in
        return False


@functools.cache
def dill_available() -> bool:
    """Whether the package dill is there."""
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> ModuleType | None:
    """dill, without its changes to Python's own pickling; None if it is not there."""
    if not dill_available():
        return None
    import dill

    dill.extend(use_dill=False)
    return dill
