"""An archive: one file of records, each with a key and a content. Records are only ever appended.

The file begins with `_MAGIC`. A record is its mark, the size of its content, its key, the SHA-256 of both, and the content. A process
reads the headers of all records once, and later those that other processes have appended. A content is read and verified when it
is asked for. So a damaged record is a miss, and so is a record that was not written to its end: the next process that appends
a record cuts it off.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ..core.file_locks import lock_on_windows
from ..core.locks import new_lock

KEY_BYTES = 32
_MAGIC = b"weft kernels 1\n\0"
_MARK = b"weft"
_RECORD = struct.Struct(f"<4sI{KEY_BYTES}s32s")
_BLOCK = 1 << 18  # bytes that are read at once when headers are looked for
# Bytes; so much of the beginning of a file stays in memory, because opening the file for each record takes 20 us.
_KEPT = 4 << 20
_QUIET_S = (
    0.02  # after a look at the file, before the next one: a program asks for many kernels that nobody has
)
_BINARY = getattr(os, "O_BINARY", 0)


class Archive:
    """The file at a path, which may not exist, and may be replaced or removed by other processes at any time.

    `load` raises no OSError. `append` does, if the disk is full or read-only.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lock = new_lock()
        self._forget()

    def _forget(self) -> None:
        # Maps a key to the place where its record begins, and the size of the record.
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end = 0  # of the records that are known, in bytes
        self._identity: tuple[int, int] | None = None  # of the file that they are in
        self._beginning = b""
        self._looked = 0.0  # time.monotonic()

    def load(self, key: bytes) -> bytes | None:
        """Return the content with this key."""
        with self._lock:
            while True:
                place = self._places.get(key)
                if place is not None:
                    content = self._read(key, place)
                    if content is not None:
                        return content
                    self._places.pop(key, None)  # it is damaged, or the file was replaced
                if not self._refresh():
                    return None

    def append(self, key: bytes, content: bytes) -> None:
        """Add a record, unless there is one, or another process is writing."""
        record = _RECORD.pack(_MARK, len(content), key, _digest(key, content)) + content
        with (
            self._lock,
            _opened(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as file,
            _locked(file) as alone,
        ):
            status = os.fstat(file)
            if not alone or not is_private(status):
                return
            self._catch_up(file, status)
            if key in self._places or not self._is_current(status):
                return
            if self._end < status.st_size:  # what follows is no complete record
                os.ftruncate(file, self._end)
            start = self._end or len(_MAGIC)
            data = record if self._end else _MAGIC + record
            if os.write(file, data) < len(data):  # the disk is full
                os.ftruncate(file, self._end)
                return
            self._places[key] = start, len(record)
            self._end = start + len(record)

    def move(self, path: Path, least: int) -> None:
        """Rename the file if it has at least so many bytes, unless another process is writing or has renamed it."""
        with self._lock, contextlib.suppress(FileNotFoundError):
            with _opened(self.path, os.O_RDWR) as file, _locked(file) as alone:
                status = os.fstat(file)
                due = alone and status.st_size >= least and self._is_current(status)
                if due and sys.platform != "win32":
                    os.replace(self.path, path)
            if due and sys.platform == "win32":  # which renames no file that is open
                with contextlib.suppress(PermissionError):  # in another process; a later call renames it
                    os.replace(self.path, path)

    @property
    def size(self) -> int:
        """The bytes that the records take that are known."""
        return self._end

    def _is_current(self, status: os.stat_result) -> bool:
        """Whether the file is still the one at the path."""
        try:
            return _identity(os.stat(self.path)) == _identity(status)
        except OSError:
            return False

    def _refresh(self) -> bool:
        """Read the headers of new records, unless this was done just now. Returns whether there are any."""
        if (now := time.monotonic()) < self._looked + _QUIET_S:
            return False
        try:
            status = os.stat(self.path)
            if _identity(status) == self._identity and status.st_size == self._end:
                return False
            with _opened(self.path, os.O_RDONLY) as file:
                return self._catch_up(file, os.fstat(file))
        except OSError:
            self._forget()
            return False
        finally:
            self._looked = now

    def _catch_up(self, file: int, status: os.stat_result) -> bool:
        """Read the headers of the records of this file that are not known. Returns whether there are any."""
        if _identity(status) != self._identity or status.st_size < self._end:
            self._forget()
            self._identity = _identity(status)
        if not is_private(status):
            return False
        start = self._end
        if not start:
            self._beginning = _read_at(file, _KEPT, 0)
            if self._beginning.startswith(_MAGIC):
                self._end = len(_MAGIC)
        if self._end:
            self._scan(file, status.st_size)
        return self._end > start

    def _scan(self, file: int, size: int) -> None:
        block, first = self._beginning, 0  # bytes of the file from `first` on
        while self._end + _RECORD.size <= size:
            if self._end + _RECORD.size > first + len(block):
                block, first = _read_at(file, _BLOCK, self._end), self._end
                if len(block) < _RECORD.size:
                    break
            mark, length, key, _ = _RECORD.unpack_from(block, self._end - first)
            length += _RECORD.size
            if mark != _MARK or self._end + length > size:
                break
            self._places[key] = self._end, length
            self._end += length

    def _read(self, key: bytes, place: tuple[int, int]) -> bytes | None:
        start, size = place
        record = self._beginning[start : start + size]
        if len(record) != size:
            try:
                with _opened(self.path, os.O_RDONLY) as file:
                    if not is_private(os.fstat(file)):
                        return None
                    record = _read_at(file, size, start)
            except OSError:
                return None
        if len(record) != size:
            return None
        *_, found, digest = _RECORD.unpack_from(record)
        content = record[_RECORD.size :]
        return content if found == key and digest == _digest(key, content) else None


def is_private(status: os.stat_result) -> bool:
    """Whether only this user, or only root, can write to a file or directory.

    Root fills the directories of images of containers, whose programs run as another user.
    """
    return not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0) and not status.st_mode & 0o022


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _digest(key: bytes, content: bytes) -> bytes:
    return sha256(key + content)


def sha256(data: bytes) -> bytes:
    import hashlib  # it loads OpenSSL, which takes 5 ms

    return hashlib.sha256(data).digest()


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """The descriptor of a file. It is closed at once, because a daemon may close all descriptors, and open other files under them."""
    file = os.open(path, flags | _BINARY, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(f"{path} is no file")
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _locked(file: int) -> Iterator[bool]:
    """Lock the file against other processes until it is closed. Gives False if another process has it, which may have been stopped."""
    try:
        _lock(file)
    except OSError:
        yield False
    else:
        yield True


def _lock(file: int) -> None:
    if sys.platform == "win32":
        lock_on_windows(file)
    else:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read_at(file: int, size: int, position: int) -> bytes:
    os.lseek(file, position, os.SEEK_SET)
    return os.read(file, size)
