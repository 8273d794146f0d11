"""Copies of storages on the host, for ops that are computed there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.storage import Storage


class _Mirror:
    """Holds the bytes of one storage on the host."""

    __slots__ = ("storage", "before", "now", "is_current")

    def __init__(self, storage: Storage):
        self.storage = storage  # which this keeps alive
        self.now = np.empty(storage.nbytes_, np.uint8)
        self.before = b""  # the bytes that the device has
        self.is_current = False

    def fetch(self, runtime: Any) -> None:
        self.before = runtime.read(self.storage.ptr, self.storage.nbytes_)
        self.now[:] = np.frombuffer(self.before, np.uint8)
        self.is_current = True

    def bring_back(self, runtime: Any) -> None:
        if self.before != self.now.data:
            runtime.write(self.storage.ptr, self.now)
            self.before = self.now.tobytes()


class Mirrors:
    """Holds the copies of one `Backend.inside()`."""

    def __init__(self, runtime: Any):
        self._runtime = runtime
        self._mirrors: dict[int, _Mirror] = {}  # by the number of the storage

    def of(self, storage: Storage) -> np.ndarray:
        """The bytes of a storage. Arrays on one storage share them."""
        mirror = self._mirrors.get(id(storage))
        if mirror is None:
            mirror = self._mirrors.setdefault(id(storage), _Mirror(storage))
        if not mirror.is_current:
            mirror.fetch(self._runtime)
        return mirror.now

    def bring_back(self) -> None:
        """Write the storages whose bytes have changed. The device may change them next, so they are read again when they are asked for."""
        for mirror in self._mirrors.values():
            if mirror.is_current:
                mirror.bring_back(self._runtime)
                mirror.is_current = False
