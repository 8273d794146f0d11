"""The forms of a public function: its signature at run time, completed from the schemas of its operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

from . import annotations, schemas
from .forms import KEYWORD, NO_DEFAULT, POSITIONAL, STAR, STAR_STAR, Form, Parameter
from .forms import default as forms_default

# Where the schemas of a namespace's functions are: prefixes of the names of operators.
PREFIXES = {
    "": "",
    "nn.functional.": "",
    "linalg.": "linalg_",
    "fft.": "fft_",
    "special.": "special_",
    "sparse.": "_sparse_",
}


# An option of functions that make tensors, which neither their schemas nor their signatures have.
_NAMES = Parameter("names", "Sequence[str | None] | None", None, KEYWORD)


# Parameters that may be names of dims, if the source leaves their types open.
_DIMS = ("dim", "dims")


def operator_of(name: str) -> str:
    """The operator of a public function.

    >>> operator_of("linalg.inv"), operator_of("nn.functional.relu"), operator_of("exp")
    ('linalg_inv', 'relu', 'exp')
    """
    place, dot, own = name.rpartition(".")
    return PREFIXES.get(place + dot, f"{place}.") + own


def forms(name: str, function: Callable) -> list[Form]:
    """The forms of the public function `name`. Several forms are overloads."""
    own = at_run_time(function)
    known = [form for form in schemas.forms(operator_of(name)) if _accepts(own, form)]
    results = {form.returns for form in known}
    is_open = any(
        parameter.kind in (STAR, STAR_STAR) and parameter.type == "Any" for parameter in own.parameters
    )
    # The functions of nn.functional take more than their operators: `reduction` as a word.
    is_operator = not name.startswith("nn.functional.")
    differs = own.returns == "Any" and len(results) > 1 or not all(_in_place(own, form) for form in known)
    if known and (is_open or is_operator and differs):
        return _overloads(own, known)
    if not known:
        return [own]
    return [_completed(own, known)]


def at_run_time(function: Callable) -> Form:
    signature = inspect.signature(function)
    parameters = tuple(_parameter(each) for each in signature.parameters.values())
    return Form(parameters, annotations.annotation(signature.return_annotation))


def _parameter(parameter: inspect.Parameter) -> Parameter:
    kind = annotations.annotation(parameter.annotation)
    default = forms_default(parameter.default)
    if default is None:
        kind = annotations.optional(kind)
    place = POSITIONAL if parameter.kind is inspect.Parameter.POSITIONAL_ONLY else parameter.kind
    return Parameter(parameter.name, kind, default, place)


def _accepts(own: Form, form: Form) -> bool:
    """Whether the signature at run time has the parameters of a form."""
    if any(parameter.kind is STAR_STAR for parameter in own.parameters):
        return True
    names = {"out", *(parameter.name for parameter in own.parameters)}  # wrappers add `out`
    if any(parameter.kind is STAR for parameter in own.parameters):
        return all(parameter.name in names for parameter in form.parameters if parameter.kind is KEYWORD)
    return all(parameter.name in names for parameter in form.parameters[1:])


def _in_place(own: Form, form: Form) -> bool:
    """Whether the positional parameters of a form are in the places that the signature at run time gives them."""
    pairs = zip(own.parameters, form.parameters)
    return all(mine.name == theirs.name for mine, theirs in list(pairs)[1:] if theirs.kind is POSITIONAL)


def _overloads(own: Form, known: list[Form]) -> list[Form]:
    """The forms of the schemas, with the keywords that only the signature at run time has."""
    takes_star = any(parameter.kind is STAR and parameter.name != "args" for parameter in own.parameters)
    named = any(
        parameter.kind is STAR or parameter.name in _DIMS and parameter.type == "Any"
        for parameter in own.parameters
    )
    further = [
        parameter
        for parameter in own.parameters
        if parameter.kind is KEYWORD and parameter.default is not NO_DEFAULT
    ]
    found = []
    for form in map(_with_names, known) if named else known:
        full = form.with_keywords(*(each for each in further if not _is_positional(each, known)))
        if any(parameter.name == "requires_grad" for parameter in form.parameters):
            full = full.with_keywords(_NAMES)
        found.append(full)
        loose = schemas.spread(full) if takes_star else None
        if loose is not None:
            found.append(loose)
    return [form for form in dict.fromkeys(found) if not any(other.covers(form) for other in found)]


def _with_names(form: Form) -> Form:
    """The form where dims are given by their names, too."""
    parameters = (
        replace(each, type=_with_name(each.type)) if each.name in _DIMS else each for each in form.parameters
    )
    return replace(form, parameters=tuple(parameters))


def _with_name(dims: str) -> str:
    return annotations.union([dims, "Sequence[str]" if "Sequence" in dims else "str"])


def _is_positional(parameter: Parameter, known: list[Form]) -> bool:
    """Whether a schema has this parameter: only some forms take it then."""
    return any(parameter.name == each.name for form in known for each in form.parameters)


def _completed(own: Form, known: list[Form]) -> Form:
    """The signature at run time, where types that it leaves open are those of the schemas."""
    parameters = []
    for place, parameter in enumerate(own.parameters):
        if parameter.type == "Any" and parameter.kind in (POSITIONAL, KEYWORD):
            types = [
                each.type
                for form in known
                for position, each in enumerate(form.parameters)
                if each.name == parameter.name or position == place == 0
            ]
            kind = annotations.union([*types, "str"] if isinstance(parameter.default, str) else types)
            if parameter.default is None:
                kind = annotations.optional(kind)
            if parameter.name in _DIMS:
                kind = _with_name(kind)
            parameter = replace(parameter, type=kind)
        parameters.append(parameter)
    returns = own.returns if own.returns != "Any" else known[0].returns
    form = Form(tuple(parameters), returns)
    outs = [each for schema in known for each in schema.parameters if each.name == "out"]
    return form.with_keywords(*outs[:1])
