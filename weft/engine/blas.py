"""The threads of the OpenBLAS inside NumPy; another BLAS keeps its own setting."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

# Names of the same functions in the builds that NumPy has shipped with.
_BUILDS = (("scipy_openblas_", "64_"), ("openblas_", "64_"), ("openblas_", ""))


@functools.cache
def _controls() -> list[tuple[Callable, Callable]]:
    """(get, set) the number of threads, of each library."""
    import numpy

    folder = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = []
    for name in names:
        if "openblas" in name:
            library = ctypes.CDLL(os.path.join(folder, name))
            for before, after in _BUILDS:
                if hasattr(library, f"{before}set_num_threads{after}"):
                    get = getattr(library, f"{before}get_num_threads{after}")
                    found.append((get, getattr(library, f"{before}set_num_threads{after}")))
                    break
    return found


def set_threads(count: int) -> None:
    for _, set_count in _controls():
        set_count(count)


_changing = threading.Lock()


def alone(function: Callable, *args: Any) -> None:
    """Call `function` with BLAS on one thread: for products that are done before a second thread has begun."""
    if not _changing.acquire(
        blocking=False
    ):  # another thread is doing the same: the setting is not ours to restore
        function(*args)
        return
    try:
        before = [get() for get, _ in _controls()]
        set_threads(1)
        try:
            function(*args)
        finally:
            for (_, set_count), count in zip(_controls(), before, strict=True):
                set_count(count)
    finally:
        _changing.release()
