"""Who is told of collectives. Each function that PyTorch has as an operator of `torch.ops` reports its calls by the operator's name.

Collectives that an operator calls itself are a part of it and are not reported. Observers belong to the thread that added them, as modes of PyTorch do.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Observer = Callable[[str], None]  # gets `namespace::name`
Function = TypeVar("Function", bound=Callable[..., Any])


class _OfThread(threading.local):
    observers: tuple[Observer, ...] = ()


of_thread = _OfThread()


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Tell `observer` of each operator that this thread calls within the context, after the call."""
    outer = of_thread.observers
    of_thread.observers = (*outer, observer)
    try:
        yield
    finally:
        of_thread.observers = outer


def operator(name: str) -> Callable[[Function], Function]:
    """A decorator for the function that is the operator `namespace::name`."""

    def reporting(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            observers = of_thread.observers
            if not observers:
                return function(*args, **kwargs)
            of_thread.observers = ()
            try:
                result = function(*args, **kwargs)
            finally:
                of_thread.observers = observers
            for each in observers:
                each(name)
            return result

        return call  # type: ignore[return-value]

    return reporting
