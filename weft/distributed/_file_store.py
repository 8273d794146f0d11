"""FileStore: a store in a file, which processes of one machine (or of one file system) share.

The file is a log in PyTorch's format, so that processes with PyTorch can share it: every entry is a key and a value, each
with its length in bytes (int32) in front. Keys begin with "/", those of a deletion with "-/".
"""

from __future__ import annotations

import os
import struct
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from ..core.file_locks import lock_on_windows
from ._errors import DistStoreError
from ._store import Store, encoded, wait_until

_BINARY = getattr(os, "O_BINARY", 0)  # else Windows changes the ends of lines
_REFERENCES = "refcount/"  # the number of stores that were opened on this file; PyTorch writes it without "/"


class FileStore(Store):
    """A store in the file `file_name`; `world_size` is the number of processes, if it is known.

    The last process of `world_size` removes the file.

    >>> import os, tempfile
    >>> from weft.distributed import FileStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FileStore(os.path.join(folder, "store"), 1)
    ...     store.set("epoch", "3")
    ...     store.get("epoch")
    ...     del store
    b'3'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = os.fspath(file_name)
        self._log = _Log(self._path)
        self._log.add(_REFERENCES, 1)
        self._finalizer = weakref.finalize(self, _leave, self._log, world_size)

    @property
    def path(self) -> str:
        return self._path

    def set(self, key: str, value: str | bytes) -> None:
        with self._log.open() as file:
            self._log.write(file, "/" + key, encoded(value))

    def get(self, key: str) -> bytes:
        message = f"Timeout waiting for key: {key} after {self.timeout.total_seconds() * 1000:.0f} ms"
        wait_until(lambda: self.check([key]), self.timeout, message)
        return self._log.values["/" + key]

    def add(self, key: str, amount: int) -> int:
        return self._log.add("/" + key, amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        with self._log.open() as file:
            current = self._log.values.get("/" + key)
            if (current or b"") != encoded(expected):
                return encoded(expected) if current is None else current
            self._log.write(file, "/" + key, encoded(desired))
            return encoded(desired)

    def delete_key(self, key: str) -> bool:
        """Delete a key. As in PyTorch the answer is True, also for a missing key."""
        with self._log.open() as file:
            self._log.write(file, "-/" + key, b"")
        return True

    def check(self, keys: Sequence[str]) -> bool:
        values = self._log.read()
        return all("/" + key in values for key in keys)

    def num_keys(self) -> int:
        return len(self._log.read())

    def list_keys(self) -> list[str]:
        return [key[1:] for key in self._log.read() if key.startswith("/")]


class _Log:
    """The entries of the file that were read so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.position = 0
        self.values: dict[str, bytes] = {}

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file, locked and read to its end."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | _BINARY, 0o644)
        with os.fdopen(descriptor, "r+b") as file:  # closing the file gives the lock back
            _lock(file.fileno())
            self._catch_up(file)
            yield file

    def read(self) -> dict[str, bytes]:
        with self.open():
            return self.values

    def add(self, key: str, amount: int) -> int:
        with self.open() as file:
            total = int(self.values.get(key, b"0")) + amount
            self.write(file, key, str(total).encode())
            return total

    def write(self, file: BinaryIO, key: str, value: bytes) -> None:
        parts = (key.encode(), value)
        file.seek(0, os.SEEK_END)
        file.write(b"".join(struct.pack("=i", len(part)) + part for part in parts))
        self._enter(key, value)
        self.position = file.tell()

    def _catch_up(self, file: BinaryIO) -> None:
        file.seek(0, os.SEEK_END)
        end = file.tell()
        file.seek(self.position)
        while file.tell() < end:
            self._enter(self._part(file).decode(), self._part(file))
        self.position = end

    def _part(self, file: BinaryIO) -> bytes:
        size = file.read(4)
        part = file.read(struct.unpack("=i", size)[0]) if len(size) == 4 else b""
        if len(size) != 4 or len(part) != struct.unpack("=i", size)[0]:
            raise DistStoreError(
                f"FileStore: {self.path} ends within an entry; remove the file and start again"
            )
        return part

    def _enter(self, key: str, value: bytes) -> None:
        if key.startswith("-"):
            self.values.pop(key[1:], None)
        else:
            self.values[key] = value


def _lock(file: int) -> None:
    """Wait until no other process has the file, and lock it."""
    if sys.platform == "win32":
        while True:
            try:
                return lock_on_windows(file)
            except OSError:
                time.sleep(0.001)
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)


def _leave(log: _Log, world_size: int, remove: Callable[[str], Any] = os.remove) -> None:
    """Count this store out. The last one of all `world_size` processes removes the file."""
    if not os.path.exists(log.path):
        return
    opened = int(log.read().get(_REFERENCES, b"0"))
    left = log.add("/cleanup", 1)
    if left == opened and (world_size < 0 or opened >= world_size):
        remove(log.path)


FileStore.__module__ = __name__.rpartition(".")[0]  # where it is public
