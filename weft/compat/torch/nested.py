"""Nested tensors, `torch.nested`: batches of tensors with different sizes."""

from __future__ import annotations

from weft.core.registry import namespace

globals().update(namespace("nested"))
__all__ = [*namespace("nested")]
