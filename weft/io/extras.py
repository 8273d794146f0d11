"""Libraries that only some formats need."""

import importlib
from typing import Any

# Under which name the package of a module is installed, where that is another one.
_PACKAGES = {"PIL": "pillow"}


def library(name: str, extra: str) -> Any:
    """The module of this name.

    Raises: ImportError that says which extra of weft brings it.
    """
    module = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this needs {_PACKAGES.get(module, module)}, which is not installed: pip install 'weft[{extra}]'",
            name=error.name,
        ) from error
