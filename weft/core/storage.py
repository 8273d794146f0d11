"""One-dimensional bytes on one device, which any number of tensors look at."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Any

from .device import CPU, device

# The bin of memory that is not ours: it forgets what it is given.
FOREIGN: Any = deque(maxlen=0)


class Storage:
    """Bytes at an address, `torch.UntypedStorage`.

    `owner` keeps foreign memory alive (a NumPy array, a mapped file); memory of our own goes back to its
    bin of the allocator when the Storage dies. `version` counts writes, for autograd. `exposed` is set once
    anyone outside weft can see the memory.
    """

    __slots__ = ("ptr", "nbytes_", "device", "bin", "owner", "version", "exposed", "__weakref__")

    def __init__(self, ptr: int, nbytes: int, device: device = CPU, bin: Any = FOREIGN, owner: Any = None):
        self.ptr = ptr
        self.nbytes_ = nbytes
        self.device = device
        self.bin = bin
        self.owner = owner
        self.version = 0
        self.exposed = False

    def __del__(self):
        self.bin.append(self.ptr)

    def memory(self) -> ctypes.Array:
        """The bytes as a buffer, for NumPy and friends; the caller keeps this Storage alive."""
        return (ctypes.c_char * self.nbytes_).from_address(self.ptr)


def foreign(ptr: int, nbytes: int, owner: Any, exposed: bool = True) -> Storage:
    """A Storage over memory that `owner` keeps alive."""
    storage = Storage(ptr, nbytes, CPU, FOREIGN, owner)
    storage.exposed = exposed
    return storage
