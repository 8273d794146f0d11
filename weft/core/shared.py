"""Memory that several processes share."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile


class SharedMemory:
    """A mapped file without a name. The system frees it when the last process that holds it ends, even by a signal.

    Another process that receives the file descriptor `fd` can map the same memory.

    Raises: NotImplementedError on Windows.
    """

    __slots__ = ("fd", "mapping")

    shared = True

    def __init__(self, nbytes: int, fd: int | None = None):
        """Allocate memory, or map the file with descriptor `fd`, which this object closes when it is deleted."""
        if sys.platform == "win32":
            raise NotImplementedError("memory shared between processes on Windows")
        self.fd = _new_file(nbytes) if fd is None else fd
        self.mapping = mmap.mmap(self.fd, max(nbytes, 1))

    @property
    def address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self.mapping))

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)


def _new_file(nbytes: int) -> int:
    if hasattr(
        os, "memfd_create"
    ):  # unlike /dev/shm, which containers keep small, it may be as large as memory
        fd = os.memfd_create("weft")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, max(nbytes, 1))
    return fd
