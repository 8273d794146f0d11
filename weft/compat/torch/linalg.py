"""Linear algebra, `torch.linalg`."""

from __future__ import annotations

from weft.core.registry import namespace

globals().update(namespace("linalg"))
