"""Nested tensors, `torch.nested`: batches of tensors with different sizes."""

from __future__ import annotations

from .compat.missing import module_getattr
from .core.registry import namespace

globals().update(namespace("nested"))

__getattr__ = module_getattr(__name__)
