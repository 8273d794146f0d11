"""`torch.utils._device`: functions in which new tensors live on another device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compat.missing import module_getattr
from ..core.device import CPU, device, get_default_device
from ._contextlib import context_decorator


def device_decorator(where: device, func: Callable) -> Callable:
    """`func`, with `where` as the default device in each call."""
    return context_decorator(lambda: where, func)


def set_device(where: Any) -> Callable[[Callable], Callable]:
    """A decorator that makes `where` the default device inside of a function.

    >>> import weft as torch
    >>> @torch.utils._device.set_device("meta")
    ... def sizes():
    ...     return torch.ones(2).device
    >>> sizes()
    device(type='meta')
    """
    named = device(where)
    return lambda func: device_decorator(named, func)


def _current_device() -> device | None:
    """The default device, None if it is the CPU, so that nobody need have set it."""
    named = get_default_device()
    return None if named == CPU else named


_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    return _current_device() if name == "CURRENT_DEVICE" else _missing(name)
