"""Linear algebra, `torch.linalg`."""

from __future__ import annotations

from weft.compat.missing import module_getattr
from weft.core.registry import namespace

globals().update(namespace("linalg"))

__getattr__ = module_getattr(__name__)
