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
from typing import Any

import weft
from weft.compat import served
from weft.core.names import INNER

from . import homes, namespaces, signatures
from .forms import definition

_ROOT = Path(weft.__file__).parent
# Helpers that packages import for themselves come from here.
_HELPERS = ("compat.missing", "core.names", "core.registry", "core.above")


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
        has_list = "\n__all__ = " in text
        is_seen = has_list and "getattr" not in text or "import" not in text
        own = [node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
        if not is_seen and not (own and has_list):
            module = importlib.import_module(name)
            lines = namespaces.functions(f"{'.'.join(parts)}.") + _lines(module, body)
            lines += [line for each in own for line in _definition(each, vars(module)[each])]
            found["/".join((*parts, "__init__.pyi"))] = namespaces.with_imports(lines, len(parts))
    return found


def _lines(module: ModuleType, body: list[ast.stmt]) -> list[str]:
    submodules, names = _lazy(module)
    files = [name for name in submodules if _has_file(module, name)]
    places = {name: (".", name) for name in (*files, *served.inside(module.__name__))}
    places |= {name: (f".{home}", name) for name, home in names.items() if _has_file(module, home)}
    return exports(body, places, inside=module)


def exports(
    body: list[ast.stmt],
    places: dict[str, tuple[str, str]],
    package: str = "",
    inside: ModuleType | None = None,
) -> list[str]:
    """The lines that make public what a package imports, and other names, of which `places` says the module and the name there.

    package: the package of the source, if the stub lies elsewhere.
    inside: the package, if its imports may pass through other modules, which do not export them for type checkers.
    """
    stars = []
    for node in body:
        if isinstance(node, ast.ImportFrom) and not (node.module or "").endswith(_HELPERS):
            home = "." * node.level + (node.module or "")
            if package:
                home = importlib.util.resolve_name(home, package)
            for alias in node.names:
                if alias.name == "*":
                    stars.append(f"from {home} import *")
                elif home.startswith((".", weft.__name__)):
                    name = alias.asname or alias.name
                    if node.module or name not in places:  # a submodule may have a stub of its own
                        places[name] = home, alias.name
    return [
        line
        for name, (home, own) in sorted(places.items())
        if not name.startswith("_")
        for line in namespaces.public_import(*(_origin(inside, name) or (home, own)), name)
    ] + stars


def _origin(package: ModuleType | None, name: str) -> tuple[str, str] | None:
    """The file that defines a function or class of a package; None for other values."""
    value = getattr(package, name, None)
    found = homes.of(value) if callable(value) else None
    if package is None or found is None:
        return None
    module, own = found
    inner = f"{homes.file_name(package)}."
    return (f".{module.removeprefix(inner)}" if module.startswith(inner) else module), own


def _definition(name: str, value: Any) -> list[str]:
    """A public function that the package itself defines."""
    return [] if name.startswith("_") else [definition(name, [signatures.at_run_time(value)])]


def _has_file(module: ModuleType, name: str) -> bool:
    """Whether a submodule is a file or a package, and not just a folder, which type checkers do not import."""
    spec = importlib.util.find_spec(f"{module.__name__}.{name}")
    return spec is not None and (spec.origin is not None or served.serves(f"{module.__name__}.{name}"))


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
