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
from types import CodeType
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
    kinds = _kinds(function, name)
    if (_LOOKS.keys() if tensors_alone else _STATIC).isdisjoint(kinds):
        return function
    wrapper = _unwritten(function, name)
    functools.update_wrapper(wrapper, function)
    wrapper.__defaults__, wrapper.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return wrapper


def _unwritten(_function: Callable, _name: str) -> Any:
    """A wrapper whose code is written when it is called first, because a program calls few of the functions.

    Compiling the code of all of them would take a fifth of the time of the import.
    """

    def _wrapper(*args: Any, **kwargs: Any) -> Any:
        _wrapper.__code__ = _written(*_signature(_function), _kinds(_function, _name))
        return _wrapper(*args, **kwargs)

    return _wrapper


def write_checks(wrapper: Any) -> None:
    """Write the code of a function that `checked` made, if it is not written yet, so that a caller may keep or exchange it."""
    code = wrapper.__code__
    if code.co_name == "_wrapper" and code.co_filename == __file__:
        cells = dict(zip(code.co_freevars, wrapper.__closure__, strict=True))
        function, name = cells["_function"].cell_contents, cells["_name"].cell_contents
        wrapper.__code__ = _written(*_signature(function), _kinds(function, name))


def _kinds(function: Callable, name: str) -> tuple[str, ...]:
    """The annotation of each parameter of `function`, "" for parameters that are not checked."""
    code, annotations = function.__code__, function.__annotations__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = tuple([annotations.get(parameter, "") for parameter in parameters])
    if name.startswith("nn.functional."):  # these functions raise ValueError for unknown strings
        kinds = tuple(["" if kind.startswith("str") else kind for kind in kinds])
    return kinds


def _signature(function: Callable) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, int, bool]]:
    """The names of the parameters, those with stars, and (how many are positional only, how many positional, if there is *args)."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    has_rest = bool(code.co_flags & CO_VARARGS)
    stars = code.co_varnames[count : count + has_rest + bool(code.co_flags & CO_VARKEYWORDS)]
    return code.co_varnames[:count], stars, (code.co_posonlyargcount, code.co_argcount, has_rest)


@functools.cache
def _written(
    parameters: tuple[str, ...], stars: tuple[str, ...], layout: tuple[int, int, bool], kinds: tuple[str, ...]
) -> CodeType:
    """The code of a wrapper for functions with these parameters and annotations (`kinds`).

    Functions with equal parameters share the code, because compiling it takes 0.1 ms. The code has the free variables of
    `_wrapper`, because only such code can take the place of its code.
    """
    positional_only, positional, has_rest = layout
    heads = list(parameters[:positional])
    if positional_only:
        heads.insert(positional_only, "/")
    rest, options = (f"*{stars[0]}", stars[1:]) if has_rest else ("*", stars)
    named = parameters[positional:]
    if has_rest or named:
        heads.append(rest)
    heads += [*named, *(f"**{option}" for option in options)]
    calls = [
        *parameters[:positional],
        *([rest] if has_rest else ()),
        *(f"{parameter}={parameter}" for parameter in named),
    ]
    calls += [f"**{option}" for option in options]
    lines = []
    for position, (parameter, kind) in enumerate(zip(parameters, kinds, strict=True), 1):
        if kind in _KINDS:
            place = position if position <= positional else 0
            look = f"_LOOKS[{kind!r}]({parameter}, _name, {parameter!r}, {place})"
            lines.append(f"if {_KINDS[kind][0].format(parameter)}: {parameter} = {look}")
    lines += [f"return _function({', '.join(calls)})", "_name, _wrapper"]  # the last line never runs
    body = "\n  ".join(lines)
    source = (
        f"def make(_function, _name, _wrapper):\n def wrapper({', '.join(heads)}):\n  {body}\n return wrapper"
    )
    namespace: dict[str, Any] = {}
    exec(compile(source, "<weft checked arguments>", "exec"), namespace)
    return namespace["make"](None, None, None).__code__


def check_tensors(function: Callable, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises: TypeError if an argument for a parameter that is annotated as Tensor is not a tensor.

    It is called after a call has raised AttributeError, so that successful calls do not pay for the check.
    """
    parameters = inspect.signature(function).parameters
    arguments = {**dict(zip(parameters, args, strict=False)), **kwargs}
    for position, (argument, parameter) in enumerate(parameters.items(), 1):
        if argument in arguments and parameter.annotation in ("Tensor", "Tensor | None"):
            value = arguments[argument]
            if not isinstance(value, Tensor) and (value is not None or parameter.annotation == "Tensor"):
                place = position if position <= len(args) else 0
                raise wrong_type(value, name, argument, "Tensor", place) from None
