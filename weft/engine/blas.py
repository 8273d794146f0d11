"""Finds the OpenBLAS libraries inside NumPy and SciPy: their threads, and the addresses of matrix products.

If NumPy uses another BLAS, its setting of threads is not touched, and it is called through NumPy and SciPy only.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import mmap
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.dtype import DType, complex64, complex128, float32, float64
from ..core.locks import new_lock

LETTERS = {float32: "s", float64: "d", complex64: "c", complex128: "z"}  # the letters of BLAS functions


class _Library(NamedTuple):
    functions: ctypes.PyDLL
    get_threads: Callable[[], int]
    set_threads: Callable[[int], None]


@functools.cache
def _library(package: str, suffix: str) -> _Library | None:
    """The OpenBLAS that comes with `package`; `suffix` ends its function names and says how wide its integers are."""
    module = importlib.import_module(package)
    assert module.__file__ is not None
    folder = os.path.join(os.path.dirname(os.path.dirname(module.__file__)), f"{package}.libs")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if f"scipy_openblas{suffix}-" in name:
            # PyDLL keeps the interpreter's lock, because taking it again would cost more than these short calls.
            functions = ctypes.PyDLL(os.path.join(folder, name))
            get = functions[f"scipy_openblas_get_num_threads{suffix}"]
            return _Library(functions, get, functions[f"scipy_openblas_set_num_threads{suffix}"])
    return None


# MiB of address space that SciPy's OpenBLAS maps when it starts with two threads, and for each further thread; measured.
_START_MIB, _THREAD_MIB = 256, 40


@functools.cache
def scipy(name: str) -> Any:
    """`scipy.<name>`, imported when first needed. Raises: RuntimeError if too little address space is left for its OpenBLAS."""
    if not _LINKED_WITH_BLAS & sys.modules.keys():
        _check_room(_START_MIB + _THREAD_MIB * max((os.cpu_count() or 1) - 2, 0))
    return importlib.import_module(f"scipy.{name}")


_LINKED_WITH_BLAS = {"scipy.linalg", "scipy.special", "scipy.fft"}


def _check_room(mebibytes: int) -> None:
    """Raise if OpenBLAS would reach the limit of address space (RLIMIT_AS) while it starts, because then it never returns."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return
    try:
        # A mapping without access rights (0) takes address space but no memory.
        mmap.mmap(-1, mebibytes << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0).close()
    except (OSError, ValueError):
        raise RuntimeError(
            f"SciPy's linear algebra needs {mebibytes} MiB of addresses to start, and the limit of this process leaves "
            "less. Raise the limit (ulimit -v), or call a function of linalg before memory becomes short."
        ) from None


def _libraries() -> list[_Library]:
    """The libraries that are loaded: NumPy's, and SciPy's after its first use."""
    libraries = [numpy_library()]
    if "scipy.linalg" in sys.modules:
        libraries.append(_library("scipy", ""))
    return [library for library in libraries if library is not None]


def numpy_library() -> _Library | None:
    """The OpenBLAS that comes with NumPy, whose integers have 64 bits. None if NumPy uses another BLAS."""
    return _library("numpy", "64_")


@functools.cache
def gemm(dtype: DType) -> int | None:
    """Return the address of NumPy's `cblas_?gemm`, with integers of 64 bits."""
    library = numpy_library()
    if library is None:
        return None
    return ctypes.cast(library.functions[f"scipy_cblas_{LETTERS[dtype]}gemm64_"], ctypes.c_void_p).value


class _OneThread:
    """A context in which BLAS uses one thread, because workers share the products or because the products are too short."""

    def __init__(self):
        self.lock = new_lock()
        self.inside = 0  # how many threads are inside the context
        self.before: list[tuple[_Library, int]] = []  # the settings to restore

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = [(library, library.get_threads()) for library in _libraries()]
                for library, _ in self.before:
                    library.set_threads(1)
            self.inside += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                for library, count in self.before:
                    library.set_threads(count)


ONE_THREAD = _OneThread()


def set_threads(count: int) -> None:
    with ONE_THREAD.lock:
        for library in _libraries() if not ONE_THREAD.inside else ():
            library.set_threads(count)
        ONE_THREAD.before = [(library, count) for library, _ in ONE_THREAD.before]


def _after_fork() -> None:
    inside, ONE_THREAD.inside = ONE_THREAD.inside, 0  # the threads that were inside do not exist after a fork
    for library, count in ONE_THREAD.before if inside else ():
        library.set_threads(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
