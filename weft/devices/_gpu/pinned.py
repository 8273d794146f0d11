"""Pinned memory: memory of the host that the driver has allocated, so that copies to the device need no detour."""

from __future__ import annotations

from typing import Any

from ...core.storage import Storage, foreign
from .runtime import Runtime


class HostMemory:
    """How many blocks of pinned memory there are, and of how many bytes; now, at most, and since `reset_counts`."""

    def __init__(self) -> None:
        self.blocks = self.nbytes = self.most_blocks = self.most_bytes = 0
        self.blocks_given = self.bytes_given = 0

    def add(self, nbytes: int) -> None:
        self.blocks += 1
        self.nbytes += nbytes
        self.blocks_given += 1
        self.bytes_given += nbytes
        self.most_blocks, self.most_bytes = (
            max(self.most_blocks, self.blocks),
            max(self.most_bytes, self.nbytes),
        )

    def remove(self, nbytes: int) -> None:
        self.blocks -= 1
        self.nbytes -= nbytes

    def stats(self) -> dict[str, Any]:
        """The numbers by PyTorch's names."""
        blocks = numbers(self.blocks, self.most_blocks, self.blocks_given)
        nbytes = numbers(self.nbytes, self.most_bytes, self.bytes_given)
        return {
            "allocations": blocks,
            "active_requests": blocks,
            "allocated_bytes": nbytes,
            "active_bytes": nbytes,
            "num_host_alloc": blocks["allocated"],
            "num_host_free": blocks["freed"],
        }

    def reset_peaks(self) -> None:
        self.most_blocks, self.most_bytes = self.blocks, self.nbytes

    def reset_counts(self) -> None:
        self.blocks_given, self.bytes_given = self.blocks, self.nbytes


def numbers(current: int, peak: int, given: int) -> dict[str, int]:
    """A number now, at most, and of all that was given and given back, by PyTorch's names."""
    return {"current": current, "peak": peak, "allocated": given, "freed": given - current}


HOST = HostMemory()


class Pinned:
    """Holds a block of pinned memory, which lives as long as this object."""

    pinned = True  # see `Storage.is_pinned`

    def __init__(self, runtime: Runtime, nbytes: int):
        self._runtime, self._nbytes = runtime, max(nbytes, 1)
        self.address = runtime.allocate_host(self._nbytes)
        HOST.add(self._nbytes)

    def __del__(self) -> None:
        self._runtime.release_host(self.address)
        HOST.remove(self._nbytes)


def pinned_storage(runtime: Runtime, nbytes: int) -> Storage:
    """Allocate a Storage of the CPU in pinned memory."""
    block = Pinned(runtime, nbytes)
    return foreign(block.address, nbytes, block)
