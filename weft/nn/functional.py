"""weft.nn.functional: the functions of neural networks."""

from __future__ import annotations

from ..compat.missing import module_getattr
from ..core.op import namespace

globals().update(namespace("nn.functional"))

__getattr__ = module_getattr(__name__)
