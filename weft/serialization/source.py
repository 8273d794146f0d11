"""Where bytes are read from: a file of our own, or a file object that somebody hands us."""

from __future__ import annotations

import io
import os
import threading
from typing import Any


class Source:
    """Bytes at positions, of a file object that can seek; positions count from where the object stands now.

    Reading at one position does not disturb reading at another, in other threads too.
    """

    def __init__(self, file: Any):
        self.file = file
        self.name = str(getattr(file, "name", f"a {type(file).__name__}"))
        # Not one of `core.locks`: reading may wait for a pipe. No child sees a Source that another thread was reading.
        self._lock = threading.Lock()
        self.start = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self.start
        file.seek(self.start)

    def read(self, position: int, size: int) -> bytes:
        """Raises: RuntimeError if there are fewer bytes."""
        if position < 0 or position + size > self.size:  # before memory is allocated for them
            raise self._short(position, size)
        content = bytearray(size)
        self.read_into(position, memoryview(content))
        return bytes(content)

    def read_into(self, position: int, memory: memoryview) -> None:
        """Fill `memory` with the bytes at a position.

        Raises: RuntimeError if there are fewer bytes.
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
    """A file of our own, which threads may read at several places at once."""

    def __init__(self, file: io.FileIO):
        super().__init__(file)
        self._descriptor = file.fileno()

    def _read_some(self, position: int, memory: memoryview) -> int:
        return os.preadv(self._descriptor, [memory], position)


def source_of(file: Any) -> Source:
    """The source of a file object, or of a file that we opened."""
    return FileSource(file) if type(file) is io.FileIO and hasattr(os, "preadv") else Source(file)
