"""The way to a leaf: one key for each container on it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """Return the way to a leaf, as one would write it.

    >>> keystr((SequenceKey(1), MappingKey("a"), GetAttrKey("b")))
    "[1]['a'].b"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what is at the end of the way."""
    return functools.reduce(lambda found, key: key.get(found), kp, obj)
