"""`torch.cuda.nvtx`: ranges and marks in the pictures of NVIDIA's profilers.

NVIDIA's library (libnvToolsExt, which CUDA's toolkit and the package nvidia-nvtx-cu12 have) passes them to the profiler. Without it only the depths of
ranges are counted. With the library this has never run.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from ..devices._gpu.libraries import load
from ._devices import DEVICES

__all__ = ["range_push", "range_pop", "range_start", "range_end", "mark", "range"]

_NAMES = ("libnvToolsExt.so.1", "libnvToolsExt.so", "nvToolsExt64_1.dll")
_FOLDERS = ("nvidia/nvtx/lib", "nvidia/nvtx/bin")


class _Counter(threading.local):
    """Takes the place of the library: how many ranges of a thread are open."""

    _ids = itertools.count(1)

    def __init__(self) -> None:
        self.depth = 0

    def nvtxRangePushA(self, message: bytes) -> int:  # noqa: N802 (NVIDIA's names)
        self.depth += 1
        return self.depth - 1

    def nvtxRangePop(self) -> int:  # noqa: N802
        if not self.depth:
            return -1
        self.depth -= 1
        return self.depth

    def nvtxMarkA(self, message: bytes) -> None:  # noqa: N802
        pass

    def nvtxRangeStartA(self, message: bytes) -> int:  # noqa: N802
        return next(self._ids)

    def nvtxRangeEnd(self, id: Any) -> None:  # noqa: N802
        pass


@functools.cache
def _tools() -> Any:
    found = load(_NAMES, _FOLDERS)
    if found is None:
        return _Counter()
    found.nvtxRangeStartA.restype = ctypes.c_uint64
    return found


def _library() -> Any:
    if not DEVICES.is_available():
        raise RuntimeError(
            "NVTX functions not installed. Are you sure you have a CUDA build? (There is no CUDA device.)"
        )
    return _tools()


def range_push(msg: str) -> int:
    """Open a range inside of those that this thread has opened. Returns its depth: 0 for the outermost.

    Raises: RuntimeError without a CUDA device.
    """
    return _library().nvtxRangePushA(msg.encode())


def range_pop() -> int:
    """Close the innermost range of this thread. Returns its depth, a negative number without one.

    Raises: RuntimeError without a CUDA device.
    """
    return _library().nvtxRangePop()


def range_start(msg: str) -> int:
    """Open a range that any thread may close. Returns its number, for `range_end`.

    Raises: RuntimeError without a CUDA device.
    """
    return _library().nvtxRangeStartA(msg.encode())


def range_end(range_id: int) -> None:
    """Close the range with a number that `range_start` returned.

    Raises: RuntimeError without a CUDA device.
    """
    _library().nvtxRangeEnd(ctypes.c_uint64(range_id))


def mark(msg: str) -> None:
    """Mark a point in time.

    Raises: RuntimeError without a CUDA device.
    """
    _library().nvtxMarkA(msg.encode())


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:  # noqa: A001 (PyTorch's name)
    """A context, or the decorator of a function, that is a range with the name `msg.format(*args, **kwargs)`.

    Raises: RuntimeError without a CUDA device.
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
