"""The disk cache of machine code: private to the user, bounded, shared by processes, verified on load; a broken file is ignored.

Each processor and version has two archives. New code goes to the young one. When it is full, it takes the place of the old one, and a
new young one begins. Code that is found in the old archive is copied to the young one. So code that nobody has used
for a long time vanishes with the old archive.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from pathlib import Path

from .archive import Archive, is_private, sha256

LIMIT = 128 << 20  # bytes of all archives; a kernel takes about 1 KiB
_FULL = LIMIT // 4  # bytes of a young archive
# Seconds. An archive that is used gets a new time only if its time is older, so that processes do not write all the time.
_DAY = 86400
_YOUNG, _OLD = "young", "old"  # suffixes
# The last two are files of earlier versions of weft: one for each kernel, and the temporary ones.
_OURS = re.compile(f"[0-9a-f]{{16}}\\.({_YOUNG}|{_OLD})|[0-9a-f]{{64}}|tmp[0-9a-f]{{16}}")


class DiskCache:
    """Contents by key, in archives of a directory. `salt`: what all keys have in common.

    Trouble (read-only directory, full disk, corrupt file, a directory that others can write) never raises:
    a lookup misses, a store does nothing.
    """

    def __init__(self, directory: Path | None, salt: str):
        self.directory = directory
        self._stem = sha256(salt.encode()).hex()[:16]
        self._opened: tuple[Path | None, Archive, Archive] | None = None

    @classmethod
    def for_user(cls, salt: str) -> DiskCache:
        """Return the cache below WEFT_CACHE_DIR or the platform's cache directory of this user."""
        return cls(_private(cache_root()), salt)

    @staticmethod
    def key(source: str) -> bytes:
        return sha256(source.encode())

    def load(self, key: bytes) -> bytes | None:
        archives = self._archives()
        if archives is None:
            return None
        young, old = archives
        content = young.load(key)
        if content is None and (content := old.load(key)) is not None:
            self.store(key, content)
        return content

    def store(self, key: bytes, content: bytes) -> None:
        archives = self._archives()
        if archives is None:
            return
        young, old = archives
        with contextlib.suppress(OSError):
            if young.size >= _FULL:
                young.move(old.path, _FULL)
            if not os.path.exists(young.path):
                self.tidy()
            young.append(key, content)

    def _archives(self) -> tuple[Archive, Archive] | None:
        """The young and the old archive, unless other users can write to the directory."""
        if self.directory is None:
            return None
        if self._opened is None or self._opened[0] is not self.directory:
            if not _is_ours(self.directory):
                return None
            young, old = (Archive(self.directory / f"{self._stem}.{suffix}") for suffix in (_YOUNG, _OLD))
            for each in (young, old):
                _mark_as_used(each.path)
            self._opened = self.directory, young, old
        return self._opened[1:]

    def size(self) -> int:
        """Return the number of bytes in the cache, also those of other processors and versions."""
        return sum(size for _, size, _ in self._files())

    def clear(self) -> int:
        """Remove all files. Returns how many bytes they had."""
        removed = 0
        for _, size, path in self._files():
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += size
        return removed

    def tidy(self, limit: int = LIMIT) -> None:
        """Remove the least recently used files until the others have at most three quarters of `limit` bytes."""
        files = sorted(self._files())
        excess = sum(size for _, size, _ in files) - limit * 3 // 4
        for _, size, path in files:
            if excess <= 0:
                break
            with contextlib.suppress(OSError):  # another process does the same
                os.unlink(path)
            excess -= size

    def _files(self) -> list[tuple[float, int, str]]:
        """(time of last use, size, path) of each file of the cache; other files, if the user keeps any there, are left alone."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                if not _OURS.fullmatch(entry.name):
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    found.append((status.st_mtime, status.st_size, entry.path))
        return found


def _mark_as_used(path: Path) -> None:
    with contextlib.suppress(OSError):  # there is none, in a directory of root, or on a read-only disk
        if time.time() - os.stat(path).st_mtime > _DAY:
            os.utime(path)


def cache_root() -> Path:
    """Return the directory of kernels: $WEFT_CACHE_DIR, else `weft/kernels` in the user's cache directory."""
    chosen = os.environ.get("WEFT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "weft" / "kernels"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", _home())) / "weft" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME", _home() / ".cache")) / "weft" / "kernels"


def _home() -> Path:
    """The user's folder, or a path that cannot be made for a user without one, as in containers that run under a number only."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def _private(directory: Path) -> Path | None:
    """The directory, which is made if it is missing; None if other users than root can write to it, because we execute its files."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return directory if _is_ours(directory) else None


def _is_ours(directory: Path) -> bool:
    """Whether only this user, or only root, can write to the directory."""
    try:
        return is_private(os.stat(directory))
    except OSError:
        return False
