"""NVIDIA's driver: its library, how many devices it has, and its errors.

This module is apart from `driver.py`, so that a program that only asks whether there is a device loads neither LLVM's targets nor kernels.
"""

from __future__ import annotations

import ctypes
import functools
import os

NAME = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"  # of the library
_OUT_OF_MEMORY = 2


class DriverError(RuntimeError):
    """Reports an error of NVIDIA's driver."""


@functools.cache
def library() -> ctypes.CDLL:
    """NVIDIA's driver, ready for use.

    Raises: OSError if there is none, DriverError if it cannot be used.
    """
    found = ctypes.CDLL(NAME)
    if code := found.cuInit(0):
        raise DriverError(f"NVIDIA's driver cannot be used: error {code}")
    return found


@functools.cache
def device_count() -> int:
    """How many devices NVIDIA's driver has; 0 without a driver."""
    try:
        driver = library()
    except (OSError, DriverError):
        return 0
    count = ctypes.c_int()
    return 0 if driver.cuDeviceGetCount(ctypes.byref(count)) else count.value


def check(code: int, what: str) -> None:
    """Raise the error of a driver's function.

    Raises: MemoryError, DriverError.
    """
    if not code:
        return
    if code == _OUT_OF_MEMORY:
        raise MemoryError(what)
    text = ctypes.c_char_p()
    library().cuGetErrorString(code, ctypes.byref(text))
    raise DriverError(f"CUDA error: {(text.value or b'').decode()} ({code}) in {what}")
