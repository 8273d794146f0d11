"""The reference device's memory: blocks of bytes that nothing but the device can reach.

An address is the number of a block and a position in it, and it lies where no process has memory. So a host that takes it for a
pointer faults, and an address of the host, of a freed block or behind a block's end is an error here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

# Positions have so many bits: a block has up to 64 GiB.
POSITION_BITS = 36
# The first number of a block. 2**47 is where the addresses of processes end, on x86-64 and on Arm.
FIRST = 1 << (47 - POSITION_BITS)
UNINITIALIZED = 0xCB  # in each new byte, so that a result nobody wrote is the same garbage each time

_numbers = itertools.count(FIRST)  # one count for all devices: an address belongs to one of them


class Memory:
    """Holds the blocks of one device."""

    def __init__(self, name: str):
        self.name = name
        self.blocks: dict[int, np.ndarray] = {}

    def allocate(self, nbytes: int) -> int:
        """Allocate a block and return its address."""
        number = next(_numbers)
        self.blocks[number] = self.new_block(nbytes)
        return number << POSITION_BITS

    def new_block(self, nbytes: int) -> np.ndarray:
        """So many new bytes."""
        return np.full(nbytes, UNINITIALIZED, np.uint8)

    def find(self, address: int) -> tuple[np.ndarray, int]:
        """The bytes of the block that an address lies in, and the position in it.

        Raises: RuntimeError if it lies in none.
        """
        block = self.blocks.get(address >> POSITION_BITS)
        if block is None:
            raise RuntimeError(
                f"{address:#x} is no address of device {self.name}: its block is freed, or elsewhere"
            )
        return block, address & (1 << POSITION_BITS) - 1

    def array(
        self, address: int, dtype: np.dtype, sizes: Sequence[int], strides: Sequence[int]
    ) -> np.ndarray:
        """Return the elements at `address`, `strides` bytes apart, as an array on the memory.

        Raises: RuntimeError if one of them lies outside of the block.
        """
        if 0 in sizes:
            return np.empty(sizes, dtype)
        block, position = self.find(address)
        reach = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
        first = position + sum(step for step in reach if step < 0)
        last = position + sum(step for step in reach if step > 0) + dtype.itemsize
        if first < 0 or last > block.size:
            raise RuntimeError(
                f"device {self.name}: bytes {first} to {last} of a block of {block.size} bytes were asked for"
            )
        return np.ndarray(tuple(sizes), dtype, block.data, position, tuple(strides))

    def read(self, address: int, nbytes: int) -> bytes:
        return self.array(address, np.dtype(np.uint8), (nbytes,), (1,)).tobytes()

    def write(self, address: int, content: Any) -> None:
        values = np.frombuffer(content, np.uint8)
        self.array(address, values.dtype, values.shape, (1,))[:] = values


class Bin:
    """Where a Storage gives its block back: see `Storage.bin`."""

    def __init__(self, memory: Memory, address: int, nbytes: int):
        self.size = nbytes
        self._blocks, self._number = memory.blocks, address >> POSITION_BITS

    def append(self, address: int) -> None:
        """Free the block. This names nothing of the module, because storages may die after it."""
        self._blocks.pop(self._number, None)
