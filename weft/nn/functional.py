"""weft.nn.functional: the functions of neural networks."""

from __future__ import annotations

from ..compat.missing import missing_function, module_getattr
from ..core.op import namespace

grouped_mm = missing_function("torch.nn.functional.grouped_mm", "multiply group by group with `@`")
scaled_mm = missing_function("torch.nn.functional.scaled_mm", "scale and convert, then multiply with `@`")
globals().update(namespace("nn.functional"))

__getattr__ = module_getattr(__name__)
