"""Sources of bytes: a file that weft has opened, or a file object of the user."""

from __future__ import annotations

import io
import os
import threading
from typing import Any


class Source:
    """Random access to the bytes of a file object that can seek. Positions are relative to its current position.

    Several threads may read at the same time.
    """

    def __init__(self, file: Any):
        self.file = file
        self.name = str(getattr(file, "name", f"a {type(file).__name__}"))
        # Not a lock of `core.locks`, because reading may wait for a pipe. A forked child never uses a Source of its parent.
        self._lock = threading.Lock()
        self.start = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self.start
        file.seek(self.start)

    def read(self, position: int, size: int) -> bytes:
        """Raises: RuntimeError if the file has fewer bytes."""
        if position < 0 or position + size > self.size:  # checked before memory is allocated
            raise self._short(position, size)
        content = bytearray(size)
        self.read_into(position, memoryview(content))
        return bytes(content)

    def read_into(self, position: int, memory: memoryview) -> None:
        """Read the bytes at a position into `memory`.

        Raises: RuntimeError if the file has fewer bytes.
        """
        done = 0
        while done < len(memory):
            count = self._read_some(position + done, memory[done:])
            if not count:
                raise self._short(position, len(memory))
            done += count

    def _read_some(self, position: int, memory: memoryview) -> int:
        with self._lock:
            self.file.seek(self.start + position)
            if hasattr(self.file, "readinto"):
                return self.file.readinto(memory)
            content = self.file.read(len(memory))
            memory[: len(content)] = content
            return len(content)

    def _short(self, position: int, size: int) -> RuntimeError:
        return RuntimeError(
            f"{self.name}: unexpected end: {size} bytes are wanted at byte {position}, but there are {self.size} in all"
        )


class FileSource(Source):
    """A file that weft has opened; threads read it at several positions in parallel."""

    def __init__(self, file: io.FileIO):
        super().__init__(file)
        self._descriptor = file.fileno()

    def _read_some(self, position: int, memory: memoryview) -> int:
        return os.preadv(self._descriptor, [memory], position)


def source_of(file: Any) -> Source:
    """The Source for a file object, or for a file that weft has opened."""
    return FileSource(file) if type(file) is io.FileIO and hasattr(os, "preadv") else Source(file)
