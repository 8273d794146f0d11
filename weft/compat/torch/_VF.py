"""`torch._VF`: the functions of `torch` that PyTorch has in C++, for code that must not call Python's wrappers of them."""

from __future__ import annotations

from typing import Any

import weft


def __getattr__(name: str) -> Any:
    return getattr(weft, name)
