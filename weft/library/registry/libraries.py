"""Compiled libraries of operators that weft has operators for, which `torch.ops.load_library` registers."""

from __future__ import annotations

import importlib
from pathlib import PurePath

# (folder, beginning of the file's name) of a compiled library -> the module of weft that registers its operators.
LIBRARIES = {
    ("torchvision", "_C"): "weft.compat.extensions.torchvision_autograd",
    ("torchvision", "_C_stable"): "weft.compat.extensions.torchvision",
    ("torchvision", "image"): "weft.compat.extensions.image",
    ("torchvision", "image_stable"): "weft.compat.extensions.image",
}


def load(path: str) -> bool:
    """Register the operators of the library in the file `path`; whether there are any."""
    place = PurePath(path)
    module = LIBRARIES.get((place.parent.name, place.name.partition(".")[0]))
    if module is None:
        return False
    importlib.import_module(module)
    return True
