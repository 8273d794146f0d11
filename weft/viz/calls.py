"""`observed`: the calls of operations while a function runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

from ..core.dispatch import PLAIN, unwatch, watch
from ..core.promised import Promised
from ..core.tensor import Tensor
from ..engine.explain import Line, user_line
from ..families.custom_vjp import CustomVjp


class Call(NamedTuple):
    """A call of an operation that no other operation made, or that another operation made as a part of itself."""

    op: Any
    args: tuple[Any, ...]
    static: dict[str, Any]
    result: Any
    seconds: float
    line: Line | None  # of the program

    @property
    def inputs(self) -> list[Tensor]:
        return tensors_in(self.args)

    @property
    def results(self) -> list[Tensor]:
        return tensors_in(self.result)

    @property
    def is_deferred(self) -> bool:
        """Whether the results had no memory yet when the call ended."""
        return any(type(each._storage) is Promised for each in self.results)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors among nested tuples and lists."""
    if isinstance(value, Tensor):
        return [value]
    return [found for each in value for found in tensors_in(each)] if isinstance(value, (tuple, list)) else []


@contextlib.contextmanager
def observed(tell: Callable[[Call], None]) -> Iterator[None]:
    """Tell `tell` of each call in this thread after it has ended.

    Operations that only call others, such as functions with a derivative of their own, are left out. While somebody watches,
    calls take longer, and reductions read deferred results instead of computing them in their own kernel.
    """
    thread = threading.get_ident()
    open_calls: list[list[Any]] = []  # for each call the operations that it has called
    passing: Any = None

    def watcher(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
        nonlocal passing
        if threading.get_ident() != thread:
            return PLAIN
        if passing == (op, method):
            passing = None
            return PLAIN
        passing = op, method
        inner: list[Any] = []
        open_calls.append(inner)
        start = perf_counter()
        try:
            result = (op if method == "run" else getattr(op, method))(*args, **static)
        finally:
            passing = None
            open_calls.pop()
        if open_calls:
            open_calls[-1].append(op)
        if not (op in inner or inner and isinstance(op, CustomVjp)):
            tell(Call(op, args, static, result, perf_counter() - start, user_line()))
        return result

    watch(watcher, plain=True)
    try:
        yield
    finally:
        unwatch(watcher)
