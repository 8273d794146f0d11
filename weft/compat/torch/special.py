"""Special functions, `torch.special`."""

from __future__ import annotations

from weft.core.registry import namespace

globals().update(namespace("special"))
__all__ = [*namespace("special")]
