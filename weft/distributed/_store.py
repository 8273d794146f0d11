"""Stores: small tables of bytes that the processes of a group share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ._errors import DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = timedelta(seconds=300)  # PyTorch's default for stores


def encoded(value: str | bytes) -> bytes:
    """The bytes of a value that a store is given."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a store takes str or bytes, not {type(value).__name__}: {value!r}")


class Store:
    """A table from str to bytes. Subclasses define at least `get`, `set`, `add`, `compare_set` and `delete_key`."""

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    def _absent(self, name: str) -> RuntimeError:
        return RuntimeError(f'Tried to call pure virtual function "{type(self).__name__}::{name}"')

    def set(self, key: str, value: str | bytes) -> None:
        raise self._absent("set")

    def get(self, key: str) -> bytes:
        raise self._absent("get")

    def add(self, key: str, amount: int) -> int:
        raise self._absent("add")

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        raise self._absent("compare_set")

    def delete_key(self, key: str) -> bool:
        raise self._absent("delete_key")

    def check(self, keys: Sequence[str]) -> bool:
        raise self._absent("check")

    def num_keys(self) -> int:
        raise self._absent("num_keys")

    def list_keys(self) -> list[str]:
        raise self._absent("list_keys")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return as soon as all keys are there. Raises: DistStoreError after the timeout."""
        wait_until(lambda: self.check(keys), timeout or self.timeout)

    def append(self, key: str, value: str | bytes) -> None:
        """Add `value` to the end of the value of `key`."""
        before = self.get(key) if self.check([key]) else b""
        self.set(key, before + encoded(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        raise NotImplementedError("queue support is not implemented.")

    def barrier(self, key: str, world_size: int, timeout: timedelta) -> None:
        """Return as soon as `world_size` callers have come to the barrier `key`."""
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(f"{key}/last_member", "1")
        self.wait([f"{key}/last_member"], timeout)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are one step each."""
        return False

    def clone(self) -> Store:
        """A store with the same contents that another thread may use."""
        return self

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout


def wait_until(condition: Callable[[], bool], timeout: timedelta, failure: str = "Wait timeout") -> None:
    """Return as soon as `condition()` is true, asking again and again. Raises: DistStoreError after `timeout`."""
    end = time.monotonic() + timeout.total_seconds()
    while not condition():
        if time.monotonic() > end:
            raise DistStoreError(failure)
        time.sleep(0.005)  # seconds; other processes answer within milliseconds


class HashStore(Store):
    """A store in the memory of this process; threads may share it.

    >>> from weft.distributed import HashStore
    >>> store = HashStore()
    >>> store.set("epoch", "3")
    >>> store.get("epoch"), store.add("steps", 5), store.num_keys()
    (b'3', 5, 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, list[bytes]] = {}
        self._changed = threading.Condition()

    def _await(self, condition: Callable[[], Any], timeout: timedelta | None = None) -> None:
        """Wait for a change that makes the condition true; the caller holds the lock."""
        if not self._changed.wait_for(condition, (timeout or self._timeout).total_seconds()):
            raise DistStoreError("Wait timeout")

    def set(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._values[key] = encoded(value)
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        with self._changed:
            self._await(lambda: key in self._values)
            return self._values[key]

    def add(self, key: str, amount: int) -> int:
        with self._changed:
            total = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        with self._changed:
            if self._values.get(key, b"") != encoded(expected):
                return self._values.get(key, encoded(expected))
            self._values[key] = encoded(desired)
            self._changed.notify_all()
            return self._values[key]

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._values.pop(key, None) is not None

    def check(self, keys: Sequence[str]) -> bool:
        with self._changed:
            return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        with self._changed:
            self._await(lambda: all(key in self._values for key in keys), timeout)

    def append(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._values[key] = self._values.get(key, b"") + encoded(value)
            self._changed.notify_all()

    def num_keys(self) -> int:
        with self._changed:
            return len(self._values)

    def list_keys(self) -> list[str]:
        with self._changed:
            return list(self._values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._queues.setdefault(key, []).append(encoded(value))
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        with self._changed:
            if block:
                self._await(lambda: self._queues.get(key))
            elif not self._queues.get(key):
                raise QueueEmptyError("queue is empty")
            return self._queues[key].pop(0)

    def queue_len(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(key, ()))

    def has_extended_api(self) -> bool:
        return True


class PrefixStore(Store):
    """Another store with a prefix in front of every key, so that two users do not meet.

    >>> from weft.distributed import HashStore, PrefixStore
    >>> store = HashStore()
    >>> PrefixStore("model", store).set("epoch", "3")
    >>> store.list_keys()
    ['model/epoch']
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix = f"{prefix}/"
        self._store = store

    @property
    def underlying_store(self) -> Store:
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    def _with_prefix(self, keys: Sequence[str]) -> list[str]:
        return [self._prefix + key for key in keys]

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._prefix + key, value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._prefix + key)

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._prefix + key, amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self._store.compare_set(self._prefix + key, expected, desired)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._prefix + key)

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check(self._with_prefix(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._store.wait(self._with_prefix(keys), timeout or self.timeout)

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._prefix + key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get(self._with_prefix(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._store.multi_set(self._with_prefix(keys), values)

    def num_keys(self) -> int:
        """The number of keys of the store behind the prefix, as in PyTorch."""
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = len(self._prefix)
        return [key[start:] for key in self._store.list_keys() if key.startswith(self._prefix)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._prefix + key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._prefix + key, block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._prefix + key)

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def clone(self) -> Store:
        return PrefixStore(self._prefix[:-1], self._store.clone())

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)


HashStore.__module__ = __name__.rpartition(".")[0]  # where it is public
