"""Transposed copies: square tiles of vectors that change rows and columns in registers.

An element by element copy of a tile reads each cache line of the source once for each of its elements. Rows whose distance is a power
of two share few places of the cache, so that the lines are gone in between. Here, each line is read once and written once.
"""

from __future__ import annotations

from typing import NamedTuple

from . import host
from .structured import Body, function
from .tiles import Region
from .vectors import transposed


class TransposedTiles(NamedTuple):
    """Writes a loop over tiles of `side` elements a side."""

    side: int
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    rows: tuple[int, int]  # the distances in bytes between rows of a tile in the target and in the source


def transposed_tiles(tiles: Region, itemsize: int) -> TransposedTiles | None:
    """The tiles of a copy as transpositions in registers, if the target is contiguous one way and the source the other way."""
    (*_, down, across), (*_, source_down, source_across) = tiles.strides
    if itemsize not in (4, 8) or across != itemsize or source_down != itemsize:
        return None
    side = _register_bytes() // itemsize
    outer, (high, wide, tile, _) = tiles.sizes[:-4], tiles.sizes[-4:]
    strides = tuple((*row[:-4], row[-2] * side, row[-1] * side) for row in tiles.strides)
    sizes = (*outer, high * tile // side, wide * tile // side)
    return TransposedTiles(side, sizes, strides, (down, source_across))


def _register_bytes() -> int:
    return 64 if "+avx512f" in host.cpu()[1].split(",") else 32


def transposition_ir(itemsize: int, side: int) -> str:
    """`row(target, its stride, source, its stride, params, n)`: n tiles; the params are `TransposedTiles.rows`."""
    kind = f"<{side} x i{8 * itemsize}>"

    def write(b: Body) -> None:
        target_row, source_row = b.words("%params", 2)
        with b.loop(0, "%n") as i:
            target, source = b.place("%p0", (i, "%s0")), b.place("%p1", (i, "%s1"))
            rows = []
            for k in range(side):
                rows.append(b.let(f"load {kind}, ptr {b.place(source, (source_row, k))}, align {itemsize}"))
            for k, row in enumerate(transposed(b, kind, rows)):
                b.do(f"store {kind} {row}, ptr {b.place(target, (target_row, k))}, align {itemsize}")

    return function("row", "ptr %p0, i64 %s0, ptr %p1, i64 %s1, ptr %params, i64 %n", set(), write)
