"""How a DeviceMesh lies in the row of all ranks of the mesh that it was taken from, as PyTorch's files say it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

MOST_RANKS = 1 << 24  # of a mesh in a file, which is not trusted


def _numbers(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, tuple) or any(
        type(each) is not int or not 0 <= each < MOST_RANKS for each in values
    ):
        raise ValueError(
            f"{what} of the layout of a mesh must be a tuple of numbers from 0 to {MOST_RANKS - 1}"
        )
    return values


class _FlatLayout:
    """One dimension of a mesh: sizes and strides, outermost first, that are counted through in one go."""

    __slots__ = ("shape", "stride")

    def __init__(self, shape: Sequence[int], stride: Sequence[int]) -> None:
        self.__setstate__({"shape": tuple(shape), "stride": tuple(stride)})

    def __getstate__(self) -> dict[str, Any]:
        return {"shape": self.shape, "stride": self.stride}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises: ValueError for a state that is none of a layout."""
        self.shape, self.stride = (_numbers(state.get(name), name) for name in ("shape", "stride"))
        if len(self.shape) != len(self.stride):
            raise ValueError("a layout of a mesh has as many strides as sizes")

    @classmethod
    def of(cls, steps: Sequence[tuple[int, int]]) -> _FlatLayout:
        """The layout of (size, stride), outermost first; those that can be counted through as one are one, as in PyTorch."""
        found: list[tuple[int, int]] = []
        for size, stride in steps:
            if size == 1:
                continue
            if found and found[-1][1] == size * stride:
                size *= found.pop()[0]
            found.append((size, stride))
        return cls([size for size, _ in found], [stride for _, stride in found])

    def has(self, size: int, stride: int) -> bool:
        """Whether the layout counts through a dimension of this size and stride."""
        own = zip(self.shape, self.stride)
        return size > 1 and any(step <= stride and size * stride <= step * count for count, step in own)

    @property
    def offsets(self) -> list[int]:
        """Where each element lies."""
        steps = [
            range(0, size * stride, stride) if stride else [0] * size
            for size, stride in zip(self.shape, self.stride)
        ]
        return [sum(each) for each in product(*steps)]


class _MeshLayout:
    """The dimensions of a mesh."""

    __slots__ = ("axes",)

    def __init__(self, axes: Sequence[_FlatLayout]) -> None:
        self.axes = tuple(axes)

    def __getstate__(self) -> dict[str, Any]:
        return {"axes": self.axes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises: ValueError for a state that is none of a layout."""
        axes = state.get("axes")
        if not isinstance(axes, tuple) or not all(isinstance(each, _FlatLayout) for each in axes):
            raise ValueError("the layout of a mesh consists of a layout of each dimension")
        self.axes = axes

    def meshes(self, ranks: Sequence[int]) -> list[list[int]]:
        """The ranks of each mesh that lies so among all ranks. No two meshes have a rank in common.

        Raises: ValueError if they do not fit in.
        """
        count = prod(prod(axis.shape) for axis in self.axes)
        if not 0 < count <= len(ranks) or len(ranks) % count:
            raise ValueError(f"a mesh of {count} ranks does not fit into {len(ranks)} ranks")
        offsets = [sum(each) for each in product(*[axis.offsets for axis in self.axes])]
        left, found = dict.fromkeys(range(len(ranks))), []
        while left:
            first = next(iter(left))
            places = [first + offset for offset in offsets]
            if any(left.pop(place, place) is not None for place in places):
                raise ValueError(
                    f"meshes with the offsets {offsets} overlap, or do not fit into {len(ranks)} ranks"
                )
            found.append([ranks[place] for place in places])
        return found
