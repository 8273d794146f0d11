"""The stubs of modules that `weft/compat/served.py` finds under PyTorch's names: their files lie elsewhere, or their functions are set at run time."""

from __future__ import annotations

import ast
from pathlib import Path

import weft
from weft.compat import served

from . import namespaces, packages

PACKAGE = Path(served.FOLDER).parents[1]


def stubs() -> dict[str, str]:
    """File, relative to the package -> the text of its stub."""
    found = {}
    for path in sorted(Path(served.FOLDER).rglob("*.py")):
        parts = path.relative_to(served.FOLDER).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        if not name or any(part.startswith("_") for part in name.split(".")):
            continue
        home = f"compat.torch.{name}"
        place = name.replace(".", "/") + ("/__init__.pyi" if is_package else ".pyi")
        found[place] = _stub(name, home, is_package)
    for name, home in (served.ELSEWHERE | served.MOVED).items():
        if not any(part.startswith("_") for part in name.split(".")):
            found[name.replace(".", "/") + ".pyi"] = _stub(name, home, False)
    return found


def _stub(name: str, home: str, is_package: bool) -> str:
    depth = name.count(".") + is_package
    root = "." * (depth + 1)
    lines = namespaces.functions(f"{name}.")
    stars = [] if lines else [f"from {root}{home} import *"]
    if is_package:
        inside = {name: (".", name) for name in served.inside(f"{weft.__name__}.{name}")}
        inside |= {path.stem: (".", path.stem) for path in PACKAGE.joinpath(*home.split(".")).iterdir()}
        lines += packages.exports(_body(home), inside, f"{weft.__name__}.{home}")
    lines += stars
    return namespaces.with_imports(lines, depth)


def _body(home: str) -> list[ast.stmt]:
    file = PACKAGE.joinpath(*home.split("."), "__init__.py")
    return ast.parse(file.read_text(encoding="utf-8")).body
