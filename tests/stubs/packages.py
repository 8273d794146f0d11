"""The stubs of packages that only import: nn, optim, utils.data. They load submodules and names when these are first used.

Type checkers take a package with `__getattr__` for one that has every name, and names that a package imports for private ones.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import weft
from weft.compat import served
from weft.core.names import INNER

from . import namespaces

_ROOT = Path(weft.__file__).parent
# Helpers that packages import for themselves come from here.
_HELPERS = ("compat.missing", "core.names", "core.above", "typing", "__future__")


def stubs() -> dict[str, str]:
    """File, relative to the package weft -> its text."""
    found = {}
    for path in sorted(_ROOT.rglob("__init__.py")):
        parts = path.relative_to(_ROOT).parts[:-1]
        name = ".".join((weft.__name__, *parts))
        known_as = served.public_name(name).split(".")
        if not parts or parts[0] in INNER or any(part.startswith("_") for part in known_as):
            continue
        text = path.read_text(encoding="utf-8")
        body = ast.parse(text).body
        is_seen = "getattr" not in text and ("__all__" in text or "import" not in text)
        if not is_seen and not any(isinstance(node, (ast.ClassDef, ast.FunctionDef)) for node in body):
            lines = _lines(importlib.import_module(name), body)
            found["/".join((*parts, "__init__.pyi"))] = namespaces.HEADER + "\n".join(lines) + "\n"
    return found


def _lines(module: ModuleType, body: list[ast.stmt]) -> list[str]:
    submodules, names = _lazy(module)
    files = [name for name in submodules if _has_file(module, name)]
    places = {name: (".", name) for name in (*files, *served.inside(module.__name__))}
    places |= {name: (f".{home}", name) for name, home in names.items()}
    stars = []
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level and not (node.module or "").endswith(_HELPERS):
            home = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    stars.append(f"from {home} import *")
                else:
                    places.setdefault(alias.asname or alias.name, (home, alias.name))
    return stars + [
        line
        for name, (home, own) in sorted(places.items())
        if not name.startswith("_")
        for line in namespaces.public_import(home, own, name)
    ]


def _has_file(module: ModuleType, name: str) -> bool:
    """Whether a submodule is a file or a package, and not just a folder, which type checkers do not import."""
    spec = importlib.util.find_spec(f"{module.__name__}.{name}")
    return spec is not None and spec.origin is not None


def _lazy(module: ModuleType) -> tuple[list[str], dict[str, str]]:
    """The submodules that a package loads when they are first used, and the names that it takes from submodules then."""
    answer = vars(module).get("__getattr__")
    if answer is None:
        return [], {}
    known = inspect.getclosurevars(answer).nonlocals
    submodules = known.get("lazy")
    if submodules is None:
        submodules = [info.name for info in pkgutil.iter_modules(module.__path__)]
    return [name for name in submodules if "." not in name], dict(known.get("names") or {})
