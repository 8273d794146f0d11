"""Types as stubs write them: of annotations in the source, and of types in schemas."""

from __future__ import annotations

import re
from typing import Any

from weft.library import types as schema_types

# What the annotations of public functions call types -> what stubs call them. Other names become Any. `torch.int` and the like are dtypes
# and `Tensor.float` is a method, so Python's own types have other names in stubs.
NAMES = {
    **{
        name: name
        for name in ("Any", "Callable", "Sequence", "Iterable", "None", "str", "list", "tuple", "dict")
    },
    **{name: name for name in ("Tensor", "DType", "Layout", "MemoryFormat", "Generator", "Size", "Device")},
    "bool": "_bool",
    "int": "_int",
    "float": "_float",
    "complex": "_complex",
    "device": "Device",
    "Pieces": "tuple[Tensor, ...]",
    "np.ndarray": "np.ndarray[Any, Any]",
}
# The imports of a stub whose lines mention these names; {root} is the package as the stub reaches it.
IMPORTS = """\
import numpy as np
from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload
"""
OURS = """\
from {root}core.device import device as Device
from {root}core.dtype import DType
from {root}core.generator import Generator
from {root}core.layout import Layout, MemoryFormat
from {root}core.size import Size
from {root}core.tensor import Tensor
"""


def annotation(text: Any) -> str:
    """An annotation of the source as a stub writes it; Any where there is none, or where it mentions other types."""
    if text is None or text == "None":
        return "None"
    if not isinstance(text, str):
        text = getattr(text, "__name__", "") if isinstance(text, type) else ""
    words = set(re.findall(r"[A-Za-z_.][\w.]*", text)) - {"..."}
    if not text or text == "_empty" or not words <= NAMES.keys():
        return "Any"
    result = re.sub(r"[A-Za-z_][\w.]*", lambda found: NAMES[found[0]], text)
    return "Any" if "Any" in result.split(" | ") else _with_parameters(result)


def _with_parameters(text: str) -> str:
    """Strict checkers want the parameters of generic types."""
    for name, parameters in {
        "tuple": "Any, ...",
        "list": "Any",
        "dict": "Any, Any",
        "Callable": "..., Any",
        "Iterable": "Any",
        "Sequence": "Any",
    }.items():
        text = re.sub(rf"\b{name}\b(?!\[)", f"{name}[{parameters}]", text)
    return text


_PLAIN = {
    "Tensor": "Tensor",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "str",
    "number": "_complex",
    "Scalar": "_complex",
    "ScalarType": "DType",
    "Device": "Device | str | _int",
    "Layout": "Layout",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
    "Dimname": "str",
    "Storage": "Any",
    "Stream": "Any",
}


def schema_type(kind: Any, is_result: bool = False) -> str:
    """The type of an argument or result of a schema."""
    if isinstance(kind, schema_types.OptionalType):
        return optional(schema_type(kind.getElementType(), is_result))
    if isinstance(kind, schema_types.ListType):
        element = schema_type(kind.getElementType(), is_result)
        if is_result:
            return f"tuple[{element}, ...]"
        return f"{element} | Sequence[{element}]" if kind.length else f"Sequence[{element}]"
    name = str(kind)
    if is_result and name in ("number", "Scalar"):
        return "_int | _float | _bool"
    return _PLAIN.get(name, "Any")


def optional(text: str) -> str:
    """The type with None.

    >>> optional("_int"), optional("Any"), optional("_int | None")
    ('_int | None', 'Any', '_int | None')
    """
    return text if text == "Any" or text.endswith("None") else f"{text} | None"


def union(types: list[str]) -> str:
    """The type of a value that is of one of these types.

    >>> union(["Tensor", "_complex", "Tensor"]), union(["_int", "Any"])
    ('Tensor | _complex', 'Any')
    """
    parts = list(dict.fromkeys(part for text in types for part in text.split(" | ")))
    if "Any" in parts or not parts:
        return "Any"
    return " | ".join([part for part in parts if part != "None"] + ["None"] * ("None" in parts))
