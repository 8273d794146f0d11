"""The OpenBLAS inside NumPy: its threads, and its products of matrices as machine code calls them.

Another BLAS keeps its own setting of threads, and is called through NumPy only.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from ..core.dtype import DType, complex64, complex128, float32, float64

LETTERS = {float32: "s", float64: "d", complex64: "c", complex128: "z"}  # how BLAS names the types it knows


class _Library(NamedTuple):
    functions: ctypes.PyDLL
    get_threads: Callable[[], int]
    set_threads: Callable[[int], None]


@functools.cache
def _library() -> _Library | None:
    import numpy

    folder = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if "scipy_openblas64_" in name:
            # PyDLL keeps the interpreter's lock: getting it back takes longer than these calls.
            functions = ctypes.PyDLL(os.path.join(folder, name))
            get, put = (
                functions.scipy_openblas_get_num_threads64_,
                functions.scipy_openblas_set_num_threads64_,
            )
            return _Library(functions, get, put)
    return None


@functools.cache
def gemm(dtype: DType) -> int | None:
    """The address of `cblas_?gemm`, with integers of 64 bits."""
    library = _library()
    if library is None:
        return None
    return ctypes.cast(library.functions[f"scipy_cblas_{LETTERS[dtype]}gemm64_"], ctypes.c_void_p).value


class _OneThread:
    """A context in which BLAS works on one thread, for products that are shared by other means or too short to share."""

    def __init__(self):
        self.lock = threading.Lock()
        self.inside = 0  # how many threads are in it
        self.count = 1  # the setting to return to

    def __enter__(self) -> None:
        library = _library()
        if library is not None:
            with self.lock:
                if self.inside == 0:
                    self.count = library.get_threads()
                    library.set_threads(1)
                self.inside += 1

    def __exit__(self, *exception: object) -> None:
        library = _library()
        if library is not None:
            with self.lock:
                self.inside -= 1
                if self.inside == 0:
                    library.set_threads(self.count)


ONE_THREAD = _OneThread()


def set_threads(count: int) -> None:
    library = _library()
    if library is not None:
        with ONE_THREAD.lock:
            ONE_THREAD.count = count
            if ONE_THREAD.inside == 0:
                library.set_threads(count)


def _after_fork() -> None:
    inside, count = ONE_THREAD.inside, ONE_THREAD.count
    ONE_THREAD.__init__()  # type: ignore[misc]  # who was in it did not survive
    if inside:
        set_threads(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
