"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from typing import IO

BUFFER = 1 << 16  # for the many small writes; large ones go past it
NAME = 200  # bytes of the old name in the one that a file may have before it is complete; there may be 255 in all


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """A file to write; it takes the place of `path` when the block ends, and vanishes if the block raises.

    Until then, and if the process is killed, what was at `path` stays there. A link is followed, and the access rights
    of a file that is replaced are kept. Pipes and devices are written directly, and so is a file in a folder that may
    not be written to.

    Raises: RuntimeError if there is no folder, or file and folder may not be written to.
    """
    path = os.fsdecode(path)
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    if not os.path.basename(path):
        raise RuntimeError(f"invalid file name: {path!r}")
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    mode = _mode(path)
    if mode is not None and not (
        stat.S_ISREG(mode) and os.path.exists(real) and os.path.samefile(path, real)
    ):
        with _open(path, path, "wb") as file:
            yield file
        return
    if mode is not None:
        _open(
            path, real, "r+b"
        ).close()  # whoever protects a file from writing does not want it replaced either
    temporary = os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:NAME])}.{secrets.token_hex(8)}.tmp")
    nameless = _nameless(folder)
    try:
        file = _open(path, temporary if nameless is None else nameless, "xb" if nameless is None else "wb")
    except RuntimeError:
        if mode is None:
            raise
        with _open(path, real, "wb") as file:
            yield file
        return
    try:
        with file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode & 0o777)  # before there is anything to read in it
            yield file
            file.flush()
            # Before the file gets its name, so that a crash of the system cannot leave the name with an empty file.
            os.fsync(file.fileno())
            if nameless is not None:
                _link(nameless, temporary)
        _put(temporary, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int | None:
    """The type and the access rights of what is at a path, None if there is nothing.

    Raises: RuntimeError for links that lead in a circle and the like.
    """
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(path, error) from error


def _open(path: str, file: str | int, mode: str) -> IO[bytes]:
    try:
        return open(file, mode, buffering=BUFFER)
    except OSError as error:
        raise _failed(path, error) from error


def _failed(path: str, error: OSError) -> RuntimeError:
    return RuntimeError(f"{path}: open file failed with strerror: {error.strerror}")


def _nameless(folder: str) -> int | None:
    """A file without a name, of which nothing remains if the process is killed; None where the system has none."""
    if not os.path.isdir("/proc/self/fd"):  # without it there is no giving it a name
        return None
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


def _put(temporary: str, path: str) -> None:
    """Move a complete file to its place; copy it to where the system lets nobody replace the file that is there.

    That is so for others' files in folders like /tmp, and for a file that a container has mounted.
    """
    try:
        os.replace(temporary, path)
    except OSError:
        if not os.path.exists(path):
            raise
        shutil.copyfile(temporary, path)
        os.unlink(temporary)
