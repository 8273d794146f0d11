"""Products of matrices of bytes: how they are cut into tasks, and which kernel computes them (`byte_tiles.py`, `byte_blocks.py`).

The sums wrap around as int32 does, so the results depend neither on the order of the terms nor on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from .byte_blocks import blocks_code, suits_byte_blocks
from .byte_tiles import QUAD, TASK, Epilogue, Pieces, shape, tiles_code
from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK, block_edges, blocks
from .kernel import Launch, shared


def line_bytes(terms: int) -> int:
    """Return the bytes of a line."""
    return -(-terms // QUAD) * QUAD * shape().lanes


def byte_products(
    epilogue: Epilogue,
    sizes: tuple[int, int, int],
    a_row: int,
    c_row: int,
    groups: int,
    pieces: Pieces | None = None,
) -> Launch:
    """Write `c[i] = epilogue(a[i] @ b[i])` as `entry(c, a, lines of b, columns..., rows..., params..., meta, tasks)`.

    sizes: rows, terms and columns of each product. a_row, c_row: from row to row, in elements. The rows of the groups lie side by side: those
    of a[i] begin `terms` elements behind those of a[i - 1], and those of c[i] `columns` elements behind. The lines of the groups follow
    each other. Vectors have an element for each column, or row, of each group. With `pieces`, the rows of a are where these say.
    """
    rows, terms, columns = sizes
    how, size = shape(), epilogue.result.dtype.itemsize
    line, wide = line_bytes(terms), how.lanes * how.lines
    work = groups * math.prod(sizes)
    parts = 1 if work < SHARED_WORK else blocks(groups)
    by_rows = columns < parts * wide
    edges = np.array(block_edges(rows if by_rows else columns, parts, how.heights[0] if by_rows else wide))
    tasks = np.zeros((groups, len(edges) - 1, len(TASK)), np.int64)
    tasks[..., :2] = rows, columns
    group = np.arange(groups)[:, None]
    tasks[..., 2], tasks[..., 3] = group * rows, group * columns
    tasks[..., 4] = group * columns * size
    tasks[..., 5] = 0 if pieces else group * terms
    tasks[..., 6] = group * (-(-columns // how.lanes) * line)
    tasks[..., 0 if by_rows else 1] = np.diff(edges)
    starts = edges[:-1]
    if by_rows:
        for word, step in ((2, 1), (4, c_row * size), (5, 0 if pieces else a_row)):
            tasks[..., word] += starts * step
    else:
        for word, step in ((3, 1), (4, size)):
            tasks[..., word] += starts * step
        tasks[..., 6] += starts // how.lanes * line
    header = [terms, a_row, c_row * size, line, 1, 0, 0]
    if pieces:
        count = len(pieces.steps)
        header = [terms // count, 0, c_row * size, line, count, *(each.ctypes.data for each in pieces)]
    meta = np.concatenate([np.array(header, np.int64), tasks.ravel()])
    if suits_byte_blocks(how, int(tasks[..., 0].max(initial=0)), terms):
        code = blocks_code(epilogue, how, pieces is not None)
    else:
        code = tiles_code(epilogue, how, pieces is not None)
    # A quad takes as long as one multiplication of floats.
    entry = code.entry if work < QUAD * SHARED_WORK else shared(code, work >= QUAD * ALWAYS_SHARED_WORK)
    return Launch(entry, meta.ctypes.data, groups * (len(edges) - 1), (meta, pieces))
