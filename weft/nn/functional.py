"""weft.nn.functional: the functions of neural networks."""

from __future__ import annotations

from collections.abc import Callable

from ..core.op import namespace


def __getattr__(name: str) -> Callable:
    raise AttributeError(f"module 'weft.nn.functional' has no attribute {name!r}")


globals().update(namespace("nn.functional"))
