"""Decorators of data pipes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic",
    "runtime_validation", "runtime_validation_disabled",
]  # fmt: skip


class functional_datapipe:  # noqa: N801 (PyTorch's name)
    """Decorator: the pipe class is also a method `name` of all pipes of its kind."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")


_determinism = False


class guaranteed_datapipes_determinism:  # noqa: N801 (PyTorch's name)
    """A context, or a call, that refuses pipes whose order is not fixed."""

    prev: bool

    def __init__(self) -> None:
        global _determinism
        self.prev = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:  # noqa: N801 (PyTorch's name)
    """Decorator of a pipe class whose order is not fixed; with a function, only where that says so.

    Raises: TypeError, when a pipe is made within `guaranteed_datapipes_determinism`.
    """

    def __init__(self, arg: Any) -> None:
        self.cls = arg if isinstance(arg, type) else None
        self.deterministic_wrapper_fn = None if isinstance(arg, type) else arg
        if self.cls is None and not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:  # a pipe is made
            if _determinism:
                raise TypeError(
                    f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can "
                    "turn off determinism for this DataPipe if that is acceptable for your application"
                )
            return self.cls(*args, **kwargs)
        (cls,) = args
        decide = self.deterministic_wrapper_fn

        def make(*arguments: Any, **options: Any) -> Any:
            if _determinism and decide(*arguments, **options):  # type: ignore[misc]
                raise TypeError(f"{cls.__name__} is non-deterministic with these arguments")
            return cls(*arguments, **options)

        return make


def argument_validation(f: Callable) -> Callable:
    """Decorator of a constructor. PyTorch checks types of pipes by annotations; weft does not, so `f` stays as it is."""
    return f


_validated = True


class runtime_validation_disabled:  # noqa: N801 (PyTorch's name)
    """A context in which `runtime_validation` checks nothing."""

    prev: bool

    def __init__(self) -> None:
        global _validated
        self.prev = _validated
        _validated = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        global _validated
        _validated = self.prev


def runtime_validation(f: Callable) -> Callable:
    """Decorator of `__iter__`. PyTorch checks the types of elements by annotations; weft does not."""

    @functools.wraps(f)
    def wrapped(self: Any) -> Any:
        yield from f(self)

    return wrapped
