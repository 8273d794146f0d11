"""`torch._VF`: the functions of `torch` that PyTorch has in C++, for code that must not call Python's wrappers of them."""

from __future__ import annotations

from typing import Any

import weft

# Functions in C++ that `torch` itself does not show.
_HIDDEN = frozenset(("unique_dim",))


def __getattr__(name: str) -> Any:
    return getattr(weft.ops.aten if name in _HIDDEN else weft, name)
