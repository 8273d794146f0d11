"""The forms of an operator, from its schemas."""

from __future__ import annotations

import functools
import keyword
from typing import Any

import weft as torch
from weft.core.return_types import TYPES

from . import annotations
from .forms import KEYWORD, NO_DEFAULT, POSITIONAL, STAR, Form, Parameter
from .forms import default as forms_default

# The options of functions that make tensors. Their schemas lack `requires_grad`.
_OPTIONS = {"dtype", "layout", "device", "pin_memory"}
# Arguments of schemas whose defaults depend on the function.
_REQUIRES_GRAD = Parameter("requires_grad", "_bool", False, KEYWORD)


@functools.cache
def forms(operator: str) -> tuple[Form, ...]:
    """The forms of an operator of `torch.ops.aten`: one for each schema without `out`, which takes `out` if there is a schema with it."""
    packet = getattr(torch.ops.aten, operator, None)
    if packet is None:
        return ()
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    outs = [schema for schema in schemas if any(argument.is_out for argument in schema.arguments)]
    found = [_form(schema, operator, outs) for schema in schemas if schema not in outs]
    return tuple(dict.fromkeys(sorted(found, key=lambda form: len(form.parameters))))


def is_in_place(operator: str) -> bool:
    return operator.endswith("_") and not operator.startswith("__")


def _form(schema: Any, operator: str, outs: list[Any]) -> Form:
    parameters = [_parameter(argument, operator) for argument in schema.arguments]
    names = {parameter.name for parameter in parameters}
    if names >= _OPTIONS:
        parameters.append(_REQUIRES_GRAD)
    positional = [argument.name for argument in schema.arguments if not argument.kwarg_only]
    for out in outs:
        if positional == [argument.name for argument in out.arguments if not argument.kwarg_only]:
            written = sum(argument.is_out for argument in out.arguments)
            kind = "Tensor" if written == 1 else f"tuple[{', '.join(['Tensor'] * written)}]"
            parameters.append(Parameter("out", f"{kind} | None", None, KEYWORD))
            break
    parameters = _defaults_last(parameters)
    return Form(tuple(parameters), _result(schema, operator))


def _parameter(argument: Any, operator: str) -> Parameter:
    name = "input" if argument.name == "self" else argument.name
    name = f"_{name}" if keyword.iskeyword(name) else name  # `from` of random_, which calls give by position
    kind = annotations.schema_type(argument.real_type)
    if argument.N is not None and argument.real_type.kind() == "OptionalType":
        kind = annotations.optional(kind)
    default = forms_default(argument.default_value) if argument.has_default_value() else NO_DEFAULT
    if name in ("dtype", "memory_format") and isinstance(default, int):  # a code
        default = ...
    if default is NO_DEFAULT and argument.kwarg_only and kind.endswith("None"):
        default = None
    if default is None:
        kind = annotations.optional(kind)
    return Parameter(name, kind, default, KEYWORD if argument.kwarg_only else POSITIONAL)


def _defaults_last(parameters: list[Parameter]) -> list[Parameter]:
    """Keywords after positional parameters, whose defaults come last."""
    keywords = [parameter for parameter in parameters if parameter.kind is KEYWORD]
    return [parameter for parameter in parameters if parameter.kind is not KEYWORD] + keywords


def result_types(operator: str) -> list[str]:
    """The types of the results of the operator that has several; [] if there is none."""
    packet = getattr(torch.ops.aten, operator, None)
    schemas = [] if packet is None else [getattr(packet, overload)._schema for overload in packet.overloads()]
    return next((_kinds(schema) for schema in schemas if len(schema.returns) > 1), [])


def _kinds(schema: Any) -> list[str]:
    return [annotations.schema_type(each.real_type, is_result=True) for each in schema.returns]


def _result(schema: Any, operator: str) -> str:
    kinds = _kinds(schema)
    if not kinds:
        return "None"
    if len(kinds) == 1:
        return kinds[0]
    if operator in TYPES:
        return f"return_types.{operator}"
    return f"tuple[{', '.join(kinds)}]"


def spread(form: Form) -> Form | None:
    """The form for calls that write sizes, dims or tensors one by one, as in `t.permute(1, 0)`; None if it takes no such list.

    The list is the last positional parameter, behind the tensor alone or first.
    """
    positional = [parameter for parameter in form.parameters if parameter.kind is POSITIONAL]
    rest = [parameter for parameter in positional if parameter.name not in ("input", "self")]
    lists = [
        element for element in ("_int", "Tensor") if len(rest) == 1 and f"Sequence[{element}]" in rest[0].type
    ]
    if not lists:
        return None
    place = form.parameters.index(rest[0])
    parameters = list(form.parameters)
    parameters[place] = Parameter(rest[0].name, lists[0], kind=STAR)
    return Form(tuple(parameters), form.returns)
