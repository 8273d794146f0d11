"""The order of loops: square tiles, and blocks where the innermost dim is short.

Tiles are for loops whose innermost dim is contiguous in one operand and strided in another, as in a transposed copy.
Without tiles, such a loop touches a new cache line of the strided operand with each element, and the line has left the cache
before the loop reads its next element. In tiles, the loop uses a line again after TILE elements. Tiles add two dims to the
iteration and do not change the kernel.

A row of three elements, such as the colors of a pixel, takes as long as its call. So the dim outside of a short one becomes the innermost
one, in blocks that stay in the first-level cache until the last color is done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

# Elements: 16 float32 fill a cache line. Rows whose distance is a power of two share a few places of the first-level cache, and
# fewer rows stay there: x + y.t() of 1000 x 1000 takes 1.9 ms in tiles of 16 and 2.8 ms in tiles of 32 (AMD Zen 4).
TILE = 16
CACHE_LINE = 64  # bytes
SMALLEST = 1 << 18  # bytes that the strided operand spans; below, it stays in the second-level cache anyway
# Bytes; the same for copies, whose tiles are transposed in registers. Below, the operand stays in the first-level cache.
SMALLEST_COPY = 1 << 15
# Elements: an innermost dim up to SHORT changes places with one that has at least LONG, in blocks of BLOCK; one up to SHORT_STRIDED, if an
# operand is strided along it, so that vectors do not serve the row. Measured on AMD Zen 3, one thread: a [3, 224, 224] float32 to
# [224, 224, 3] takes 128 us and 385 in rows of 3; an [8, 40000] of bytes transposed 0.28 ms and 0.73; x * x.sum(1, keepdim=True) of
# [50000, 3] float32 0.12 ms and 0.17, but of [40000, 8], which is not turned, it would take 0.35 ms instead of 0.19.
SHORT, SHORT_STRIDED, LONG, BLOCK = 4, 8, 32, 256
# Elements: a loop with fewer stays as it is, because a template of its own for short dims would cost more than it gains.
MANY = 1 << 12


class Region(NamedTuple):
    """A part of an iteration: where each operand starts (in bytes), the sizes and the strides (in bytes)."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def regions(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], itemsizes: Sequence[int], smallest: int = SMALLEST
) -> list[Region]:
    """The iteration as tiles and the rest at two edges, or as blocks and the rest behind them; one region if neither would help.

    The class of each operand's innermost stride is the same in all regions.
    """
    whole = Region((0,) * len(strides), tuple(sizes), tuple(map(tuple, strides)))
    if len(sizes) > 1 and math.prod(sizes) >= MANY and sizes[-1] <= SHORT_STRIDED and sizes[-2] >= LONG:
        if sizes[-1] <= SHORT or any(row[-1] not in (0, size) for row, size in zip(strides, itemsizes)):
            return _in_blocks(whole)
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


def _in_blocks(whole: Region) -> list[Region]:
    """Exchange the two innermost dims, cut the longer one into blocks, and put the rest behind them."""
    *outer, long, short = whole.sizes
    turned = [(*row[:-2], row[-1], row[-2]) for row in whole.strides]
    if long < 2 * BLOCK:
        return [Region(whole.offsets, (*outer, short, long), tuple(turned))]
    count = long // BLOCK
    strides = tuple((*row[:-2], row[-1] * BLOCK, *row[-2:]) for row in turned)
    found = [Region(whole.offsets, (*outer, count, short, BLOCK), strides)]
    if long % BLOCK:
        offsets = tuple(row[-1] * count * BLOCK for row in turned)
        found.append(Region(offsets, (*outer, short, long % BLOCK), tuple(turned)))
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
