"""Schemas of operators from the annotations of Python functions."""

from __future__ import annotations

import collections.abc
import inspect
import itertools
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, List, Optional, Sequence, Union  # noqa: UP035 (what functions are annotated with)

from ...core.device import device
from ...core.dtype import DType
from ...core.tensor import Tensor

_Number = Union[int, float, bool]  # noqa: UP007


def _with_forms(kind: Any, text: str, forms: str) -> list[tuple[Any, str]]:
    """A type and those made of it: `?` optional, `[]` a list, `?[]` a list with None, `[]?` an optional list."""
    found = [(kind, text)]
    for form in forms.split():
        if form == "?":
            found.append((Optional[kind], f"{text}?"))  # noqa: UP045
            continue
        element = Optional[kind] if form.startswith("?") else kind  # noqa: UP045
        spelled = f"{text}?[]" if form.startswith("?") else f"{text}[]"
        for made in (Sequence[element], List[element], collections.abc.Sequence[element], list[element]):  # type: ignore[valid-type]  # noqa: UP006
            optional = form.endswith("]?")
            found.append((Optional[made] if optional else made, f"{spelled}?" if optional else spelled))  # noqa: UP045
    return found


SUPPORTED_PARAM_TYPES: dict[Any, str] = dict(
    itertools.chain(
        _with_forms(Tensor, "Tensor", "? [] ?[]"),
        _with_forms(int, "SymInt", "? [] []?"),
        _with_forms(float, "float", "? [] []?"),
        _with_forms(bool, "bool", "? [] []?"),
        _with_forms(str, "str", "?"),
        _with_forms(_Number, "Scalar", "? []"),
        _with_forms(DType, "ScalarType", "?"),
        _with_forms(device, "Device", "?"),
    )
)
SUPPORTED_RETURN_TYPES: dict[Any, str] = {
    Tensor: "Tensor", List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]",  # noqa: UP006
    int: "SymInt", float: "float", bool: "bool",
    _Number: "Scalar",
}  # fmt: skip


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of an operator that a function with type annotations implements.

    mutates_args: the names of the arguments that it writes to, or "unknown", which stands for all tensors.
    Raises: ValueError if an annotation is missing or of a type that schemas do not have.

    >>> import weft as torch
    >>> def foo_impl(x: torch.Tensor) -> torch.Tensor:
    ...     return x.sin()
    >>> torch.library.infer_schema(foo_impl, op_name="foo", mutates_args={})
    'foo(Tensor x) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def error(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    hints = _Hints(prototype_function)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
        )
    parts: list[str] = []
    named = False
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise error("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            named = True
            parts.append("*")
        if parameter.annotation is parameter.empty:
            raise error(f"Parameter {name} must have a type annotation.")
        text = _parameter_type(hints(parameter.annotation), name, error)
        is_tensor = text.startswith("Tensor")
        if is_tensor if mutates_args == "unknown" else name in mutates_args:
            if not is_tensor:
                raise error(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            text = f"Tensor(a{place}!){text.removeprefix('Tensor')}"
        parts.append(_declared(text, name, parameter, error))
    unknown = {each for each in mutates_args if each not in signature.parameters}
    if unknown and mutates_args != "unknown":
        raise error(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain "
            "the names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        raise error("No return type annotation was provided. Please add one.")
    result = _return_type(hints(signature.return_annotation), error)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


class _Hints:
    """Evaluates annotations that are strings, with the names that the function sees."""

    def __init__(self, function: Callable):
        inner = inspect.unwrap(function)
        self._globals = getattr(inner, "__globals__", {})
        code = getattr(inner, "__code__", None)
        cells = getattr(inner, "__closure__", None) or ()
        self._locals: dict[str, Any] = {}
        if code is not None:
            for name, cell in zip(code.co_freevars, cells, strict=True):
                try:
                    self._locals[name] = cell.cell_contents
                except ValueError:  # not set yet
                    continue

    def __call__(self, annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        import weft

        common = {"torch": weft, "Tensor": Tensor, "typing": typing, **vars(typing)}
        try:
            return eval(annotation, {**common, **self._globals}, self._locals)
        except Exception as error:
            raise ValueError(
                f"infer_schema(func): Unsupported type annotation {annotation}. It is not a type. ({error})."
            ) from error


def _spelled(kind: Any) -> Any:
    """`X | None` as `Optional[X]`, which the tables are written with."""
    if isinstance(kind, types.UnionType):
        return Union[tuple(typing.get_args(kind))]  # noqa: UP007
    return kind


def _parameter_type(kind: Any, name: str, error: Callable[[str], ValueError]) -> str:
    try:
        found = SUPPORTED_PARAM_TYPES.get(_spelled(kind))
    except TypeError:  # not hashable
        found = None
    if found is not None:
        return found
    if typing.get_origin(kind) is tuple:
        element = next((each for each in typing.get_args(kind) if each is not ...), None)
        instead = f"list[{getattr(element, '__name__', element)}]"
        raise error(
            f"Parameter {name} has unsupported type {kind}. We do not support Tuple inputs in schema. As a workaround, please "
            f"try to use List instead. For example, {instead}.\n\nThe valid types are: {SUPPORTED_PARAM_TYPES.keys()}."
        )
    raise error(
        f"Parameter {name} has unsupported type {kind}. The valid types are: {SUPPORTED_PARAM_TYPES.keys()}."
    )


def _declared(text: str, name: str, parameter: inspect.Parameter, error: Callable[[str], ValueError]) -> str:
    default = parameter.default
    if default is parameter.empty:
        return f"{text} {name}"
    if default is None or isinstance(default, (int, float, bool)):
        return f"{text} {name}={default}"
    if isinstance(default, (str, device)):
        return f'{text} {name}="{default}"'
    if isinstance(default, DType):
        return f"{text} {name}={default.name.removeprefix('torch.')}"
    raise error(
        f"Parameter {name} has an unsupported default value type {type(default)}. Please file an issue on GitHub so we can "
        "prioritize this."
    )


def _return_type(kind: Any, error: Callable[[str], ValueError]) -> str:
    if kind is None or kind is type(None):
        return "()"
    found = SUPPORTED_RETURN_TYPES.get(_spelled(kind)) if kind.__hash__ else None
    if found is not None:
        return found
    if typing.get_origin(kind) is tuple:
        parts = []
        for each in typing.get_args(kind):
            text = SUPPORTED_RETURN_TYPES.get(_spelled(each))
            if text is None:
                raise error(
                    f"Return has unsupported type {kind}. The valid types are: {SUPPORTED_RETURN_TYPES}."
                )
            parts.append(text)
        return f"({', '.join(parts)})" if parts else "()"
    raise error(f"Return has unsupported type {kind}. The valid types are: {SUPPORTED_RETURN_TYPES}.")
