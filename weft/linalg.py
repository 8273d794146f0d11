"""Linear algebra, `torch.linalg`."""

from __future__ import annotations

from .core.op import namespace

globals().update(namespace("linalg"))
