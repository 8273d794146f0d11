"""Nested tensors, `torch.nested`: batches of tensors with different sizes."""

from __future__ import annotations

from weft.compat.missing import module_getattr
from weft.core.registry import namespace

globals().update(namespace("nested"))
__all__ = [*namespace("nested")]

__getattr__ = module_getattr(__name__)
