"""Matrix products as kernels: `panels.py` or BLAS computes each on one thread, and the workers share a stack or the blocks of one.

OpenBLAS has threads of its own, but they start too late for short products, each product of a stack waits for them again, and
they wait for each other while other programs run. Here, a stack of products, or one large product cut into blocks, is a job for
the workers like any other kernel: the caller takes back the parts that a worker is slow to begin.
Measured on two cores, against OpenBLAS's threads: a step of a convolutional net 22 -> 15 ms, of a transformer block 41 -> 34.5 ms.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..core.dtype import DType, float32, float64
from ..core.kernel_names import named_per_plan
from . import workers
from .background import at_end_of_warming
from .blas import LETTERS, ONE_THREAD, gemm
from .dots import dots_code
from .kernel import SHARED_BYTES, Code, Launch, Loop, loop_code, shared, sharing
from .memory import FENCE
from .panels import CHAINS, COPIED_ROWS, HEADER, panel_lines, panels_code, tiles
from .product_blocks import blocks_code, suits_blocks
from .sliding import LINE, TOTALS, tile
from .structured import Body
from .vectors import has_masks
from .words import Block, block_of

# Multiplications: from this many on, a product is shared with a worker that is awake.
SHARED_WORK = 1 if FENCE else 1 << 18
# Multiplications: from this many on (about 150 us of work), waking a worker (20 to 50 us) costs less than it saves.
ALWAYS_SHARED_WORK = 1 if FENCE else 1 << 23
# Multiplications: up to this many, BLAS uses one thread anyway, so the call that limits its threads is skipped.
UNTHREADED_WORK = 1 << 16

# Rows: copying a matrix into panels takes as long as multiplying so many rows by it (3 to 4.5, measured on AMD Zen 4).
COPY_ROWS = 4

_IN_PANELS = (float32, float64)

# Rows and columns: with 32 registers, BLAS computes products with fewer, but for those with a vector, because they hardly use what a
# tile holds. With 16 registers panels take 12 us for 2x300 @ 300x300, and OpenBLAS 30 us (AMD Zen 3).
LEAST_SIZE = 4

_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112

# The words of meta: the BLAS function, the properties that all products share (forms of a and b, terms, distances between rows or
# columns in a, b and c), then for each task its rows, its columns and its offsets in c, a and b (bytes).
_HEADER, _TASK = 7, 5


@functools.cache
def _code(letter: str) -> Code:
    return loop_code(lambda b: _blas(b, letter), 3)


def _blas(b: Body, letter: str) -> None:
    """Tasks begin to end; operands are the addresses of c, a and b in `c = a @ b`."""
    part = "float" if letter in "sc" else "double"
    one, zero = f"{part} 1.0", f"{part} 0.0"
    if letter in "cz":  # BLAS takes complex numbers by address
        pair = f"[2 x {part}]"
        one, zero = (f"ptr {b.variable(pair, f'[{value}, {part} 0.0]')}" for value in (one, zero))
    operands = b.operands(3)
    function, *forms, terms, a_row, b_row, c_row = b.meta(_HEADER)
    left, right = (b.let(f"trunc i64 {form} to i32") for form in forms)
    multiply, tasks = b.pointer(function), b.at("%meta", 8 * _HEADER)
    with b.loop("%begin", "%end") as i:
        rows, columns, *offsets = b.words(b.place(tasks, (i, 8 * _TASK)), _TASK)
        c, x, y = (b.at(operand, offset) for operand, offset in zip(operands, offsets, strict=True))
        b.do(
            f"call void {multiply}(i32 {_ROW_MAJOR}, i32 {left}, i32 {right}, i64 {rows}, i64 {columns}, i64 {terms}, "
            f"{one}, ptr {x}, i64 {a_row}, ptr {y}, i64 {b_row}, {zero}, ptr {c}, i64 {c_row})"
        )


class Places(NamedTuple):
    """Where the matrices of a stack of products begin: the sizes of the stack, and its strides in c, a and b (elements)."""

    sizes: tuple[int, ...]
    c: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]

    @property
    def products(self) -> int:
        return math.prod(self.sizes)

    def rows(self) -> list[list[int]]:
        """Return the offsets of c, of a and of b."""
        found = []
        for strides in (self.c, self.a, self.b):
            row = [0]
            for size, stride in zip(self.sizes, strides, strict=True):
                row = [start + k * stride for start in row for k in range(size)]
            found.append(row)
        return found

    def transposed(self) -> Places:
        """Return the places with a and b exchanged."""
        return Places(self.sizes, self.c, self.b, self.a)


class Tasks(Block):
    """The words of a launch, and how many tasks they describe."""

    __slots__ = ("count",)

    count: int


def _tasks(words: Sequence[int], count: int) -> Tasks:
    made: Tasks = block_of(words, Tasks)
    made.count = count
    return made


def products(
    dtype: DType, sizes: tuple[int, int, int], left: Sequence[int], right: Sequence[int], places: Places
) -> Launch | None:
    """`c[i] = a[i] @ b[i]`, as `entry(c, a, b, meta, count)` with three addresses; None if there is no kernel for them.

    sizes: rows, terms and columns of each product. left, right: the strides of the matrices of a and b, one of which is 1; the
    matrices of c are contiguous. All are in elements.
    """
    if dtype not in _IN_PANELS and gemm(dtype) is None:
        return None
    return _products(dtype, sizes, tuple(left), tuple(right), places)


# Sizes choose the kernel here, for each plan, so that planning needs one template for all sizes.
@named_per_plan
def _products(dtype: DType, sizes: tuple[int, int, int], left, right, places: Places) -> Launch:
    rows, terms, columns = sizes
    if dtype not in _IN_PANELS or (has_masks() and 1 < min(rows, columns) < LEAST_SIZE):
        return _by_blas(dtype, sizes, left, right, places)
    if columns > 1:
        return _by_panels(dtype, sizes, left, right, places, "cab")
    # The product of the transposes, whose result has the same place.
    transposes = (right[1], right[0]), (left[1], left[0])
    return _by_panels(dtype, (1, terms, rows), *transposes, places.transposed(), "cba")


def _by_panels(dtype: DType, sizes, left, right, places: Places, order: str) -> Launch:
    rows, terms, columns = sizes
    if rows == left[1] == right[0] == 1:
        return _dots(dtype, dtype, (terms, columns), (left, right), places, order)
    work = places.products * rows * terms * columns
    transposed = right[1] != 1
    code, lines = _panels(dtype, rows, terms * columns * dtype.itemsize, transposed, order)
    tasks = _panel_tasks(dtype, sizes, left, right, places, lines, work >= SHARED_WORK)
    _with_other_sizes(dtype, transposed, order)
    return _launch(code, tasks, work)


def _panels(dtype: DType, rows: int, nbytes: int, transposed: bool, order: str) -> tuple[Code, int]:
    """Return the kernel for so many rows and a matrix b of `nbytes`, and the vectors of a panel."""
    if suits_blocks(rows, nbytes, transposed):
        return blocks_code(dtype, transposed, order), 1
    lines = panel_lines(rows)
    return panels_code(dtype, transposed, order, lines), lines


@functools.cache
def _with_other_sizes(dtype: DType, transposed: bool, order: str) -> None:
    """Let `weft warm` compile what products of all sizes need."""

    def compile_all() -> None:
        for rows in range(1, COPIED_ROWS + tile().rows):
            _, lines = _panels(dtype, rows, 0, transposed, order)
            _heights(dtype, rows, lines)
        dots_code(dtype, dtype, order)
        if has_masks():
            _code(LETTERS[dtype])  # for products of a few rows or columns

    at_end_of_warming(compile_all)


def _panel_tasks(dtype: DType, sizes, left, right, places: Places, lines: int, is_shared: bool) -> Tasks:
    (rows, terms, columns), size = sizes, dtype.itemsize
    at_once, heights = _heights(dtype, rows, lines)
    wide = lines * LINE // size
    by_rows, edges = _panel_edges(sizes, at_once, wide, places) if is_shared else (False, (0, columns))
    header = (terms, *[step * size for step in (*left, *right, columns)], *heights)
    return tasks_of(header, (rows, columns), (left[0], right[1]), places, by_rows, edges, (size,) * 3)


def _panel_edges(sizes, at_once: int, wide: int, places: Places) -> tuple[bool, Sequence[int]]:
    """Whether the blocks of a product that is shared are rows or columns, and where they begin and end."""
    rows, _, columns = sizes
    parts = blocks(places.products)
    if parts == 1:
        return False, (0, columns)
    longest_rows = _longest(rows, parts, at_once)
    longest_columns = _longest(columns, parts, wide)
    # Each block of rows copies all panels of b.
    by_rows = (longest_rows + COPY_ROWS) * columns < (rows + COPY_ROWS) * longest_columns
    return by_rows, block_edges(rows, parts, at_once) if by_rows else block_edges(columns, parts, wide)


@functools.lru_cache(maxsize=4096)
def _heights(dtype: DType, rows: int, lines: int) -> tuple[int, list[int]]:
    """The height of tiles that are as even as possible, and the words of a launch about it."""
    at_once = -(-rows // -(-rows // tile().rows))
    rest = tiles(dtype, rows % at_once, lines) if rows % at_once else (0, 0)
    return at_once, [at_once, *tiles(dtype, at_once, lines, CHAINS if rows == 1 else 1), *rest]


def _dots(dtype: DType, result: DType, sizes: tuple[int, int], strides, places: Places, order: str) -> Launch:
    """Compute products of rows and matrices by `dots.py`. sizes: terms and columns. strides: as in `products`."""
    nbytes = places.products * sizes[0] * sizes[1] * dtype.itemsize
    tasks = _dot_tasks(dtype, result, sizes, strides, places, nbytes >= SHARED_BYTES)
    # Each term of b is read from memory and used once.
    return Launch(sharing(dots_code(dtype, result, order), nbytes), tasks.address, tasks.count, tasks)


dot_products = named_per_plan(_dots)


def _dot_tasks(dtype: DType, result: DType, sizes, strides, places: Places, is_shared: bool) -> Tasks:
    (terms, columns), (left, right), size = sizes, strides, dtype.itemsize
    parts = blocks(places.products) if is_shared else 1
    header = (terms, *(step * size for step in (*left, *right)), *[0] * (len(HEADER) - 5))
    edges, itemsizes = block_edges(columns, parts, TOTALS), (result.itemsize, size, size)
    return tasks_of(header, (1, columns), (left[0], right[1]), places, False, edges, itemsizes)


def _by_blas(dtype: DType, sizes, left, right, places: Places) -> Launch:
    each = math.prod(sizes)
    work = places.products * each
    tasks = _blas_tasks(dtype, sizes, left, right, places, work >= SHARED_WORK)
    return _launch(_code(LETTERS[dtype]), tasks, work, each > UNTHREADED_WORK)


def _blas_tasks(dtype: DType, sizes, left, right, places: Places, is_shared: bool) -> Tasks:
    (rows, terms, columns), size = sizes, dtype.itemsize
    forms = [(_AS_IT_IS, s[0]) if s[1] == 1 else (_TRANSPOSED, s[1]) for s in (left, right)]
    function = gemm(dtype)
    assert function is not None
    header = (function, forms[0][0], forms[1][0], terms, forms[0][1], forms[1][1], columns)
    parts = blocks(places.products) if is_shared else 1
    by_rows = rows >= columns
    edges = block_edges(rows if by_rows else columns, parts, 1)
    return tasks_of(header, (rows, columns), (left[0], right[1]), places, by_rows, edges, (size,) * 3)


def _launch(code: Code, tasks: Tasks, work: int, limited: bool = False) -> Launch:
    if work < SHARED_WORK and not limited:
        return Launch(code.entry, tasks.address, tasks.count, Loop(code.loop, "ppp", tasks))
    entry = code.entry if work < SHARED_WORK else shared(code, work >= ALWAYS_SHARED_WORK)
    return Launch(_on_one_thread(entry) if limited else entry, tasks.address, tasks.count, tasks)


def _on_one_thread(entry: Callable) -> Callable:
    def call(c: int, a: int, b: int, meta: int, count: int) -> None:
        with ONE_THREAD:
            entry(c, a, b, meta, count)

    return call


def blocks(count: int) -> int:
    """The number of blocks that each product is cut into, so that a few large products keep all threads busy."""
    threads = workers.get_num_threads()
    return 1 if count % threads == 0 or count > 4 * threads else threads


def block_edges(count: int, parts: int, grain: int) -> list[int]:
    """Where the blocks of `count` rows or columns begin and end: at most `parts`, cut at multiples of `grain`."""
    inner = [(count * part // parts + grain // 2) // grain * grain for part in range(1, parts)]
    return sorted({0, *[min(edge, count) for edge in inner], count})


def _longest(count: int, parts: int, grain: int) -> int:
    edges = block_edges(count, parts, grain)
    return max([end - begin for begin, end in itertools.pairwise(edges)])


def tasks_of(
    header: Sequence[int],
    sizes: tuple[int, int],
    steps: tuple[int, int],
    places: Places,
    by_rows: bool,
    edges: Sequence[int],
    itemsizes: tuple[int, int, int],
) -> Tasks:
    """Return the header, then for each task its rows, its columns and its offsets: blocks of rows or of columns.

    steps: from row to row of a, from column to column of b (elements). itemsizes: of c, a and b.
    """
    rows, columns = sizes
    words, count = list(header), 0
    if not places.sizes and len(edges) == 2:  # the usual case, by a shorter way
        return _tasks((*words, rows, columns, 0, 0, 0), 1)
    lengths = [(begin, end - begin) for begin, end in itertools.pairwise(edges)]
    if places.products >= MANY_PRODUCTS:
        return _many_tasks(words, sizes, steps, places, by_rows, lengths, itemsizes)
    for place in zip(*places.rows()):
        for begin, length in lengths:
            c, a, b = place
            if by_rows:
                task = length, columns, c + begin * columns, a + begin * steps[0], b
            else:
                task = rows, length, c + begin, a, b + begin * steps[1]
            words += task[:2]
            words += [offset * size for offset, size in zip(task[2:], itemsizes)]
            count += 1
    return _tasks(words, count)


# Products of a stack: so many tasks are written by NumPy in less time. Measured on AMD Zen 3: 64 take 20 us, in Python 190 us.
MANY_PRODUCTS = 8
# Products of a stack whose positions are kept.
MOST_KEPT = 1 << 12


def _many_tasks(
    header: list[int],
    sizes: tuple[int, int],
    steps: tuple[int, int],
    places: Places,
    by_rows: bool,
    lengths: list[tuple[int, int]],
    itemsizes: tuple[int, int, int],
) -> Tasks:
    """Compute `tasks_of` by arrays."""
    count = places.products * len(lengths)
    memory = np.empty(len(header) + _TASK * count, np.int64)
    memory[: len(header)] = header
    tasks = memory[len(header) :].reshape(places.products, len(lengths), _TASK)
    strides = np.array((places.c, places.a, places.b)) * np.array(itemsizes)[:, None]
    positions = _positions if places.products <= MOST_KEPT else _positions.__wrapped__
    offsets = positions(places.sizes) @ strides.T
    for k, (begin, length) in enumerate(lengths):
        start = (begin * sizes[1], begin * steps[0], 0) if by_rows else (begin, 0, begin * steps[1])
        tasks[:, k, :2] = (length, sizes[1]) if by_rows else (sizes[0], length)
        tasks[:, k, 2:] = (
            offsets + [each * size for each, size in zip(start, itemsizes)] if begin else offsets
        )
    made = Tasks()
    made.memory, made.address, made.count = memory, memory.ctypes.data, count
    return made


@functools.lru_cache(maxsize=64)
def _positions(sizes: tuple[int, ...]) -> np.ndarray:
    """Return the position of each matrix of a stack in its dims: [products, dims]."""
    return np.indices(sizes).reshape(len(sizes), -1).T
