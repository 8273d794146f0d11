"""Segment: the shared memory of a group, and where everything in it lies.

First the lines (`steps.py`) of all ranks: how far each one is in collectives, a bell that others ring, and whether it has left. Then for
each rank two slots, in which it shows the others what a collective is (the key) and a piece of its data (the area). At the end a mailbox
for each pair of ranks.
"""

from __future__ import annotations

import ctypes
import os

from ...core.shared import SharedMemory
from .steps import LINE

CHUNK = 1 << 20  # bytes of data that a rank shows at once
AREA = 2 * CHUNK  # the second half is for results
KEY = 64  # bytes; what has to be equal on all ranks
PAGE = 4096

MAIL = 1 << 17  # bytes of a message that a mailbox takes at once
PLACES = 2  # of a mailbox
ENVELOPE = 64  # bytes, in front of each place

_ARRIVED, _BELL, _LEFT = range(3)


class Segment:
    """Memory for `size` ranks. Pages that nobody touches take no memory."""

    def __init__(self, size: int, descriptor: int | None = None):
        self._lines = 3 * size * LINE
        self._slot = KEY + 16 * size + AREA  # the key is followed by two numbers for each rank
        self._slot += -self._slot % PAGE
        self._box = 2 * LINE + PLACES * (ENVELOPE + MAIL)
        self._box += -self._box % PAGE
        self.size = size
        self._slots = self._lines + -self._lines % PAGE
        self._boxes = self._slots + 2 * size * self._slot
        self.memory = SharedMemory(self._boxes + size * size * self._box, descriptor)
        self.address = self.memory.address

    def place(self) -> str:
        """Where other processes can open the memory while this process runs."""
        return f"/proc/{os.getpid()}/fd/{self.memory.fd}"

    def arrived(self, rank: int) -> int:
        """The line that says how many phases `rank` has come to."""
        return self._line(_ARRIVED, rank)

    def bell(self, rank: int) -> int:
        """The line that others ring when they have written into a mailbox of `rank`, or emptied one."""
        return self._line(_BELL, rank)

    def left(self, rank: int) -> int:
        """The line whose number is 1 after `rank` has left the group."""
        return self._line(_LEFT, rank)

    def _line(self, which: int, rank: int) -> int:
        return self.address + (which * self.size + rank) * LINE

    def key(self, rank: int, phase: int) -> int:
        return self.address + self._slots + (2 * rank + phase % 2) * self._slot

    def numbers(self, rank: int, phase: int) -> int:
        """Two int64 for each rank."""
        return self.key(rank, phase) + KEY

    def area(self, rank: int, phase: int) -> int:
        return self.key(rank, phase) + self._slot - AREA

    def results(self, rank: int, phase: int) -> int:
        return self.area(rank, phase) + CHUNK

    def mailbox(self, source: int, target: int) -> int:
        return self.address + self._boxes + (source * self.size + target) * self._box


def number_at(address: int) -> int:
    """The int64 at an address."""
    return ctypes.c_int64.from_address(address).value


def bytes_at(address: int, count: int) -> bytes:
    """A copy of the bytes at an address."""
    return ctypes.string_at(address, count)
