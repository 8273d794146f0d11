"""Object code kept between runs: private, written atomically, verified on load, harmless when broken."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

_DIGEST = 32  # bytes of SHA-256 in front of each file's content


class DiskCache:
    """A directory of files named after the hash of what they were made from.

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
        if self.directory is None:
            return None
        try:
            content = (self.directory / key).read_bytes()
        except OSError:
            return None
        code = content[_DIGEST:]
        if _sha256(code) != content[:_DIGEST]:
            return None
        return code

    def store(self, key: str, code: bytes) -> None:
        if self.directory is None:
            return
        try:
            handle, temporary = tempfile.mkstemp(dir=self.directory)
            with os.fdopen(handle, "wb") as file:
                file.write(_sha256(code) + code)
            os.replace(temporary, self.directory / key)
        except OSError:
            return


def _sha256(data: bytes) -> bytes:
    import hashlib  # it loads OpenSSL, which takes 5 ms

    return hashlib.sha256(data).digest()


def cache_root() -> Path:
    """Where kernels are kept: $WEFT_CACHE_DIR, else `weft/kernels` in the user's cache directory."""
    chosen = os.environ.get("WEFT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "weft" / "kernels"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "weft" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "weft" / "kernels"


def _private(directory: Path) -> Path | None:
    """The directory, made if need be; None unless it is ours alone, for we run what it holds."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = directory.stat()
    except (OSError, RuntimeError):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return directory
