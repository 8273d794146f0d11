"""The caching allocator of a GPU: freed blocks are kept for the next tensor of their size, because the driver takes long and waits for kernels.

All work of a device is done in order. So a block may be given to another tensor while a kernel that was launched before still uses it.
"""

from __future__ import annotations

from ...core.locks import new_lock
from ...core.out_of_memory import OutOfMemoryError
from .runtime import Runtime

SMALLEST = 512  # bytes of a block
LARGE = 1 << 20  # blocks from here on are multiples of
STEP = 2 << 20


def rounded(nbytes: int) -> int:
    """Return the size of the block for so many bytes."""
    step = SMALLEST if nbytes <= LARGE else STEP
    return max(SMALLEST, -(-nbytes // step) * step)


class Bin:
    """The free blocks of one size. Storages give their blocks back by `append`."""

    __slots__ = ("size", "free", "_pool")

    def __init__(self, size: int, pool: Pool):
        self.size = size
        self.free: list[int] = []
        self._pool = pool

    def append(self, address: int) -> None:
        """Keep a block for the next tensor of this size."""
        self.free.append(address)
        self._pool.allocated -= self.size
        self._pool.active -= 1


class Pool:
    """The blocks of one device, and how many bytes they are."""

    def __init__(self, runtime: Runtime, name: str):
        self._runtime, self._name = runtime, name
        self._bins: dict[int, Bin] = {}
        self._lock = new_lock()
        # Bytes of tensors, bytes taken from the driver, tensors, and blocks; now and at most.
        self.allocated = self.reserved = self.active = self.blocks = 0
        self.most_allocated = self.most_reserved = self.most_active = self.most_blocks = 0
        self.bytes_given = self.times_given = 0  # to tensors, since `reset_counts`
        self.retries = self.failures = 0

    def bin(self, nbytes: int) -> Bin:
        size = rounded(nbytes)
        found = self._bins.get(size)
        return found if found is not None else self._bins.setdefault(size, Bin(size, self))

    def take(self, bin: Bin, nbytes: int) -> int:
        """Return the address of a block of a bin.

        Raises: OutOfMemoryError, naming `nbytes`, if there is no memory.
        """
        try:
            address = bin.free.pop()
        except IndexError:
            with self._lock:
                address = self._grow(bin.size, nbytes)
        self.allocated += bin.size
        self.active += 1
        self.bytes_given += bin.size
        self.times_given += 1
        if self.allocated > self.most_allocated:
            self.most_allocated = self.allocated
        if self.active > self.most_active:
            self.most_active = self.active
        return address

    def _grow(self, size: int, nbytes: int) -> int:
        try:
            address = self._runtime.allocate(size)
        except MemoryError:
            self.retries += 1
            self.release_free()
            try:
                address = self._runtime.allocate(size)
            except MemoryError:
                self.failures += 1
                raise OutOfMemoryError(self._facts(nbytes)) from None
        self.reserved += size
        self.blocks += 1
        self.most_reserved = max(self.most_reserved, self.reserved)
        self.most_blocks = max(self.most_blocks, self.blocks)
        return address

    def _facts(self, nbytes: int) -> str:
        return (
            f"{self._name.partition(':')[0].upper()} out of memory. Tried to allocate {_readable(nbytes)}. Device {self._name} has a total capacity of "
            f"{_readable(self._runtime.total_memory)} of which {_readable(self._runtime.free_memory())} is free. Tensors hold "
            f"{_readable(self.allocated)}, and blocks that are kept for new ones {_readable(self.reserved - self.allocated)}."
        )

    def release_free(self) -> None:
        """Give the free blocks back to the driver, after all work, which may still use blocks whose tensors are gone."""
        self._runtime.synchronize()
        for bin in list(self._bins.values()):
            while bin.free:
                self._runtime.release(bin.free.pop())
                self.reserved -= bin.size
                self.blocks -= 1

    # ---- Numbers for `torch.cuda.memory` -----------------------------------------------------------------------------------

    def bytes_of_tensors(self) -> dict[str, int]:
        """Return bytes of tensors: now, at most, given since `reset_counts`, and given back."""
        return _numbers(self.allocated, self.most_allocated, self.bytes_given)

    def tensors(self) -> dict[str, int]:
        """Return the same of the number of tensors."""
        return _numbers(self.active, self.most_active, self.times_given)

    def reset_peaks(self) -> None:
        """Let all peaks be the present numbers."""
        self.most_allocated, self.most_reserved = self.allocated, self.reserved
        self.most_active, self.most_blocks = self.active, self.blocks

    def reset_counts(self) -> None:
        """Count from the present tensors on."""
        self.bytes_given, self.times_given = self.allocated, self.active
        self.retries = self.failures = 0


def _numbers(current: int, peak: int, given: int) -> dict[str, int]:
    return {"current": current, "peak": peak, "allocated": given, "freed": given - current}


def _readable(nbytes: int) -> str:
    """As PyTorch writes sizes in these errors: 1.00 GiB, 20.00 MiB."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"
