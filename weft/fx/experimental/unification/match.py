"""Functions that choose what to do by patterns of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core import reify, unify
from .utils import _toposort, freeze
from .variable import isvar


class Dispatcher:
    """Calls the function whose pattern is the most special one that fits the arguments."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.funcs: dict[Any, Callable] = {}
        self.ordering: list[Any] = []

    def add(self, signature: Any, func: Callable) -> None:
        self.funcs[freeze(signature)] = func
        self.ordering = ordering(self.funcs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        func, _ = self.resolve(args)
        return func(*args, **kwargs)

    def resolve(self, args: Any) -> tuple[Callable, Any]:
        """The function for these arguments, and the values of the variables in its pattern."""
        for signature in self.ordering:
            if len(signature) != len(args):
                continue
            values = unify(freeze(args), signature, {})
            if values is not False:
                return self.funcs[signature], values
        raise NotImplementedError(f"No match found. \nKnown matches: {self.ordering}\nInput: {args}")

    def register(self, *signature: Any) -> Callable:
        def decorate(func: Callable) -> Dispatcher:
            self.add(signature, func)
            return self

        return decorate


class VarDispatcher(Dispatcher):
    """A Dispatcher that passes the values of the variables by name, and nothing else."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        func, values = self.resolve(args)
        return func(**{key.token: value for key, value in values.items()})


global_namespace: dict[str, Any] = {}


def match(*signature: Any, **kwargs: Any) -> Callable:
    """Decorator: let a function be called for arguments of this pattern."""
    namespace = kwargs.get("namespace", global_namespace)
    dispatcher = kwargs.get("Dispatcher", Dispatcher)

    def decorate(func: Callable) -> Any:
        name = func.__name__
        if name not in namespace:
            namespace[name] = dispatcher(name)
        found = namespace[name]
        found.add(signature, func)
        return found

    return decorate


def supercedes(a: Any, b: Any) -> bool:
    """Whether pattern `a` is more special than `b`."""
    if isvar(b) and not isvar(a):
        return True
    values = unify(a, b, {})
    if values is False:
        return False
    values = {key: value for key, value in values.items() if not isvar(key) or not isvar(value)}
    return reify(a, values) == a and reify(b, values) != b if values else False


def edge(a: Any, b: Any, tie_breaker: Callable[[Any], Any] = hash) -> bool:
    """Whether `a` is to be tried before `b`."""
    if supercedes(a, b):
        return not supercedes(b, a) or tie_breaker(a) > tie_breaker(b)
    return False


def ordering(signatures: Any) -> list[Any]:
    """The patterns, the most special ones first."""
    signatures = list(map(tuple, signatures))
    edges: dict[Any, list[Any]] = {each: [] for each in signatures}
    for a in signatures:
        for b in signatures:
            if a is not b and edge(a, b):
                edges[a].append(b)
    return _toposort(edges)
