"""Special functions, `torch.special`."""

from __future__ import annotations

from weft.compat.missing import module_getattr
from weft.core.registry import FUNCTIONS

PREFIX = "special."
globals().update({name.removeprefix(PREFIX): f for name, f in FUNCTIONS.items() if name.startswith(PREFIX)})

__getattr__ = module_getattr(__name__)
