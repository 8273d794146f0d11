"""`torch.ops.aten`: PyTorch's own operators by name and overload, computed by weft's functions.

`aten.txt` lists their schemas, one a line: name, overload, arguments and results, then the numbers of their tags, then
`composite` if PyTorch composes the operator of others, so that `__torch_dispatch__` is told of those. `out` and `in place` with the
numbers of tags stand for the operators that follow from that of the line: those that write into a given tensor, and into `self`. An operator
with `out` comes behind the other overloads, and with `then out` behind that of the line.
`a b: .int(...)` is the line of `a` and that of `b`.

`aten_others.txt` lists the schemas of public functions that `torch.ops.aten` does not compute, such as those of TorchScript's overloads
for numbers and lists. tests/library/registry/aten.py writes both from PyTorch.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.outputs import write_out
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..keys import Tag
from ..schema import FunctionSchema, parse_schema
from . import aten_functions
from .operators import Kernel, Operator

_FILE = Path(__file__).with_name("aten.txt")
_OTHERS = Path(__file__).with_name("aten_others.txt")
# Beginnings of names that stand for a submodule: `aten::linalg_inv` is `torch.linalg.inv`.
_SUBMODULES = ("linalg", "fft", "special")


@functools.cache
def _listed(file: Path = _FILE) -> dict[str, list[str]]:
    """The lines of a file by the name of the operator."""
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        names, mark, rest = line.partition(": ")
        if mark:
            for name in names.split():
                found.setdefault(name, []).append(name + rest)
        else:
            found.setdefault(line[: line.index("(")].partition(".")[0], []).append(line)
    return found


_COMPOSITE = " ; composite"
# "; 16 17 ; composite ; out 14 17 ; in place 6 17" behind a schema. The last two name the tags of the operators that follow.
_FOLLOWING = re.compile(r"(?: ; (?P<then>then )?out (?P<out>[\d ]+))?(?: ; in place (?P<in_place>[\d ]+))?$")
_FACTORY_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


@functools.cache
def overloads(name: str) -> list[str]:
    """The lines of the overloads of `aten::name`, in PyTorch's order: those of the file and those that follow from them."""
    is_listed = name in _listed()
    found: list[str] = []
    last: list[str] = []
    for line in _listed().get(name if is_listed else name.removesuffix("_"), ()):
        following = _FOLLOWING.search(line)
        assert following is not None
        line = line[: following.start()]
        if is_listed:
            found.append(line)
            if following["out"]:
                (found if following["then"] else last).append(_followed(line, out_form, following["out"]))
        elif following["in_place"]:
            found.append(_followed(line, in_place_form, following["in_place"]))
    return found + last


def _followed(line: str, form: Callable[[str], str], tags: str) -> str:
    return f"{form(line.partition(' ; ')[0])} ; {tags}{_COMPOSITE if line.endswith(_COMPOSITE) else ''}"


def out_form(schema: str) -> str:
    """The schema of the operator that writes its results into tensors that are given.

    >>> out_form("add.Scalar(Tensor self, Scalar other) -> Tensor")
    'add.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)'
    >>> out_form("_aminmax(Tensor self) -> (Tensor, Tensor)")
    '_aminmax.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))'
    """
    name, arguments, results = _parts(schema)
    arguments = arguments.removesuffix(f", *, {_FACTORY_OPTIONS}").replace(f"{_FACTORY_OPTIONS}, ", "")
    kinds = results.strip("()").split(", ")
    kinds = [kind.replace("Tensor", f"Tensor({letter}!)") for kind, letter in zip(kinds, "abcdefgh")]
    outs = [f"{kind} out{i if len(kinds) > 1 else ''}" for i, kind in enumerate(kinds)]
    keyword = [] if "*, " in arguments else ["*"]
    listed = ", ".join([*filter(None, [arguments]), *keyword, *outs])
    written = "()" if "[]" in results else kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    return f"{name}{'_' if '.' in name else '.'}out({listed}) -> {written}"


def in_place_form(schema: str) -> str:
    """The schema of the operator that writes its result into its first tensor, or its results into its first list of tensors.

    >>> in_place_form("add.Scalar(Tensor self, Scalar other) -> Tensor")
    'add_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)'
    """
    name, arguments, results = _parts(schema)
    name, dot, overload = name.partition(".")
    written = arguments.replace("Tensor", "Tensor(a!)", 1)
    return f"{name}_{dot}{overload}({written}) -> {'()' if '[]' in results else 'Tensor(a!)'}"


def _parts(schema: str) -> tuple[str, str, str]:
    """The name, the arguments and the results of a schema."""
    head, _, results = schema.rpartition(") -> ")
    name, _, arguments = head.partition("(")
    return name, arguments, results


@functools.cache
def composite(name: str) -> frozenset[str]:
    """The names of the overloads of `aten::name` that PyTorch composes of other operators."""
    found = [line.partition("(")[0] for line in overloads(name) if line.endswith(_COMPOSITE)]
    return frozenset(each.partition(".")[2] for each in found)


@functools.cache
def names() -> list[str]:
    """The names of the operators."""
    in_place = {
        f"{name}_" for name, lines in _listed().items() if any(" ; in place " in line for line in lines)
    }
    return sorted({*_listed(), *in_place})


def operators(name: str) -> dict[str, Operator]:
    """The overloads of `aten::name`, empty if weft does not have it."""
    if function(name) is None:
        return {}
    found: dict[str, Operator] = {}
    for line in overloads(name):
        text, *rest = line.removesuffix(_COMPOSITE).split(" ; ")
        tags = " ".join(rest)
        schema = parse_schema(f"aten::{text}")
        found[schema.overload_name] = _Builtin(schema, [Tag(int(each)) for each in tags.split()])
    return found


@functools.cache
def other_schemas(name: str) -> list[FunctionSchema]:
    """The schemas of `aten::name` that are not among `operators(name)`; PyTorch asks for them after those."""
    return [parse_schema(f"aten::{line}") for line in _listed(_OTHERS).get(name, ())]


def other_names() -> list[str]:
    """The names of the operators that have `other_schemas`."""
    return list(_listed(_OTHERS))


class _Builtin(Operator):
    """An operator that one of weft's functions computes."""

    def __init__(self, schema: FunctionSchema, tags: Sequence[Any]):
        super().__init__(schema, tags)
        self.kernels["CompositeImplicitAutograd"] = [Kernel(implementation(schema))]

    def call(self, values: Sequence[Any], keyset: Any = None) -> Any:
        args, kwargs = self.arguments(values)
        return self._returned(self.kernels["CompositeImplicitAutograd"][-1].function(*args, **kwargs))

    def has(self, key: str) -> bool:
        return key in ("CPU", "Meta", "Autograd", "AutogradCPU") or super().has(key)


# ---- From a schema to a function -----------------------------------------------------------------------------------------


@functools.cache
def function(name: str) -> Callable | None:
    """weft's function for the operator `aten::name`, None if there is none."""
    own = aten_functions.FUNCTIONS.get(name)
    if own is not None:
        return own
    for place in (
        name,
        *(f"{each}.{name[len(each) + 1 :]}" for each in _SUBMODULES if name.startswith(f"{each}_")),
    ):
        if place in FUNCTIONS:
            return FUNCTIONS[place]
    method = getattr(Tensor, name, None)
    if callable(method) and not name.startswith("__"):
        return method
    return FUNCTIONS.get(f"nn.functional.{name}")


def implementation(schema: FunctionSchema) -> Callable:
    """What computes the overload of this schema."""
    name = schema.name.partition("::")[2]
    own = aten_functions.OVERLOADS.get(f"{name}.{schema.overload_name}") or function(name)
    assert own is not None
    outs = [each.name for each in schema.arguments if each.is_out]
    computed = _adapted(own, schema)
    if not outs:
        return computed

    def writing(*args: Any, **kwargs: Any) -> Any:
        targets = [kwargs.pop(each) for each in outs]
        results = computed(*args, **kwargs)
        results = results if isinstance(results, (tuple, list)) else (results,)
        if len(targets) == 1 and isinstance(targets[0], (tuple, list)):
            targets = list(targets[0])
        written = [write_out(target, result, name) for target, result in zip(targets, results, strict=False)]
        return written[0] if len(written) == 1 else tuple(written)

    return writing


def _adapted(own: Callable, schema: FunctionSchema) -> Callable:
    """`own`, which is given the schema's arguments: by name where it has the name, by place elsewhere."""
    if getattr(own, "takes_schema_arguments", False):
        return own
    try:
        parameters = inspect.signature(own).parameters
    except (TypeError, ValueError):
        return own
    order = list(parameters)
    names = _names_of(parameters, schema)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    defaults = _other_defaults(parameters, schema)
    reduction = _place_of_reduction(parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for value, name in zip(args, names, strict=False):
            if name is not None and (named or order[len(positional) : len(positional) + 1] != [name]):
                named[name] = value
            else:
                positional.append(value)
        for name, value in kwargs.items():
            if name in parameters or takes_any:
                named[name] = value
            elif value is not None and name not in ("pin_memory", "layout", "non_blocking"):
                named[_OWN_NAMES.get(name, name)] = value
        for name, value in defaults.items():
            if name not in named and order.index(name) >= len(positional):
                named[name] = value
        if reduction is not None:
            _name_reduction(positional, named, reduction)
        return own(*positional, **named)

    return call


# Names of arguments in schemas -> weft's functions.
_OWN_NAMES = {"self": "input", **aten_functions.RENAMED}


def _names_of(parameters: Mapping[str, inspect.Parameter], schema: FunctionSchema) -> list[str | None]:
    """For each positional argument of the schema its name in weft's function; None if it is passed by place."""
    declared = [each.name for each in schema.arguments if not each.kwarg_only]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters.values()):
        return [None] * len(declared)
    later = [
        next((own for own in (name, _OWN_NAMES.get(name)) if own in parameters), None)
        for name in declared[1:]
    ]
    return [None, *later]


def _other_defaults(parameters: Mapping[str, inspect.Parameter], schema: FunctionSchema) -> dict[str, Any]:
    """The schema's defaults that are other numbers than those of weft's function, which calls therefore pass on."""
    return {
        each.name: each.default_value
        for each in schema.arguments
        if each.name in parameters
        and isinstance(each.default_value, (int, float))
        and isinstance(parameters[each.name].default, (int, float))
        and parameters[each.name].default != each.default_value
    }


def _place_of_reduction(parameters: Mapping[str, inspect.Parameter]) -> int | None:
    """The place of the parameter `reduction`, which takes a name where schemas have a number; None without one."""
    found = parameters.get("reduction")
    if found is None or found.default not in aten_functions.REDUCTIONS.values():
        return None
    return list(parameters).index("reduction")


def _name_reduction(positional: list[Any], named: dict[str, Any], place: int) -> None:
    """Replace the number of a reduction by its name."""
    if isinstance(named.get("reduction"), int):
        named["reduction"] = aten_functions.REDUCTIONS[named["reduction"]]
    elif place < len(positional):
        positional[place] = aten_functions.REDUCTIONS[positional[place]]
