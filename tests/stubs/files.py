"""All stubs."""

from __future__ import annotations

from pathlib import Path

import weft

from . import methods, namespaces, packages, results, served

PACKAGE = Path(weft.__file__).parent


def stubs() -> dict[Path, str]:
    """File -> its text."""
    texts = {
        "__init__.pyi": namespaces.root_stub(),
        "core/tensor_methods.pyi": methods.stub(),
        "nn/functional.pyi": namespaces.with_imports(namespaces.functions("nn.functional."), 1),
        **packages.stubs(),
        **served.stubs(),
        "return_types.pyi": results.stub(),
    }
    return {PACKAGE / name: text for name, text in texts.items()}
