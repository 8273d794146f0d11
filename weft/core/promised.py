"""The states of a storage while work on it is deferred. The class of a storage is its state.

    Promised    has no memory yet: a promise (`engine/defer.py`) computes the bytes when somebody asks for the address
    Watched     has memory that a promise will read: the promise reads it before anybody writes there

Both classes have the slots of `Storage`, so a storage changes its state by an assignment to `__class__`, and code that uses
an ordinary storage pays nothing. A writer increments `version` before it writes, and whoever hands out the address sets
`exposed`. Therefore the setters of these two attributes are the places where a Watched storage does the outstanding work.
"""

from __future__ import annotations

from typing import Any

from .grad_mode import INFERENCE_VERSION, mode, open_inference
from .spec import Spec
from .storage import Storage

_ptr, _bin, _version, _exposed = [
    Storage.__dict__[name] for name in ("ptr", "bin", "version", "exposed")
]  # the descriptors of the slots
_new = object.__new__


class Keeper:
    """The functions that do deferred work. `engine/defer.py` sets them."""

    keep: Any  # (promise): give its storage memory
    settle: Any  # (storage): do all work that computes its bytes or reads them


keeper = Keeper()


class _Pending(Storage):
    """A storage for which work is outstanding."""

    __slots__ = ()

    def settle(self) -> None:
        keeper.settle(self)

    @property
    def version(self) -> Any:  # type: ignore[override]
        return _version.__get__(self)

    @version.setter
    def version(self, number: Any) -> None:
        keeper.settle(self)
        _version.__set__(self, number)

    @property
    def exposed(self) -> bool:  # type: ignore[override]
        return _exposed.__get__(self)

    @exposed.setter
    def exposed(self, exposed: bool) -> None:
        _exposed.__set__(
            self, exposed
        )  # first, so that nobody makes a promise that reads this storage meanwhile
        keeper.settle(self)


class Watched(_Pending):
    """A storage with memory that a promise will read."""

    __slots__ = ()


class Promised(_Pending):
    """A storage without memory. Its slot `ptr` holds the promise, and its slot `bin` is empty."""

    __slots__ = ()

    @property
    def ptr(self) -> int:  # type: ignore[override]
        promise = promise_of(self)
        if promise is not None:
            keeper.keep(promise)
        return _ptr.__get__(self)

    @property
    def bin(self) -> Any:  # type: ignore[override]
        self.ptr  # noqa: B018 (gives the storage its memory)
        return _bin.__get__(self)


Storage.states += [Watched, Promised]

for _class in (_Pending, Watched, Promised):
    _class.__name__, _class.__qualname__, _class.__module__ = (
        Storage.__name__,
        Storage.__qualname__,
        Storage.__module__,
    )


def new_promised(promise: Any, spec: Spec) -> Storage:
    """A storage for a tensor with this spec, whose bytes the promise computes."""
    storage = _new(Promised)
    _ptr.__set__(storage, promise)
    _version.__set__(storage, INFERENCE_VERSION if open_inference and mode.inference else 0)
    _exposed.__set__(storage, False)
    storage.nbytes_, storage.device, storage.owner = spec.nbytes, spec.device, None
    return storage


def promise_of(storage: Storage) -> Any:
    """The promise of a Promised storage; None if it has been kept."""
    found = _ptr.__get__(storage)
    return None if type(found) is int else found
