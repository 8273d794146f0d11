"""Which pipes a pipe is made of."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.warn import user_level
from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, dict]]:
    """{id(pipe): (pipe, the same of the pipes that it is made of)}.

    >>> from weft.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper([1]).batch(2)
    >>> (found, parts), = traverse_dps(pipe).values()
    >>> found is pipe, [type(part).__name__ for part, _ in parts.values()]
    (True, ['IterableWrapperIterDataPipe'])
    """
    return _traversed(datapipe, set())


def _traversed(datapipe: Any, seen: set[int]) -> dict[int, tuple[Any, dict]]:
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in seen:
        return {}
    inner = seen | {id(datapipe)}
    parts: dict = {}
    for each in _pipes(list(vars(datapipe).values()), 0):
        parts.update(_traversed(each, inner))
    return {id(datapipe): (datapipe, parts)}


def _pipes(value: Any, depth: int) -> list[Any]:
    """Return the pipes in nested containers."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        return [value]
    if depth > 5:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set)):
        return [pipe for each in value for pipe in _pipes(each, depth + 1)]
    return []


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, tuple[Any, dict]]:
    """`traverse_dps`, by its old name."""
    warnings.warn(
        "`traverse` function and will be removed after 1.13. Please use `traverse_dps` instead.",
        FutureWarning,
        stacklevel=user_level(),
    )
    return traverse_dps(datapipe)
