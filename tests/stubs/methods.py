"""The stub with the methods of Tensor, which `weft/ops` adds at run time: a base class that only type checkers see."""

from __future__ import annotations

import ast
import re
from types import FunctionType
from typing import Any

from weft.core import tensor
from weft.core.tensor import Tensor

from . import annotations, by_hand, namespaces, signatures
from .forms import definition

_OPERAND = "Tensor | _complex"
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_COMPARISONS = "lt le gt ge".split()
# Members whose values say nothing of their types.
_TYPED = {
    "T": "Tensor", "mT": "Tensor", "H": "Tensor", "mH": "Tensor", "data": "Tensor", "real": "Tensor", "imag": "Tensor",
    **dict.fromkeys("is_sparse is_sparse_csr is_quantized is_nested is_xpu".split(), "_bool"),
    "name": "str | None", "requires_grad": "_bool", "__array_priority__": "_int",
}  # fmt: skip
_DUNDERS = {
    "__len__": "_int", "__bool__": "_bool", "__index__": "_int", "__int__": "_int", "__float__": "_float",
    "__complex__": "_complex", "__neg__": "Tensor", "__pos__": "Tensor", "__invert__": "Tensor", "__abs__": "Tensor",
}  # fmt: skip
_SPECIAL = """\
    def __eq__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __contains__(self, element: Any) -> _bool: ...
    __torch_function__: Any"""


def stub() -> str:
    """The stub of weft/core/tensor_methods."""
    lines = ["class TensorMethods:", _SPECIAL]
    lines += [
        f"    def {name}(self) -> {kind}: ..." for name, kind in _DUNDERS.items() if name in vars(Tensor)
    ]
    for name in _BINARY:
        lines += [
            f"    def __{prefix}{name}__(self, other: {_OPERAND}) -> Tensor: ..."
            for prefix in ("", "r", "i")
            if f"__{prefix}{name}__" in vars(Tensor)
        ]
    lines += [f"    def __{name}__(self, other: {_OPERAND}) -> Tensor: ..." for name in _COMPARISONS]
    written = _written(lines) | _defined_in_source() | vars(object).keys() | set(Tensor.__slots__)
    for name, member in sorted(vars(Tensor).items()):
        is_special = name.startswith("__") and not isinstance(
            member, FunctionType
        )  # some only in a version of Python
        if name not in written and not is_special:
            lines.append(_member(name, member))
    return namespaces.with_imports(lines, 1)


def _written(lines: list[str]) -> set[str]:
    """The names that these lines define."""
    return set(re.findall(r"def (\w+)", "\n".join(lines)))


def _defined_in_source() -> set[str]:
    """The members that the class statement in weft/core/tensor.py has."""
    with open(tensor.__file__, encoding="utf-8") as opened:
        tree = ast.parse(opened.read())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    functions: set[str] = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    targets = [name for node in body if isinstance(node, ast.Assign) for name in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    return functions | {name.id for name in targets if isinstance(name, ast.Name)}


def _member(name: str, member: Any) -> str:
    if isinstance(member, FunctionType):
        forms = [form.as_method() for form in signatures.forms(name, member)]
        return definition(name, [*by_hand.forms(name, "self"), *dict.fromkeys(forms)], indent="    ")
    if isinstance(member, property):
        kind = _TYPED.get(name) or annotations.annotation(member.fget.__annotations__.get("return", "Any"))
        lines = f"    @property\n    def {name}(self) -> {kind}: ..."
        if member.fset is not None:
            value = "Any" if name in ("data", "grad") else kind
            lines += f"\n    @{name}.setter\n    def {name}(self, value: {value}) -> None: ..."
        return lines
    return f"    {name}: Any"
