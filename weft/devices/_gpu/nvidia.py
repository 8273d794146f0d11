"""NVIDIA's driver: its library, how many devices it has, and its errors.

This module is apart from `cuda.py`, so that a program that only asks whether there is a device loads neither LLVM's targets nor kernels.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

NAME = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"  # of the library
_OUT_OF_MEMORY = 2


class DriverError(RuntimeError):
    """Reports an error of a driver."""


class Driver:
    """A driver's library. Its functions are attributes, under the names that NVIDIA's driver gives them."""

    api = "CUDA"  # as messages call it
    # Numbers of cuDeviceGetAttribute, from cuda.h.
    attributes: Mapping[str, int] = {
        "multiprocessors": 16,
        "major": 75,
        "minor": 76,
        "warp_size": 10,
        "cache_size": 38,
        "threads_per_multiprocessor": 39,
    }

    def __init__(self, library: ctypes.CDLL):
        self.library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def check(self, code: int, what: str) -> None:
        """Raise the error of a function that returned `code`.

        Raises: MemoryError, DriverError.
        """
        if not code:
            return
        if code == _OUT_OF_MEMORY:
            raise MemoryError(what)
        raise DriverError(f"{self.api} error: {self.error_text(code)} ({code}) in {what}")

    def error_text(self, code: int) -> str:
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        return (text.value or b"").decode()


@functools.cache
def is_installed() -> bool:
    """Whether NVIDIA's driver is there. It is not started."""
    try:
        ctypes.CDLL(NAME)
    except OSError:
        return False
    return True


@functools.cache
def library() -> Driver:
    """NVIDIA's driver, ready for use.

    Raises: OSError if there is none, DriverError if it cannot be used.
    """
    found = Driver(ctypes.CDLL(NAME))
    if code := found.cuInit(0):
        raise DriverError(f"NVIDIA's driver cannot be used: error {code}")
    return found


def count_devices(library: Callable[[], Any]) -> int:
    """How many devices the driver has that `library` returns; 0 if there is none, or none that can be used."""
    try:
        driver = library()
    except (OSError, DriverError):
        return 0
    count = ctypes.c_int()
    return 0 if driver.cuDeviceGetCount(ctypes.byref(count)) else count.value


@functools.cache
def device_count() -> int:
    """How many devices NVIDIA's driver has; 0 without a driver."""
    return count_devices(library)
