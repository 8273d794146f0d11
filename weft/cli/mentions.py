"""`weft names`: which names of torch the source of a library mentions, and which of them weft does not have.

The source is read, not run. A name that is missing need not matter: it may belong to another version of PyTorch, or to a
part of the library that a program does not use.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ..core.names import ROOT


def sources(library: str) -> list[Path]:
    """The Python files of an installed package or module, or of a folder or file.

    Raises: LookupError if there is none of that name.
    """
    path = Path(library)
    if not path.exists():
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise LookupError(f"there is no package, folder or file {library!r}")
        path = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def mentioned(source: str) -> Iterator[tuple[str, int]]:
    """The dotted names of torch in a piece of Python, each with its line.

    >>> sorted(mentioned("import torch.nn as nn\\nfrom torch import fft\\nnn.Linear(2, 2); fft.rfft(x)"))
    [('torch.fft', 2), ('torch.fft.rfft', 3), ('torch.nn', 1), ('torch.nn.Linear', 3)]
    """
    tree = ast.parse(source)
    bound: dict[str, str] = {}  # a name of this file -> what it stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.partition(".")[0] == "torch":
                    bound[each.asname or "torch"] = each.name if each.asname else "torch"
                    yield each.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            if node.module.partition(".")[0] == "torch":
                for each in node.names:
                    full = node.module if each.name == "*" else f"{node.module}.{each.name}"
                    bound[each.asname or each.name] = full
                    yield full, node.lineno
    for node in ast.walk(tree):
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if parts and isinstance(inner, ast.Name) and inner.id in bound:
            yield ".".join((bound[inner.id], *reversed(parts))), inner.lineno


def exists(name: str) -> bool:
    """Whether weft has what torch calls `name`. Attributes of instances are not looked at.

    >>> exists("torch.nn.Linear.forward"), exists("torch.nn.Linea"), exists("torch.float32.anything")
    (True, False, True)
    """
    parts = name.split(".")
    place: object = importlib.import_module(ROOT)
    for count, part in enumerate(parts[1:], 2):
        if not isinstance(place, (ModuleType, type)):
            return True
        try:
            place = getattr(place, part)
        except Exception:  # mostly AttributeError; `torch.classes` has its own
            try:
                place = importlib.import_module(".".join((ROOT, *parts[1:count])))
            except ImportError:
                return False
    return True


def missing(library: str) -> tuple[int, dict[str, list[str]]]:
    """How many names a library mentions, and those that weft does not have, with the places of each."""
    places: dict[str, list[str]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in sources(library):
            with contextlib.suppress(
                SyntaxError, UnicodeDecodeError
            ):  # templates, and files for other versions
                for name, line in mentioned(path.read_text(encoding="utf-8")):
                    places[name].append(f"{path}:{line}")
        with contextlib.redirect_stdout(io.StringIO()):
            absent = {name: where for name, where in sorted(places.items()) if not exists(name)}
    # What is within a missing name is missing, too.
    outer = {name: w for name, w in absent.items() if name.rpartition(".")[0] not in absent}
    return len(places), outer


def main(libraries: list[str]) -> int:
    """Print what is missing for these libraries; the exit status is 1 if one of them is not there."""
    for library in libraries:
        try:
            count, absent = missing(library)
        except (LookupError, ImportError, ValueError) as error:
            print(f"weft: {error}", file=sys.stderr)
            return 1
        print(f"{library} mentions {count} names of torch; weft does not have {len(absent)} of them")
        for name, places in absent.items():
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            print(f"  {name}\n      {places[0]}{more}")
    return 0
