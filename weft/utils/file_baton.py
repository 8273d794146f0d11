"""A lock between processes: a file that only one of them can make."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

from ..core.warn import user_level

__all__ = ["FileBaton"]


class FileBaton:
    """`try_acquire` makes the file, `release` removes it, `wait` waits until it is gone."""

    def __init__(
        self, lock_file_path: str | Path, wait_seconds: float = 0.1, warn_after_seconds: float | None = None
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.fd: int | None = None
        self.warn_after_seconds = warn_after_seconds

    def try_acquire(self) -> bool:
        """Return whether the file could be made; False if there is one already."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone; it is not acquired then."""
        started, warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            late = (
                self.warn_after_seconds is not None and time.monotonic() - started > self.warn_after_seconds
            )
            if late and not warned:
                warnings.warn(
                    f"Waited on lock file {self.lock_file_path} for more than {self.warn_after_seconds} s",
                    stacklevel=user_level(),
                )
                warned = True

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
