"""Type checks for the arguments of public functions, generated from the annotations of their parameters.

A float in place of an int must raise an error before a plan is looked up, because 2.0 == 2 would find the plan for 2, and an
address computed from a float is not an address. So `public` wraps every function with such annotations. The wrapper is
generated for the signature and compares types; this costs 40 ns per call. Functions that take less than 2 us per call check
their arguments themselves and pass `checks=False` to `public`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any

from .arguments import boolean, integer, integers, number, scalar, text, wrong_type
from .dtype import PYTHON_DTYPES, DType
from .tensor import Tensor


def check_tensor(value: Any, function: str, argument: str = "input", position: int = 1) -> None:
    """Raises: TypeError if `value` is not a tensor."""
    tensor(value, function, argument, position)


def tensor(value: Any, function: str, argument: str, position: int = 0) -> Tensor:
    """`value`, if it is a tensor.

    Raises: TypeError for everything else.
    """
    if isinstance(value, Tensor):
        return value
    raise wrong_type(value, function, argument, "Tensor", position)


def tensors(values: Any, function: str, argument: str, position: int = 0) -> Any:
    """`values`, if it is a tuple or list of tensors.

    Raises: TypeError for everything else.
    """
    if not isinstance(values, (tuple, list)):
        raise wrong_type(values, function, argument, "tuple of Tensors", position)
    for place, each in enumerate(values):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(each).__name__}"
            )
    return values


def sizes(values: Any, function: str, argument: str, position: int = 0) -> tuple[int, ...]:
    """The ints of a tuple or list.

    Raises: TypeError for everything else.
    """
    if not isinstance(values, (tuple, list)):
        raise wrong_type(values, function, argument, "tuple of ints", position)
    return integers((values,), function, argument)


def dtype(value: Any, function: str, argument: str, position: int = 0) -> DType:
    """`value` as a dtype. Accepts dtypes and the Python types float, int, bool and complex.

    Raises: TypeError for everything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in PYTHON_DTYPES:
        return PYTHON_DTYPES[value]
    raise wrong_type(value, function, argument, "torch.dtype", position)


# Annotation -> a condition on the argument as Python code, and the function to call if the condition is true.
_KINDS: dict[str, tuple[str, Callable]] = {
    "int": ("type({0}) is not int", integer),
    "bool": ("{0} is not False and {0} is not True", boolean),
    "float": ("type({0}) is not float", number),
    "complex": ("type({0}) is not float", scalar),
    "str": ("type({0}) is not str", text),
    "Tensor": ("type({0}) is not Tensor", tensor),
    "DType": ("type({0}) is not DType", dtype),
    "Sequence[Tensor]": ("True", tensors),
    "Sequence[int]": ("True", sizes),
}
_KINDS |= {
    f"{kind} | None": (f"{{0}} is not None and ({condition})", look)
    for kind, (condition, look) in _KINDS.items()
}
_LOOKS = {kind: look for kind, (_, look) in _KINDS.items()}
# A function whose only checked parameters are tensors needs no wrapper, because `check_tensors` runs after a failed call.
_STATIC = _LOOKS.keys() - {"Tensor", "Tensor | None"}


def checked(function: Callable, name: str, tensors_alone: bool = False) -> Callable:
    """A wrapper of `function` that checks the types of its arguments against the annotations.

    Returns `function` itself if only its tensors would be checked, unless `tensors_alone`.
    """
    code, annotations = function.__code__, function.__annotations__
    count = code.co_argcount + code.co_kwonlyargcount
    stars = code.co_varnames[
        count : count + bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    ]
    parameters = code.co_varnames[:count]
    kinds = tuple([annotations.get(each, "") for each in parameters])
    if name.startswith("nn.functional."):  # these functions raise ValueError for unknown strings
        kinds = tuple(["" if kind.startswith("str") else kind for kind in kinds])
    if (_LOOKS.keys() if tensors_alone else _STATIC).isdisjoint(kinds):
        return function
    layout = (code.co_posonlyargcount, code.co_argcount, bool(code.co_flags & CO_VARARGS))
    made: dict[str, Any] = {"__name__": __name__}  # `user_level` needs it, because it skips frames of weft
    exec(_written(parameters, kinds, stars, layout), made)
    complete = made["make"](function, name, _LOOKS, Tensor, DType)
    complete.__defaults__, complete.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return functools.update_wrapper(complete, function)


@functools.cache
def _written(
    parameters: tuple[str, ...], kinds: tuple[str, ...], stars: tuple[str, ...], layout: tuple[int, int, bool]
) -> Any:
    """The compiled code of a wrapper for functions with these parameters and annotations (`kinds`).

    Functions with equal parameters share the code, because compiling it takes 0.1 ms.
    """
    positional_only, positional, has_rest = layout
    heads = list(parameters[:positional])
    if positional_only:
        heads.insert(positional_only, "/")
    rest, options = (f"*{stars[0]}", stars[1:]) if has_rest else ("*", stars)
    named = parameters[positional:]
    if has_rest or named:
        heads.append(rest)
    heads += [*named, *(f"**{each}" for each in options)]
    calls = [*parameters[:positional], *([rest] if has_rest else ()), *(f"{each}={each}" for each in named)]
    calls += [f"**{each}" for each in options]
    lines = []
    for position, (each, kind) in enumerate(zip(parameters, kinds, strict=True), 1):
        if kind in _KINDS:
            place = position if position <= positional else 0
            look = f"looks[{kind!r}]({each}, name, {each!r}, {place})"
            lines.append(f"if {_KINDS[kind][0].format(each)}: {each} = {look}")
    body = "\n  ".join([*lines, f"return function({', '.join(calls)})"])
    source = f"def make(function, name, looks, Tensor, DType):\n def complete({', '.join(heads)}):\n  {body}\n return complete"
    return compile(source, "<checked arguments>", "exec")


def check_tensors(function: Callable, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises: TypeError if an argument for a parameter that is annotated as Tensor is not a tensor.

    It is called after a call has raised AttributeError, so that successful calls do not pay for the check.
    """
    parameters = inspect.signature(function).parameters
    given = {**dict(zip(parameters, args, strict=False)), **kwargs}
    for position, (argument, parameter) in enumerate(parameters.items(), 1):
        if argument in given and parameter.annotation in ("Tensor", "Tensor | None"):
            value = given[argument]
            if not isinstance(value, Tensor) and (value is not None or parameter.annotation == "Tensor"):
                place = position if position <= len(args) else 0
                raise wrong_type(value, name, argument, "Tensor", place) from None
