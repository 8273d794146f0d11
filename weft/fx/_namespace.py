"""Names of nodes and of what generated code refers to: each is a Python identifier, and each is unique."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import defaultdict
from typing import Any, NamedTuple

import weft

from ..core import pytree as pytree
from . import _pytree as fx_pytree


class _CustomBuiltin(NamedTuple):
    """A name that all generated code may use: the statement that imports it, and what it means."""

    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", float("inf"))
_register_custom_builtin("nan", "from math import nan", float("nan"))
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", weft)
_register_custom_builtin("device", "from torch import device", weft.device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)

# Names that stand for one thing only.
_illegal_names: dict[str, Any] = {name: object() for name in keyword.kwlist}
_illegal_names.update(builtins.__dict__)
_illegal_names.update({name: each.obj for name, each in _custom_builtins.items()})

_illegal_char_regex = re.compile("[^0-9a-zA-Z_]+")
_numbered = re.compile(r"(.+)_([0-9]+)$")


class _Namespace:
    """Gives out names.

    >>> names = _Namespace()
    >>> [names.create_name(each, None) for each in ("x", "x", "add.1", "sum", "2d")]
    ['x', 'x_1', 'add_1', 'sum_1', '_2d']
    """

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any | None) -> str:
        """A free name like `candidate`. With an `obj`, the same name again at the next call with this object."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _illegal_char_regex.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _numbered.match(candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, None)
        if self._is_taken(candidate, obj):
            number = self._base_count.get(base, 0)  # counting goes on from the number given out last
            while self._is_taken(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        if number is not None:
            self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def _is_taken(self, name: str, obj: Any) -> bool:
        return name in self._used_names or _illegal_names.get(name, obj) is not obj

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Say that `name` belongs to `obj`."""
        if self._obj_to_name.setdefault(obj, name) != name:
            raise AssertionError("obj is already associated with a different name")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} not found in namespace")
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def _snake_case(s: str) -> str:
    """`MaxPool2d` -> `max_pool2d`: an underscore goes before a capital that follows a small letter.

    >>> _snake_case("MaxPool2d"), _snake_case("LSTM"), _snake_case("layers.MBConv")
    ('max_pool2d', 'lstm', 'layers.mbconv')
    """
    return "".join(
        f"_{each}" if place and each.isupper() and s[place - 1].islower() else each
        for place, each in enumerate(s)
    ).lower()
