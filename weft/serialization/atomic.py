"""Replaces files atomically."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from typing import IO

BUFFER = 1 << 16  # bytes; larger writes bypass the buffer
NAME = 200  # bytes of the file's name that become part of the temporary name; a name may have 255 bytes


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """A file to write. It replaces the file at `path` when the block ends, and is deleted if the block raises.

    Until then, and if the process is killed, the old file at `path` is unchanged. Links are followed, and the new file gets the
    access rights of the old one. Pipes and devices are written directly, and so are files in folders that are not writable.

    Raises: RuntimeError if the folder does not exist, or if neither the file nor the folder is writable.
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
        # Raise an error for a file that is not writable, because such a file must not be replaced either.
        _open(path, real, "r+b").close()
    temporary = os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:NAME])}.{os.urandom(8).hex()}.tmp")
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
                # Before the content is written, so that users without the right cannot read it.
                os.fchmod(file.fileno(), mode & 0o777)
            yield file
            file.flush()
            # Sync before the file gets its name, so that a crash of the system cannot leave an empty file with this name.
            os.fsync(file.fileno())
            if nameless is not None:
                _link(nameless, temporary)
        _put(temporary, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int | None:
    """The `st_mode` of the file at a path, None if there is no file.

    Raises: RuntimeError for loops of links and similar errors.
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
    """A file without a name, which the system deletes if the process is killed. None if the system does not support this."""
    if not os.path.isdir("/proc/self/fd"):  # which is necessary to give the file a name later
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (OSError, AttributeError):
        return None


def _link(descriptor: int, path: str) -> None:
    # `link` follows the link in /proc only if it gets a folder. It does not use the folder, because the path is absolute.
    folder = os.open("/", os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _put(temporary: str, path: str) -> None:
    """Move a complete file to its final path. If the system does not allow to replace the old file, copy the content into it.

    This happens for files of other users in folders like /tmp, and for files that a container mounts.
    """
    try:
        os.replace(temporary, path)
    except OSError:
        if not os.path.exists(path):
            raise
        shutil.copyfile(temporary, path)
        os.unlink(temporary)
