"""The files of weft that define functions and classes: stubs import from them, so that editors go to the source."""

from __future__ import annotations

import ast
import functools
import sys
from types import ModuleType
from typing import Any

import weft


@functools.cache
def _definitions(file: str) -> frozenset[str]:
    """The names of functions and classes that a file defines at its top level."""
    with open(file, encoding="utf-8") as opened:
        body = ast.parse(opened.read()).body
    return frozenset(node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))


@functools.cache
def _places(n_modules: int) -> dict[int, tuple[str, str]]:
    """The id of each function and class of weft -> the module whose file defines it, as Python imports the file, and its name there."""
    found: dict[int, tuple[str, str]] = {}
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and module.__name__.startswith(f"{weft.__name__}."):
            for name in _definitions_of(module):
                if name in vars(module):
                    found.setdefault(id(vars(module)[name]), (file_name(module), name))
    return found


def _definitions_of(module: ModuleType) -> frozenset[str]:
    file = getattr(module, "__file__", None)
    return _definitions(file) if file and file.endswith(".py") else frozenset()


def file_name(module: ModuleType) -> str:
    """The module's name by the place of its file: type checkers know modules by files only."""
    from weft.compat.served import own_name

    return own_name(module.__name__)


def of(value: Any) -> tuple[str, str] | None:
    """The module that defines a class or function, and its name there; None if no statement at the top of a file does."""
    return _places(len(sys.modules)).get(id(value))  # made again when further modules are loaded


@functools.cache
def imports(file: str) -> dict[str, tuple[str, str]]:
    """What a file imports from other modules of weft by `from . import`: name -> (relative module, name there)."""
    with open(file, encoding="utf-8") as opened:
        nodes = [
            node for node in ast.parse(opened.read()).body if isinstance(node, ast.ImportFrom) and node.level
        ]
    return {
        alias.asname or alias.name: ("." * node.level + (node.module or ""), alias.name)
        for node in nodes
        for alias in node.names
    }
