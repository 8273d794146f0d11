"""Arguments of calls in the form that the signature of the function gives them.

The functions of `torch` that PyTorch has in C have a signature for each schema of their operator. Other functions have
their own signature.

>>> import weft as torch
>>> x = torch.ones(2)
>>> normalize_function(torch.softmax, (x, 0), {}, (torch.Tensor, int), normalize_to_only_use_kwargs=True).kwargs
{'input': tensor([1., 1.]), 'dim': 0, 'dtype': None}
"""

from __future__ import annotations

import enum
import functools
import inspect
import numbers
import types
import typing
import warnings
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import weft

from ..core.warn import user_level
from ..library import builtins as _builtins
from ..library.namespaces import OpOverload, OpOverloadPacket
from ..library.qualified_name import is_written_in_python, public_name
from ..library.schema import FunctionSchema
from ..library.types import Type
from ..nn import Module
from ._compatibility import compatibility
from .node import Argument

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
    "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(
    target: Callable, args: tuple[Argument, ...], kwargs: dict[str, Argument]
) -> None:
    """Raise RuntimeError if the call writes into an argument, as the one schema that it fits says.

    Of a call that fits several schemas or none nothing is known.
    """
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    fitting = [
        schema
        for each, schema in zip(signatures or (), schemas or ())
        if _bound(each, args, kwargs) is not None
    ]
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports functional code, so operations that mutate "
            "operands in-place (e.g. via `out` arguments) are not supported"
        )


# ---- Signatures ----------------------------------------------------------------------------------------------------------


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of the operator that `op` calls, one for each overload; None for functions that are no operators.

    With `return_schemas` also the schemas, in the same order.

    >>> import weft as torch
    >>> [list(each.parameters) for each in get_signature_for_torch_op(torch.relu)]
    [['input'], ['input', 'out']]
    >>> get_signature_for_torch_op(torch.nn.functional.relu) is None
    True
    """
    # Its schemas do not have as_tuple, so PyTorch states signatures, and gives them only here.
    if op is weft.nonzero:
        return (_nonzero_signatures(), None) if return_schemas else None
    schemas = _schemas_of(op)
    signatures = None if schemas is None else [_torchscript_schema_to_signature(each) for each in schemas]
    return (signatures, schemas) if return_schemas else signatures


def _schemas_of(op: Any) -> list[FunctionSchema] | None:
    if isinstance(op, OpOverload):
        return [op._schema]
    name = op._qualified_op_name if isinstance(op, OpOverloadPacket) else _builtins._find_builtin(op)
    return None if name is None else weft._C._jit_get_schemas_for_operator(name)


def _nonzero_signatures() -> list[Signature]:
    tensor = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD, annotation=weft.Tensor)
    as_tuple = Parameter("as_tuple", Parameter.KEYWORD_ONLY, annotation=bool)
    return [Signature(each, return_annotation=None) for each in ([tensor], [tensor, as_tuple])]


@functools.lru_cache(maxsize=4096)
def _torchscript_schema_to_signature(ts_schema: FunctionSchema) -> Signature:
    """The signature of functions with this schema."""
    names = ["input" if each.name == "self" else each.name for each in ts_schema.arguments]
    # `from` is a keyword of Python, so it and the arguments before it are given by position.
    by_position = names.index("from") + 1 if "from" in names else 0
    parameters = [
        Parameter(
            name,
            Parameter.POSITIONAL_ONLY
            if place < by_position
            else Parameter.KEYWORD_ONLY
            if each.kwarg_only
            else Parameter.POSITIONAL_OR_KEYWORD,
            default=each.default_value if each.has_default_value() else Parameter.empty,
            annotation=_torchscript_type_to_python_type(each.type),
        )
        for place, (name, each) in enumerate(zip(names, ts_schema.arguments))
    ]
    results = tuple(_torchscript_type_to_python_type(each.type) for each in ts_schema.returns)
    return Signature(
        parameters, return_annotation=results if len(results) > 1 else results[0] if results else None
    )


def _torchscript_type_to_python_type(ts_type: Type) -> Any:
    """The type of a schema's argument as an annotation: `List[int]`, `Optional[Tensor]`."""
    return eval(ts_type.annotation_str, _type_names())


@functools.cache
def _type_names() -> dict[str, Any]:
    """What the names in `Type.annotation_str` are. As in PyTorch, those of `typing` come last: `Generator` is typing's."""
    return {
        "Tensor": weft.Tensor,
        "Device": weft.device,
        "Layout": weft.layout,
        "number": numbers.Number,
        "Future": weft.jit.Future,
        "AnyEnumType": enum.Enum,
        "QScheme": weft.qscheme,
        "__torch__": types.SimpleNamespace(torch=weft),
        "NoneType": type(None),
        "Storage": weft.UntypedStorage,
        "t": typing.TypeVar("t"),
        "PyObject": Any,
        **{name: getattr(typing, name) for name in typing.__all__},
    }


# ---- Types ---------------------------------------------------------------------------------------------------------------


@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """The type of the elements of a list or tuple, as a hint; other things come back as they are.

    >>> create_type_hint([int, int]), create_type_hint((int, str))
    (list[int], tuple[typing.Any, ...])
    """
    if not isinstance(x, (list, tuple)):
        return x
    try:
        element: Any = _common_type(x)
    except TypeError:  # elements that are no types
        warnings.warn(
            f"We were not able to successfully create type hint from the type {x}", stacklevel=user_level()
        )
        return x
    return list[element] if isinstance(x, list) else tuple[element, ...]


def _common_type(kinds: Sequence[Any]) -> Any:
    """The one of the types that all others are subclasses of; Any if there is none."""
    if not kinds:
        return Any
    base = kinds[0]
    for each in kinds:
        if issubclass(base, each):
            base = each
        elif not issubclass(each, base):
            return Any
    return base


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type may be given for a parameter of the other."""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type:
        return True
    if origin is typing.Union and signature_type != argument_type:
        return any(type_matches(each, argument_type) for each in typing.get_args(signature_type))
    if origin is list:
        return _elements_match(signature_type, argument_type)
    if signature_type is int and argument_type is weft.dtype:  # a dtype is an int in schemas
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return _is_subclass(argument_type, signature_type)


def _elements_match(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of this type may be given for a list: a list, a tuple, or one int for many."""
    (element,) = typing.get_args(signature_type)
    if element is int and argument_type is int:
        return True
    if not inspect.isclass(element):
        warnings.warn(
            f"Does not support nested parametric types, got {signature_type}. Please file a bug.",
            stacklevel=user_level(),
        )
        return False
    if typing.get_origin(argument_type) not in (list, tuple):
        return False
    given = typing.get_args(argument_type)
    return all(each in (..., ()) or _is_subclass(each, element) for each in given)


def _is_subclass(kind: Any, base: Any) -> bool:
    return inspect.isclass(kind) and inspect.isclass(base) and issubclass(kind, base)


# ---- Calls ---------------------------------------------------------------------------------------------------------------


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call, with defaults, sorted by the signature of the function; None if they fit none.

    With `normalize_to_only_use_kwargs` all are keywords. The types decide between the overloads of an operator.

    Raises: RuntimeError if the call fits several overloads and no types are given.
    """
    kwargs = kwargs or {}
    if not _is_operator(target):
        signature = inspect.signature(inspect.unwrap(target))
        return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs, normalize_to_only_use_kwargs)
    signatures = get_signature_for_torch_op(target) or []
    fitting = [each for each in signatures if _bound(each, args, kwargs) is not None]
    chosen = fitting[0] if fitting else None
    if len(fitting) > 1:
        if arg_types is None and kwarg_types is None:
            shown = "\n".join(map(str, fitting))
            raise RuntimeError(
                f"Tried to normalize arguments to {weft.typename(target)} but the schema match was ambiguous! Please provide "
                f"argument types to the normalize_arguments() call. Available schemas:\n{shown}"
            )
        typed = (each for each in signatures if _takes_types(each, arg_types or (), kwarg_types or {}))
        chosen = next(typed, None)
    if chosen is None:
        return None
    return _args_kwargs_to_normalized_args_kwargs(chosen, args, kwargs, normalize_to_only_use_kwargs)


def _is_operator(target: Any) -> bool:
    """Whether PyTorch has the function in C, where `inspect.signature` does not see its arguments."""
    if isinstance(target, (OpOverload, OpOverloadPacket, types.BuiltinFunctionType)):
        return True
    name = public_name(target)
    return name is not None and not is_written_in_python(name) and _builtins._find_builtin(target) is not None


def _bound(
    signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]
) -> inspect.BoundArguments | None:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        return None


def _takes_types(signature: Signature, arg_types: Sequence[Any], kwarg_types: dict[str, Any]) -> bool:
    """Whether a call with arguments of these types is one for the signature."""
    bound = _bound(signature, arg_types, kwarg_types)
    return bound is not None and all(
        type_matches(signature.parameters[name].annotation, given) for name, given in bound.arguments.items()
    )


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
    """The arguments bound to a signature, with defaults; None if the signature takes any number of them.

    Raises: TypeError if they do not fit.
    """
    supported = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    if any(each.kind not in supported for each in sig.parameters.values()):
        # Of random numbers, whose parameter `from` cannot be a keyword in Python.
        if list(sig.parameters) != ["input", "from", "to", "generator"]:
            return None
    bound = sig.bind(*args, **kwargs)
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, (name, value) in enumerate(bound.arguments.items()):
        if not normalize_to_only_use_kwargs and place < len(args):
            positional.append(value)
        else:
            named[name] = value
    return ArgsKwargsPair(tuple(positional), named)
