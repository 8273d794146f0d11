"""Copies that share memory until one side is written: `Tensor._lazy_clone`.

CopyOnWrite is a state of a storage, as those of `core/promised.py`: an assignment to `__class__` changes it, so ordinary storages pay
nothing. A writer increments `version` before it reads the address, and whoever hands out the address sets `exposed`. Therefore
the setters of these two attributes give the storage memory of its own.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from .storage import FOREIGN, Storage

_version, _exposed = [
    Storage.__dict__[name] for name in ("version", "exposed")
]  # the descriptors of the slots


class _SharedBlock:
    """The bin of the storages that share a block. When the last of them is gone, the block returns to its own bin."""

    __slots__ = ("ptr", "bin")
    size = -1  # no storage can be resized in a shared block

    def __init__(self, ptr: int, bin: Any):
        self.ptr, self.bin = ptr, bin

    def append(self, ptr: int) -> None:
        """Nothing: a storage that returns the block has one reference to this object less."""

    def __del__(self) -> None:
        self.bin.append(self.ptr)


class CopyOnWrite(Storage):
    """A storage that may share its block with others."""

    __slots__ = ()

    def separate(self) -> None:
        """Make this an ordinary storage. The last one of those that share a block keeps the block."""
        shared = self.bin
        if getrefcount(shared) > 3:  # the slot, the variable and the argument
            super()._move(self.device.backend.allocate(self.nbytes_))
        else:
            self.bin, shared.bin = shared.bin, FOREIGN
        self.__class__ = Storage  # type: ignore[assignment]

    @property
    def version(self) -> Any:  # type: ignore[override]
        return _version.__get__(self)

    @version.setter
    def version(self, number: Any) -> None:
        self.separate()
        self.version = number

    @property
    def exposed(self) -> bool:  # type: ignore[override]
        return _exposed.__get__(self)

    @exposed.setter
    def exposed(self, exposed: bool) -> None:
        self.separate()
        self.exposed = exposed

    def _move(self, other: Storage) -> None:
        super()._move(other)
        self.__class__ = Storage  # type: ignore[assignment]


Storage.states.append(CopyOnWrite)
CopyOnWrite.__name__, CopyOnWrite.__qualname__ = Storage.__name__, Storage.__qualname__
CopyOnWrite.__module__ = Storage.__module__


def can_share(storage: Storage) -> bool:
    """Whether `lazy_copy` takes a storage: not if code outside of weft may write to the memory, or frees it."""
    storage.settle()
    return type(storage) in (Storage, CopyOnWrite) and not storage.exposed and storage.owner is None


def lazy_copy(storage: Storage) -> Storage:
    """A copy of a storage, on the same memory until one of the two is written."""
    if type(storage) is Storage:
        storage.bin = _SharedBlock(storage.ptr, storage.bin)
        storage.__class__ = CopyOnWrite
    copy = Storage(storage.ptr, storage.nbytes_, storage.device, storage.bin)
    copy.__class__ = CopyOnWrite
    return copy
