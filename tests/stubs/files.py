"""All stubs."""

from __future__ import annotations

import ast
from pathlib import Path

import weft
from weft.nn import functional

from . import methods, namespaces, packages, results, served

PACKAGE = Path(weft.__file__).parent


def stubs() -> dict[Path, str]:
    """File -> its text."""
    texts = {
        "__init__.pyi": namespaces.root_stub(),
        "core/tensor_methods.pyi": methods.stub(),
        "nn/functional.pyi": _layers(),
        **packages.stubs(),
        **served.stubs(),
        "return_types.pyi": results.stub(),
    }
    return {PACKAGE / name: text for name, text in texts.items()}


def _layers() -> str:
    """The stub of nn.functional: functions of the run time, and what the file imports and defines besides."""
    body = ast.parse(Path(functional.__file__).read_text(encoding="utf-8")).body
    lines = namespaces.functions("nn.functional.") + packages.exports(body, {})
    lines += [f"{name}: Any" for name in vars(functional) if name.isupper()]
    return namespaces.with_imports(lines, 1)
