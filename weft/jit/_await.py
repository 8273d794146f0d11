"""Calls that wait until their result is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

W = TypeVar("W")


class _Await(Generic[W]):
    """A call that happens when `_awaitable_wait` asks for its result, once."""

    def __init__(self, func: Callable[..., W], args: tuple, kwargs: dict[str, Any]):
        self._call: Any = (func, args, kwargs)
        self._value: Any = None

    def wait(self) -> W:
        """The result."""
        if self._call is not None:
            func, args, kwargs = self._call
            self._value, self._call = func(*args, **kwargs), None
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wait(), name)


def _awaitable(func: Callable, *args: Any, **kwargs: Any) -> _Await:
    return _Await(func, args, kwargs)


def _awaitable_wait(aw: _Await) -> Any:
    return aw.wait()


def _awaitable_nowait(o: Any) -> _Await:
    return _Await(lambda: o, (), {})
