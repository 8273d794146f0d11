"""Operations on the elements that a mask selects, `torch.masked`."""

from __future__ import annotations

from .core.op import namespace

globals().update(namespace("masked"))
