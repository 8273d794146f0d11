"""Tables of decompositions: `torch.export.decomp_utils`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..library.decompositions import core_aten_decompositions

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict[Any, Callable]):
    """The decompositions of a program: functions by operator. A new table has those of operators that are not in the core set."""

    def __init__(self, entries: dict[Any, Callable] | None = None) -> None:
        super().__init__(core_aten_decompositions() if entries is None else entries)

    def materialize(self) -> dict[Any, Callable]:
        """The table as a plain dict."""
        return dict(self)

    def copy(self) -> CustomDecompTable:
        """Another table with the same entries."""
        return CustomDecompTable(dict(self))
