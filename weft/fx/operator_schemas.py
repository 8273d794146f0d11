"""Arguments of calls in the form that the signature of the function gives them.

>>> import weft as torch
>>> x = torch.ones(2)
>>> sorted(normalize_function(torch.add, (x, 1), normalize_to_only_use_kwargs=True).kwargs)
['alpha', 'input', 'other']
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, Union

from ..compat.missing import module_getattr
from ..nn import Module
from ._compatibility import compatibility
from ._qualified_name import is_written_in_python, method_of_torch, public_name
from .node import Argument

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(
    target: Callable, args: tuple[Argument, ...], kwargs: dict[str, Argument]
) -> None:
    """Raise RuntimeError if the call writes into an argument: a function whose name ends with `_`, or with `out=`."""
    name = public_name(target)
    if name is None:
        return
    if (name.endswith("_") and not name.endswith("__")) or kwargs.get("out") is not None:
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so operations that mutate "
            "operands in-place (e.g. via `out` arguments) are not supported"
        )


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of a function of `torch`, in a list; None for functions of others.

    With `return_schemas` also the schemas of an operator of `torch.ops`, else None.
    """
    schema = getattr(op, "_schema", None)
    signatures: list[inspect.Signature] | None = None
    if public_name(op) is not None or method_of_torch(op) is not None or schema is not None:
        found = _signature(op)
        signatures = [found] if found is not None else None
    if return_schemas:
        return signatures, [schema] if schema is not None else None
    return signatures


def _signature(target: Callable) -> inspect.Signature | None:
    """The signature of a function; of an operator of `torch.ops`, what its schema says."""
    schema = getattr(target, "_schema", None)
    arguments = getattr(schema, "arguments", None)
    if arguments is not None:
        parameters = []
        for each in arguments:
            kind = (
                inspect.Parameter.KEYWORD_ONLY
                if getattr(each, "kwarg_only", False)
                else inspect.Parameter.POSITIONAL_OR_KEYWORD
            )
            has_default = each.has_default_value() if hasattr(each, "has_default_value") else False
            default = each.default_value if has_default else inspect.Parameter.empty
            name = "input" if each.name == "self" else each.name
            parameters.append(inspect.Parameter(name, kind, default=default))
        return inspect.Signature(parameters)
    try:
        return inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None


@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """The type of the elements of a list or tuple, as a hint; other things come back as they are.

    >>> create_type_hint([int, int]), create_type_hint((int, str))
    (typing.List[int], typing.Tuple[typing.Any, ...])
    """
    if not isinstance(x, (list, tuple)):
        return x
    is_list = isinstance(x, list)

    def make(kind: Any) -> Any:
        container: Any = typing.List if is_list else typing.Tuple  # noqa: UP006
        return container[kind] if is_list else container[kind, ...]

    if len(x) == 0:
        return make(Any)
    if not all(isinstance(each, type) for each in x):
        return x
    base = x[0]
    for each in x:
        if issubclass(each, base):
            continue
        if issubclass(base, each):
            base = each
        else:
            return make(Any)
    return make(base)


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type may be given for a parameter of the other."""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type or signature_type is Any:
        return True
    if origin is Union:
        contained = typing.get_args(signature_type)
        return any(type_matches(each, argument_type) for each in contained)
    if signature_type == list[int] and argument_type is int:
        return True
    if origin is list:
        (element,) = typing.get_args(signature_type)
        if typing.get_origin(argument_type) in (list, tuple):
            elements = [each for each in typing.get_args(argument_type) if each is not ...]
            return all(_is_subclass(each, element) for each in elements)
        return _is_subclass(argument_type, element) if isinstance(argument_type, type) else False
    if signature_type is float and argument_type is int:
        return True
    return _is_subclass(argument_type, signature_type)


def _is_subclass(kind: Any, base: Any) -> bool:
    return isinstance(kind, type) and isinstance(base, type) and issubclass(kind, base)


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a function of `torch`, with defaults, sorted by its signature; None if they do not fit.

    With `normalize_to_only_use_kwargs` all are keywords. The types are not needed: weft's functions have one signature.
    """
    if public_name(target) is None and getattr(target, "_schema", None) is None:
        return None
    signature = _signature(target)
    if signature is None:
        return None
    if not is_written_in_python(public_name(target) or "") and (kwargs or {}).get("out") is None:
        # PyTorch has schemas of their own for calls with out=.
        kept = [each for each in signature.parameters.values() if each.name != "out"]
        signature = signature.replace(parameters=kept)
    return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalize_function_or_error(*args: Any, **kwargs: Any) -> ArgsKwargsPair:
    result = normalize_function(*args, **kwargs)
    if result is None:
        raise RuntimeError(f"Failed to normalize the call of {args[0] if args else kwargs.get('target')}")
    return result


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a layer of `torch.nn`, sorted by the signature of its forward; None for other modules."""
    try:
        submodule = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    import weft

    if getattr(weft.nn, type(submodule).__name__, None) is not type(submodule):
        return None
    signature = inspect.signature(inspect.unwrap(submodule.forward))
    return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _args_kwargs_to_normalized_args_kwargs(
    sig: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    normalize_to_only_use_kwargs: bool,
) -> ArgsKwargsPair | None:
    """The arguments bound to a signature, with defaults; None if they do not fit or the signature takes any number."""
    supported = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [each for each in sig.parameters.values() if each.name != "from" or each.kind in supported]
    if any(each.kind not in supported for each in parameters):
        return None
    try:
        bound = sig.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, (name, value) in enumerate(bound.arguments.items()):
        if not normalize_to_only_use_kwargs and place < len(args):
            positional.append(value)
        else:
            named[name] = value
    return ArgsKwargsPair(tuple(positional), named)


__getattr__ = module_getattr(__name__)
