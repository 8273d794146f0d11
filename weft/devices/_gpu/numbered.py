"""The devices of a type by their numbers. This module loads no kernels, because a program may only ask whether there is a device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.device import device
from ...core.qscheme import AcceleratorError

if TYPE_CHECKING:
    from .backend import Gpu
    from .runtime import Runtime


def numbered(where: device, count: int, runtime: Callable[[int], Runtime]) -> Gpu:
    """The device `where` of so many, whose driver `runtime` starts by its number.

    Raises: AcceleratorError if there are fewer.
    """
    index = where.index or 0
    if index >= count:
        raise AcceleratorError(
            f"{where.type.upper()} error: invalid device ordinal: {where} was asked for, of {count} devices"
        )
    return _started(where.type, index, runtime)


@functools.cache
def _started(type: str, index: int, runtime: Callable[[int], Runtime]) -> Gpu:
    from .backend import Gpu  # imported here, because it loads all kernels

    return Gpu(device(type, index), runtime(index))
