"""Pipes that call a function with each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import check_unpickable_fn

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data: Any) -> Any:
    """Return the element itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn(element)`."""

    def __init__(self, datapipe: Any, fn: Callable = default_fn) -> None:
        super().__init__()
        check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])
