"""Pinned memory: memory of the host that the driver has allocated, so that copies to the device need no detour."""

from __future__ import annotations

from ...core.storage import Storage, foreign
from .runtime import Runtime


class Pinned:
    """Holds a block of pinned memory, which lives as long as this object."""

    pinned = True  # see `Storage.is_pinned`

    def __init__(self, runtime: Runtime, nbytes: int):
        self._runtime = runtime
        self.address = runtime.allocate_host(max(nbytes, 1))

    def __del__(self) -> None:
        self._runtime.release_host(self.address)


def pinned_storage(runtime: Runtime, nbytes: int) -> Storage:
    """Allocate a Storage of the CPU in pinned memory."""
    block = Pinned(runtime, nbytes)
    return foreign(block.address, nbytes, block)
