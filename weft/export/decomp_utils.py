"""Tables of decompositions: `torch.export.decomp_utils`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compat.missing import module_getattr

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict[Any, Callable]):
    """The decompositions of a program: functions by operator. It begins empty, because weft's graphs are not decomposed."""

    def materialize(self) -> dict[Any, Callable]:
        """The table as a plain dict."""
        return dict(self)

    def copy(self) -> CustomDecompTable:
        """Another table with the same entries."""
        return CustomDecompTable(self)


__getattr__ = module_getattr(__name__)
