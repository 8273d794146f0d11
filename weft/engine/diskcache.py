"""The disk cache of object code: private to the user, bounded, written atomically, verified on load; a broken file is ignored."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from pathlib import Path

_DIGEST = 32  # bytes of SHA-256 in front of each file's content
LIMIT = 512 << 20  # bytes; a kernel takes 2 to 10 KiB, weft's whole test suite about 100 MiB
# Seconds. A cache hit renews the time of a file only if it is older, because renewing it takes 5 us.
_DAY = 86400
_TEMPORARY = "tmp"  # the prefix of files that are being written
_OURS = re.compile(f"[0-9a-f]{{64}}|{_TEMPORARY}[0-9a-f]{{16}}")


class DiskCache:
    """A directory of files, each named after the hash of its source.

    Trouble (read-only directory, full disk, corrupt file, a directory that others can write) never raises:
    a lookup misses, a store does nothing.
    """

    def __init__(self, directory: Path | None, salt: str):
        self.directory = directory
        self.salt = salt.encode()

    @classmethod
    def for_user(cls, salt: str) -> DiskCache:
        """The cache below WEFT_CACHE_DIR or the platform's cache directory of this user."""
        return cls(_private(cache_root()), salt)

    def key(self, source: str) -> str:
        return _sha256(self.salt + b"\0" + source.encode()).hex()

    def load(self, key: str) -> bytes | None:
        if self.directory is None or not _is_ours(self.directory):
            return None
        path = self.directory / key
        try:
            with open(path, "rb") as file:
                content = file.read()
                used = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        if time.time() - used > _DAY:
            with contextlib.suppress(OSError):  # in a directory of root, or on a read-only disk
                os.utime(path)
        code = content[_DIGEST:]
        if _sha256(code) != content[:_DIGEST]:
            return None
        return code

    def store(self, key: str, code: bytes) -> None:
        if self.directory is None:
            return
        # The digest is a random number that costs nothing: at one store of 256, the directory is looked through.
        if key.startswith("00"):
            self.tidy()
        with contextlib.suppress(OSError):
            temporary = f"{self.directory}/{_TEMPORARY}{os.urandom(8).hex()}"
            try:
                with open(temporary, "xb", opener=_open_private) as file:
                    file.write(_sha256(code) + code)
                os.replace(temporary, self.directory / key)
            except BaseException:  # the disk is full, or Ctrl-C
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise

    def __contains__(self, key: str) -> bool:
        """Whether there is a file for the key; nobody has looked whether it is damaged."""
        return self.directory is not None and os.path.exists(self.directory / key)

    def remove(self, key: str) -> None:
        if self.directory is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.directory / key)

    def size(self) -> int:
        """The number of bytes in the cache."""
        return sum(size for _, size, _ in self._files())

    def clear(self) -> int:
        """Remove all files. Returns how many there were."""
        removed = 0
        for _, _, path in self._files():
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += 1
        return removed

    def tidy(self, limit: int = LIMIT) -> None:
        """Remove temporary files of killed processes; beyond `limit` bytes, remove the least recently used files as well."""
        files = sorted(self._files())
        excess = sum(size for _, size, _ in files) - limit
        goal = limit // 4 if excess > 0 else 0  # so that the next stores need no tidying
        for used, size, path in files:
            abandoned = os.path.basename(path).startswith(_TEMPORARY) and time.time() - used > _DAY
            if abandoned or excess + goal > 0:
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


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sha256(data: bytes) -> bytes:
    import hashlib  # it loads OpenSSL, which takes 5 ms

    return hashlib.sha256(data).digest()


def cache_root() -> Path:
    """The directory of kernels: $WEFT_CACHE_DIR, else `weft/kernels` in the user's cache directory."""
    chosen = os.environ.get("WEFT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "weft" / "kernels"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "weft" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "weft" / "kernels"


def _private(directory: Path) -> Path | None:
    """The directory, which is made if it is missing; None if other users than root can write to it, because we execute its files."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return directory if _is_ours(directory) else None


def _is_ours(directory: Path) -> bool:
    """Whether only this user, or only root, can write to the directory. The check takes 2 us, so it is repeated at each use.

    Root fills the directories of images of containers, whose programs run as another user.
    """
    try:
        status = os.stat(directory)
    except OSError:
        return False
    return not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0) and not status.st_mode & 0o022
