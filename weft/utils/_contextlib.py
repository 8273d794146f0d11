"""`torch.utils._contextlib`: context managers that also decorate functions, generator functions among them."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from ..core.warn import user_level

FuncType = Callable[..., Any]
F = TypeVar("F", bound=FuncType)


def context_decorator(ctx: Any, func: Any) -> Any:
    """`func` within a context: `ctx` is the context manager, or makes one for each call.

    Of a generator function, each step runs within a context of its own. A class cannot be decorated.
    Raises: AssertionError if the manager is callable, too, so that it is not clear what is meant.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), making it ambiguous which "
            "interface to use.  If you intended to pass a context manager factory, rewrite your call as "
            "context_decorator(lambda: ctx()); if you intended to pass a context manager directly, rewrite your call as "
            "context_decorator(lambda: ctx)"
        )
    make = ctx if callable(ctx) else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have the "
            "context manager applied; additionally, decorating a class at definition-site will prevent use of the "
            "identifier as a conventional type.  To specify which methods to decorate, decorate each of them individually."
        )
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(make, func)

    @functools.wraps(func)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return decorate_context


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable) -> Callable:
    """A generator function each of whose steps runs within a context, which is off while the caller has the value."""

    @functools.wraps(func)
    def generator_context(*args: Any, **kwargs: Any) -> Generator:
        generator = func(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(next, generator)
        while True:
            try:
                with ctx_factory():
                    value = resume()
            except StopIteration as end:
                return end.value
            try:
                sent = yield value
            except GeneratorExit:
                with ctx_factory():
                    generator.close()
                raise
            except BaseException:
                resume = functools.partial(generator.throw, sys.exc_info()[1])
            else:
                resume = functools.partial(generator.send, sent)

    return generator_context


class _DecoratorContextManager:
    """A context manager that decorates functions; each call gets a `clone` of it."""

    def __call__(self, orig_func: F) -> F:
        if inspect.isclass(orig_func):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate the "
                "`__init__` method and nothing else.",
                FutureWarning,
                stacklevel=user_level(),
            )
            made = orig_func
            return cast(F, context_decorator(self.clone, lambda *args, **kwargs: made(*args, **kwargs)))
        return cast(F, context_decorator(self.clone, orig_func))

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another one with the same arguments: managers that have some define it."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that decorates without brackets, too: `@no_grad` as well as `@no_grad()`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
