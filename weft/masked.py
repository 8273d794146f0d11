"""Operations on the elements that a mask selects, `torch.masked`."""

from __future__ import annotations

from .compat.missing import module_getattr
from .core.op import namespace

globals().update(namespace("masked"))

__getattr__ = module_getattr(__name__)
