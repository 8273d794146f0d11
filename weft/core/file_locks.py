"""Locks on open files, which exclude other processes, on Windows."""

from __future__ import annotations

import os

# Windows lets no process read a locked byte, so the lock is on a byte far behind the end of the file.
_PLACE = 1 << 40


def lock_on_windows(file: int) -> None:
    """Lock the file with this descriptor until it is closed. Its position is at the beginning afterwards.

    Raises: OSError if the file is locked already.
    """
    import msvcrt

    os.lseek(file, _PLACE, os.SEEK_SET)
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    finally:
        os.lseek(file, 0, os.SEEK_SET)
