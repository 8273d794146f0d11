"""Methods that profiles show as ranges. Importing this file loads nothing else, so that optimizers and loaders can do it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class _Profiling:
    on = False  # whether a profile is open


profiling = _Profiling()


def as_range(name: Callable[[Any], str]) -> Callable[[Callable], Callable]:
    """Decorator for a method that profiles show as a range called `name(self)`. While no profile is open, it costs one test."""

    def decorate(method: Callable) -> Callable:
        @functools.wraps(method)
        def ranged(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not profiling.on:
                return method(self, *args, **kwargs)
            from .profiler import record_function  # loaded already, because a profile is open

            with record_function(name(self)):
                return method(self, *args, **kwargs)

        return ranged

    return decorate
