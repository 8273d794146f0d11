"""Names that weft declares but does not implement yet: what several processes, GPUs or quantized tensors would need.

Programs import such names, annotate with them and ask `isinstance(x, DTensor)`, and most never call them. So
each exists with PyTorch's signature, and raises NotImplementedError when it is called or instantiated. Enumerations,
exceptions and tables of settings are real, because there is nothing in them to implement.

The files `interface/*.pyi` hold the declarations, one file for each subpackage of torch. A line `# module torch.x.y: reason`
begins a section: declarations of a module, and the reason that the error gives. Where weft has a module of that name,
its own names come first: `module_getattr` asks here for a name that the module lacks. Other modules are made by
`Finder`. tests/compat/interface.py writes the files from PyTorch's interface.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from .served import public_name

FOLDER = Path(__file__).parent / "interface"
_HEADER = re.compile(r"^# module (torch[\w.]*): (.*)$", re.MULTILINE)
# What declarations are written with.
_VOCABULARY = """
from collections import namedtuple
from dataclasses import dataclass, field
from enum import Enum, Flag, IntEnum, IntFlag, auto
from functools import partial
from typing import NamedTuple, Protocol, TypedDict
"""


class Section:
    """The declarations of one module: the statement of each name, and the reason that its error gives."""

    def __init__(self, module: str):
        self.module = module
        self.statements: dict[str, ast.stmt] = {}
        self.reasons: dict[str, str] = {}

    def add(self, reason: str, text: str) -> None:
        for statement in ast.parse(text).body:
            for name in _bound_names(statement):
                self.statements[name] = statement
                self.reasons[name] = reason

    def public_names(self) -> list[str]:
        return [name for name in self.statements if not name.startswith("_")]


def declares_module(name: str) -> bool:
    """Whether `weft.x.y` is a declared module, or a package of declared modules.

    >>> declares_module("weft.cuda.graphs"), declares_module("weft.cuda.graph")
    (True, False)
    """
    return name in _file(_area(name)) or _is_package(name)


def has(module: str, name: str) -> bool:
    """Whether `name` is declared in `module`, as a name or as a submodule."""
    section = _section(module)
    return (section is not None and name in section.statements) or declares_module(f"{module}.{name}")


def resolve(module: ModuleType, name: str) -> Any:
    """The declared object `name` of `module`; the module keeps it."""
    full_name = _weft_name(module)
    section = _section(full_name)
    if section is None or name not in section.statements:
        return importlib.import_module(f"{full_name}.{name}")
    value = _execute(section, section.statements[name], name, module)
    setattr(module, name, value)
    return value


def names(module: str) -> list[str]:
    """The public names that are declared in `module`."""
    section = _section(module)
    return section.public_names() if section is not None else []


class Finder:
    """Finds the modules that exist as declarations only. It stands last on `sys.meta_path`."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith("weft.") or not declares_module(fullname):
            return None
        # A package, so that its submodules are looked for; those come from this finder as well.
        return ModuleSpec(fullname, _Loader(), is_package=True)  # type: ignore[arg-type]


class _Loader:
    def create_module(self, spec: ModuleSpec) -> None:
        """The default: an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        from .missing import module_getattr

        full_name = _weft_name(module)
        module.__doc__ = f"`torch{full_name.removeprefix('weft')}`, declared and not implemented yet."
        module.__getattr__ = module_getattr(full_name)  # type: ignore[method-assign]
        module.__all__ = names(full_name)  # type: ignore[attr-defined]
        module.__dir__ = lambda: sorted({*vars(module), *names(full_name)})  # type: ignore[method-assign]


# ---- From text to objects ---------------------------------------------------------------------------------------


def _weft_name(module: ModuleType) -> str:
    assert module.__spec__ is not None
    # `__name__` begins with torch where `import torch` is bound to weft.
    return public_name(module.__spec__.name)


@functools.cache
def _file(area: str) -> dict[str, list[tuple[str, str]]]:
    """By module, the reasons and texts of its sections in `interface/area.pyi`."""
    path = FOLDER / f"{area}.pyi"
    found: dict[str, list[tuple[str, str]]] = {}
    if path.exists():
        _, *parts = _HEADER.split(path.read_text(encoding="utf-8"))
        for name, reason, text in zip(parts[::3], parts[1::3], parts[2::3]):
            found.setdefault("weft" + name.removeprefix("torch"), []).append((reason, text))
    return found


def _area(module: str) -> str:
    return module.split(".")[1] if "." in module else "torch"


def _is_package(name: str) -> bool:
    return any(other.startswith(name + ".") for other in _file(_area(name)))


@functools.cache
def _section(module: str) -> Section | None:
    parts = _file(_area(module)).get(module)
    if parts is None:
        return None
    section = Section(module)
    for reason, text in parts:
        section.add(reason, text)
    return section


def _bound_names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name for alias in aliases]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
    raise SyntaxError(
        f"interface files declare functions, classes, constants and imports: {ast.unparse(statement)}"
    )


class _Names(dict):
    """The names that a declaration may use: others of its module, declared or not."""

    def __init__(self, section: Section, module: ModuleType):
        super().__init__()
        self.section = section
        self.module = module

    def __missing__(self, name: str) -> Any:
        if name in vars(self.module):
            return vars(self.module)[name]
        if name in self.section.statements:
            return resolve(self.module, name)
        raise KeyError(name)


@functools.cache
def _vocabulary() -> dict[str, Any]:
    words: dict[str, Any] = {}
    exec(_VOCABULARY, words)
    return words


def _execute(section: Section, statement: ast.stmt, name: str, module: ModuleType) -> Any:
    if isinstance(statement, ast.ImportFrom):
        alias = next(alias for alias in statement.names if name in (alias.name, alias.asname))
        home = "weft" + (statement.module or "").removeprefix("torch")
        return getattr(importlib.import_module(home), alias.name)
    torch_name = "torch" + section.module.removeprefix("weft")
    statement = _Refusing(torch_name).visit(statement)
    tree = ast.fix_missing_locations(ast.Module([statement], []))
    code = compile(tree, f"<interface of {torch_name}>", "exec", dont_inherit=True)
    words = {
        **_vocabulary(),
        "__name__": module.__name__,
        "torch": sys.modules["weft"],
        "_refuse": functools.partial(_refuse, section.reasons[name]),
    }
    names = _Names(section, module)
    exec(code, words, names)
    return names[name]


class _Refusing(ast.NodeTransformer):
    """Gives declared functions a body that raises, and declared classes a constructor that raises."""

    def __init__(self, path: str):
        self.path = path

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if isinstance(node.body[0], ast.Return):  # what PyTorch answers where there is no such device
            return node
        is_special = node.name in ("__init__", "__new__")
        path = self.path if is_special else f"{self.path}.{node.name}"
        node.body = [ast.Expr(ast.Call(ast.Name("_refuse", ast.Load()), [ast.Constant(path)], []))]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        inner = _Refusing(f"{self.path}.{node.name}")
        node.body = [inner.visit(each) for each in node.body]
        return node


def _refuse(reason: str, path: str) -> NoReturn:
    raise NotImplementedError(f"{path}: weft declares this name but does not implement it yet: {reason}")


sys.meta_path.append(Finder)
