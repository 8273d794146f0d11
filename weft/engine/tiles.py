"""Square tiles for loops whose innermost dim is contiguous in one operand and strided in another, as in a transposed copy.

Without tiles, such a loop touches a new cache line of the strided operand with each element, and the line has left the cache
before the loop reads its next element. In tiles, the loop uses a line again after TILE elements. Tiles add two dims to the
iteration and do not change the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# Elements: 16 float32 fill a cache line. Rows whose distance is a power of two share a few places of the first-level cache, and
# fewer rows stay there: x + y.t() of 1000 x 1000 takes 1.9 ms in tiles of 16 and 2.8 ms in tiles of 32 (AMD Zen 4).
TILE = 16
CACHE_LINE = 64  # bytes
SMALLEST = 1 << 18  # bytes that the strided operand spans; below, it stays in the second-level cache anyway
# Bytes; the same for copies, whose tiles are transposed in registers. Below, the operand stays in the first-level cache.
SMALLEST_COPY = 1 << 15


class Region(NamedTuple):
    """A part of an iteration: where each operand starts (in bytes), the sizes and the strides (in bytes)."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def regions(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], itemsizes: Sequence[int], smallest: int = SMALLEST
) -> list[Region]:
    """The iteration as tiles and the rest at two edges; one region if tiles would not help."""
    whole = Region((0,) * len(strides), tuple(sizes), tuple(map(tuple, strides)))
    across = _crossing_dim(sizes, strides, itemsizes, smallest)
    if across is None:
        return [whole]
    order = [dim for dim in range(len(sizes)) if dim != across][:-1] + [across, len(sizes) - 1]
    sizes = [sizes[dim] for dim in order]
    rows = [[row[dim] for dim in order] for row in strides]
    *outer, high, wide = sizes
    count_high, count_wide = high // TILE, wide // TILE
    tiles = Region(
        whole.offsets,
        (*outer, count_high, count_wide, TILE, TILE),
        tuple((*row[:-2], row[-2] * TILE, row[-1] * TILE, row[-2], row[-1]) for row in rows),
    )
    found = [tiles]
    if wide % TILE:
        offsets = tuple(row[-1] * count_wide * TILE for row in rows)
        found.append(Region(offsets, (*outer, high, wide % TILE), tuple(map(tuple, rows))))
    if high % TILE:
        offsets = tuple(row[-2] * count_high * TILE for row in rows)
        found.append(Region(offsets, (*outer, high % TILE, count_wide * TILE), tuple(map(tuple, rows))))
    return found


def _crossing_dim(sizes, strides, itemsizes, smallest: int) -> int | None:
    """A dim along which an operand is contiguous, while the innermost loop strides over that operand; None if there is none."""
    if len(sizes) < 2:
        return None
    for row, itemsize in zip(strides, itemsizes):
        # The span comes first, so that one template serves all small sizes.
        if row[-1] * sizes[-1] < smallest or row[-1] < CACHE_LINE or sizes[-1] < 2 * TILE:
            continue
        for dim in range(len(sizes) - 1):
            if row[dim] == itemsize and sizes[dim] >= 2 * TILE:
                return dim
    return None
