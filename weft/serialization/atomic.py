"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO

BUFFER = 1 << 16  # for the many small writes; large ones go past it


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A file to write; it takes the place of `path` when the block ends, and vanishes if the block raises.

    Until then, and if the process is killed, what was at `path` stays there. Pipes and devices are written directly.
    A link is followed, and the access rights of a file that is replaced are kept.

    Raises: RuntimeError if there is no folder to write to, or it may not be written to.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    mode = os.stat(path).st_mode if os.path.exists(path) else None
    if mode is not None and not stat.S_ISREG(mode):
        with _open(path, path, "wb") as file:
            yield file
        return
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.tmp")
    nameless = _nameless(folder)
    file = _open(path, temporary if nameless is None else nameless, "xb" if nameless is None else "wb")
    try:
        with file:
            yield file
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            # Before the file gets its name, so that a crash of the system cannot leave the name with an empty file.
            os.fsync(file.fileno())
            if nameless is not None:
                _link(nameless, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _open(path: str, file: str | int, mode: str) -> IO[bytes]:
    try:
        return open(file, mode, buffering=BUFFER)
    except OSError as error:
        raise RuntimeError(f"{path}: open file failed with strerror: {error.strerror}") from error


def _nameless(folder: str) -> int | None:
    """A file without a name, of which nothing remains if the process is killed; None where the system has none."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (OSError, AttributeError):
        return None


def _link(descriptor: int, path: str) -> None:
    # A folder must be given for the link in /proc to be followed; the path is absolute, so it is not used.
    folder = os.open("/", os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
