"""Imports optional dependencies of some formats."""

import importlib
from typing import Any

# Module -> name of its distribution, where they differ.
_PACKAGES = {"PIL": "pillow"}


def library(name: str, extra: str) -> Any:
    """Return the module of this name.

    Raises: ImportError that names the extra of weft to install.
    """
    module = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this needs {_PACKAGES.get(module, module)}, which is not installed: pip install 'weft[{extra}]'",
            name=error.name,
        ) from error
