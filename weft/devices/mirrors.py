"""Copies of storages on the host: devices whose memory the host cannot reach compute ops without a kernel on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.device import device
from ..core.locks import new_lock
from ..core.storage import Storage
from .base import Backend


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


class Mirrored(Backend):
    """A device whose arrays are copies on the host.

    `runtime` has `read(address, nbytes)`, `write(address, bytes)`, and `call_before_work(function)`, which has each launch call a function
    first, until it is called with None.
    """

    xp = np

    def __init__(self, where: device, runtime: Any):
        self.device, self.runtime = where, runtime
        self._inside = new_lock()  # one thread at a time computes with arrays
        self._mirrors: Mirrors | None = None

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """In this context arrays are copies on the host; what changes in them is copied back at the end."""
        with self._inside:
            if self._mirrors is not None:  # the context around this one brings back
                yield
                return
            yield from self._with_mirrors()

    def _with_mirrors(self) -> Iterator[None]:
        self._mirrors = mirrors = Mirrors(self.runtime)
        self.runtime.call_before_work(mirrors.bring_back)
        try:
            yield
        finally:
            self._mirrors = None
            self.runtime.call_before_work(None)
            mirrors.bring_back()

    def as_array(self, storage, shape, dtype, start, strides):
        if self._mirrors is None:
            raise RuntimeError(f"The host cannot read the memory of device {self.device}: use .cpu()")
        return np.ndarray(tuple(shape), dtype, self._mirrors.of(storage), start, strides)

    def adopt(self, array, nbytes):
        storage = self.allocate(nbytes)
        content = np.empty(nbytes, np.uint8)
        np.ndarray(array.shape, array.dtype, content, 0, array.strides)[...] = array
        self.write_constant(storage, content)
        return storage
