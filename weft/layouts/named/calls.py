"""A call with named tensors: names of dims become their numbers, the function runs on plain tensors, its results get names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...core.overrides import public_function
from ...core.tensor import Tensor
from .propagation import check_operands, kind_of, propagated, takes_dims
from .rules import NAMED
from .tensors import Names, dim_of, names_of, plain, take

# Parameters that take dims.
_DIMS = frozenset(
    "dim dims dim0 dim1 dim2 axis axis0 axis1 start_dim end_dim source destination dimension".split()
)


def run(name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    first = next((each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)), None)
    names = _first_names(args, kwargs)
    if first is not None and any(names_of(first)):
        names = names_of(first)
    args, kwargs = _numbered(name, function, args, kwargs, names)
    check_operands(name, args, kwargs)
    plain_args = tuple(map(_plain, args))
    result = function(*plain_args, **{key: _plain(value) for key, value in kwargs.items()})
    out = kwargs.get("out")
    if isinstance(out, Tensor):
        found = propagated(name, args, kwargs, result)
        return take(out, result, names_of(found))
    if _writes(name, args, result, plain_args):
        if kind_of(name) is None and result.shape == args[0].shape:
            return take(args[0], plain_args[0], names_of(args[0]))
        found = propagated(name, args, kwargs, result)
        return take(args[0], plain_args[0], names_of(found))
    return propagated(name, args, kwargs, result)


NAMED.run = run


def _writes(name: str, args: tuple, result: Any, plain_args: tuple) -> bool:
    """Whether the call is an in-place form: it returned its first argument."""
    return name.endswith("_") and bool(args) and isinstance(args[0], Tensor) and result is plain_args[0]


def _first_names(args: tuple, kwargs: dict[str, Any]) -> Names:
    for each in (*args, *kwargs.values()):
        for item in each if isinstance(each, (tuple, list)) else (each,):
            if isinstance(item, Tensor) and any(names_of(item)):
                return names_of(item)
    return ()


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return plain(value)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return value


@functools.lru_cache(4096)
def _parameters(function: Callable) -> tuple[tuple[str, bool], ...]:
    """The names of the positional parameters, and whether each stands for all further arguments."""
    try:
        parameters = inspect.signature(public_function(function)).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple((each.name, each.kind is each.VAR_POSITIONAL) for each in parameters)


def _numbered(
    name: str, function: Callable, args: tuple, kwargs: dict[str, Any], names: Names
) -> tuple[tuple, dict[str, Any]]:
    """The arguments with the numbers of dims in place of their names."""
    found = list(args)
    parameters = _parameters(function)
    for place, value in enumerate(args):
        parameter, rest = parameters[min(place, len(parameters) - 1)] if parameters else ("args", True)
        if parameter in _DIMS or place and rest and (takes_dims(name) or _are_in(value, names)):
            found[place] = _number(value, names, name)
    named = {key: _number(value, names, name) if key in _DIMS else value for key, value in kwargs.items()}
    return tuple(found), named


def _are_in(value: Any, names: Names) -> bool:
    values = value if isinstance(value, (tuple, list)) else (value,)
    return bool(values) and all(isinstance(each, str) and each in names for each in values)


def _number(value: Any, names: Names, function: str) -> Any:
    if isinstance(value, str):
        return dim_of(value, names, function)
    if type(value) in (tuple, list) and value and all(isinstance(each, str) for each in value):
        return type(value)(dim_of(each, names, function) for each in value)
    return value
