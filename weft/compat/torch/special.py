"""Special functions, `torch.special`."""

from __future__ import annotations

from weft.compat.missing import module_getattr
from weft.core.registry import namespace

globals().update(namespace("special"))
__all__ = [*namespace("special")]

__getattr__ = module_getattr(__name__)
