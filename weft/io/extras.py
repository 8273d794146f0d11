"""Libraries that only some formats need."""

import importlib
from typing import Any


def library(name: str, extra: str) -> Any:
    """The module of this name.

    Raises: ImportError that says which extra of weft brings it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this needs {name.partition('.')[0]}, which is not installed: pip install weft[{extra}]",
            name=error.name,
        ) from error
