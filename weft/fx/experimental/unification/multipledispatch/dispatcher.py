"""The function with several implementations."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from warnings import warn

from .....core.warn import user_level
from .conflict import AmbiguityWarning, ambiguities, ordering, super_signature
from .utils import expand_tuples
from .variadic import Variadic, isvariadic

__all__ = [
    "Dispatcher", "MDNotImplementedError", "MethodDispatcher", "ambiguity_warn", "halt_ordering",
    "restart_ordering", "source", "str_signature", "variadic_signature_matches",
    "variadic_signature_matches_iter", "warning_text",
]  # fmt: skip


class MDNotImplementedError(NotImplementedError):
    """Raised by an implementation to pass the call on to the next one that fits."""


def ambiguity_warn(dispatcher: Dispatcher, ambiguities: Any) -> None:
    """Warn of signatures none of which is the most special one."""
    warn(warning_text(dispatcher.name, ambiguities), AmbiguityWarning, stacklevel=user_level())


def halt_ordering() -> None:
    """Of old, signatures were sorted when they were added. They are sorted when they are needed, so this does nothing."""


def restart_ordering(on_ambiguity: Callable = ambiguity_warn) -> None:
    """As `halt_ordering`: does nothing."""


def variadic_signature_matches_iter(types: Any, full_signature: Any) -> Iterator[bool]:
    """For each type, whether it fits the signature, whose last type may be Variadic."""
    expected = iter(full_signature)
    current = next(expected)
    for kind in types:
        yield issubclass(kind, current)
        if not isvariadic(current):
            try:
                current = next(expected)
            except StopIteration:
                yield False
                return
    try:
        last = next(expected)
    except StopIteration:
        yield isvariadic(current)
    else:
        yield isvariadic(last)


def variadic_signature_matches(types: Any, full_signature: Any) -> bool:
    """Whether types fit a signature whose last type may be Variadic."""
    if not full_signature:
        raise AssertionError("full_signature must not be empty")
    fixed = full_signature[:-1] if isvariadic(full_signature[-1]) else full_signature
    if len(types) < len(fixed) or (len(types) > len(fixed) and fixed is full_signature):
        return False
    return all(
        issubclass(kind, full_signature[min(place, len(full_signature) - 1)])
        for place, kind in enumerate(types)
    )


class Dispatcher:
    """A function with several implementations, chosen by the types of its arguments.

    >>> add = Dispatcher("add")
    >>> add.add((int, int), lambda x, y: x + y)
    >>> add(1, 2)
    3
    """

    __slots__ = ("__name__", "name", "funcs", "_ordering", "_cache", "doc")

    def __init__(self, name: str, doc: str | None = None) -> None:
        self.name = self.__name__ = name
        self.funcs: dict[tuple, Callable] = {}
        self.doc = doc
        self._cache: dict[tuple, Callable] = {}
        self._ordering: list[tuple] | None = None

    def register(self, *types: Any, **kwargs: Any) -> Callable:
        """Decorator: use the function for these types."""

        def decorate(func: Callable) -> Callable:
            self.add(types, func, **kwargs)
            return func

        return decorate

    @classmethod
    def get_func_params(cls, func: Callable) -> Any:
        return inspect.signature(func).parameters.values()

    @classmethod
    def get_func_annotations(cls, func: Callable) -> tuple | None:
        """The annotations of the positional parameters, if all have one."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        found = tuple(each.annotation for each in cls.get_func_params(func) if each.kind in kinds)
        return None if any(each is inspect.Parameter.empty for each in found) else found

    def add(self, signature: Any, func: Callable) -> None:
        """Use `func` for arguments of these types; without types, for those that it is annotated with."""
        if not signature and (annotations := self.get_func_annotations(func)):
            signature = annotations
        if any(isinstance(kind, tuple) for kind in signature):
            for each in expand_tuples(signature):
                self.add(each, func)
            return
        new: list[Any] = []
        for place, kind in enumerate(signature, 1):
            if isinstance(kind, list):  # [int]: any number of ints
                if place != len(signature) or len(kind) != 1:
                    raise TypeError(
                        "Variadic signature must be the last element, and contain exactly one element"
                    )
                kind = Variadic[kind[0]]
            if not isinstance(kind, type):
                raise TypeError(
                    f"Tried to dispatch on non-type: {kind}\nIn signature: <{', '.join(map(str, signature))}>\n"
                    f"In function: {self.name}"
                )
            new.append(kind)
        self.funcs[tuple(new)] = func
        self._cache.clear()
        self._ordering = None

    @property
    def ordering(self) -> list[tuple]:
        """The signatures, the most special ones first."""
        return self._ordering if self._ordering is not None else self.reorder()

    def reorder(self, on_ambiguity: Callable = ambiguity_warn) -> list[tuple]:
        """Sort the signatures."""
        self._ordering = found = ordering(self.funcs)
        if unclear := ambiguities(self.funcs):
            on_ambiguity(self, unclear)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        types = tuple(map(type, args))
        func = self._cache.get(types)
        if func is None:
            func = self.dispatch(*types)
            if func is None:
                raise NotImplementedError(
                    f"Could not find signature for {self.name}: <{str_signature(types)}>"
                )
            self._cache[types] = func
        try:
            return func(*args, **kwargs)
        except MDNotImplementedError:
            for other in itertools.islice(self.dispatch_iter(*types), 1, None):
                try:
                    return other(*args, **kwargs)
                except MDNotImplementedError:
                    continue
            raise NotImplementedError(
                f"Matching functions for {self.name}: <{str_signature(types)}> found, but none completed successfully"
            ) from None

    def __str__(self) -> str:
        return f"<dispatched {self.name}>"

    __repr__ = __str__

    def dispatch(self, *types: Any) -> Callable | None:
        """The function for these types; None if there is none."""
        if types in self.funcs:
            return self.funcs[types]
        return next(self.dispatch_iter(*types), None)

    def dispatch_iter(self, *types: Any) -> Iterator[Callable]:
        """The functions that fit these types, the most special one first."""
        for signature in self.ordering:
            if (len(signature) == len(types) and all(map(issubclass, types, signature))) or (
                signature and isvariadic(signature[-1]) and variadic_signature_matches(types, signature)
            ):
                yield self.funcs[signature]

    def resolve(self, types: Any) -> Callable | None:
        """The old name of `dispatch`."""
        warn("resolve() is deprecated, use dispatch(*types)", DeprecationWarning, stacklevel=user_level())
        return self.dispatch(*types)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "funcs": self.funcs}

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.name = self.__name__ = d["name"]
        self.funcs = d["funcs"]
        self._ordering, self._cache, self.doc = None, {}, None

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        parts = [f"Multiply dispatched method: {self.name}"] + ([self.doc] if self.doc else [])
        for signature in self.ordering[::-1]:
            if text := self.funcs[signature].__doc__:
                parts.append(f"Inputs: <{str_signature(signature)}>\n{text.strip()}")
        return "\n\n".join(parts)

    def _help(self, *args: Any) -> str | None:
        found = self.dispatch(*map(type, args))
        return found.__doc__ if found is not None else None

    def help(self, *args: Any, **kwargs: Any) -> None:
        """Print the documentation of the function for these arguments."""
        print(self._help(*args))

    def _source(self, *args: Any) -> str:
        func = self.dispatch(*map(type, args))
        if not func:
            raise TypeError("No function found")
        return source(func)

    def source(self, *args: Any, **kwargs: Any) -> None:
        """Print the source of the function for these arguments."""
        print(self._source(*args))


def source(func: Callable) -> str:
    """The source of a function, with its file."""
    return f"File: {inspect.getsourcefile(func)}\n\n{inspect.getsource(func)}"


class MethodDispatcher(Dispatcher):
    """A method with several implementations."""

    __slots__ = ("obj", "cls")

    @classmethod
    def get_func_params(cls, func: Callable) -> Any:
        return itertools.islice(super().get_func_params(func), 1, None)

    def __get__(self, instance: Any, owner: Any) -> MethodDispatcher:
        self.obj, self.cls = instance, owner
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        types = tuple(map(type, args))
        func = self.dispatch(*types)
        if not func:
            raise NotImplementedError(f"Could not find signature for {self.name}: <{str_signature(types)}>")
        return func(self.obj, *args, **kwargs)


def str_signature(sig: Any) -> str:
    """The names of the types.

    >>> str_signature((int, float))
    'int, float'
    """
    return ", ".join(each.__name__ for each in sig)


def warning_text(name: str, amb: Any) -> str:
    """The warning of ambiguous signatures."""
    pairs = "\n".join(f"\t[{str_signature(each)}]" for pair in amb for each in pair)
    settling = "\n\n".join(
        f"@dispatch({str_signature(super_signature(pair))})\ndef {name}(...)" for pair in amb
    )
    return (
        f"\nAmbiguities exist in dispatched function {name}\n\nThe following signatures may result in ambiguous behavior:\n"
        f"{pairs}\n\nConsider making the following additions:\n\n{settling}"
    )
