"""Products of bfloat16 matrices by the processor's own instruction, where it has one (AVX512-BF16).

`vdpbf16ps` multiplies pairs of neighbours and adds both products to a float32. So terms are taken two at a time: the pairs of a row of
`a` are neighbours in memory already, and 32 columns of `b` are packed into a panel in which the two rows of a pair alternate. A tile of
8 rows and 32 columns of `c` stays in registers until its sum is complete, and is rounded once. The order of the terms depends on nothing
but their number. The instruction treats subnormal numbers as 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..core.dtype import DType, float32, int16
from ..core.symbols import per_plan
from . import workers
from .convert import convert
from .expr import load
from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK, Places, Tasks, dot_products, tasks_of
from .kernel import Code, Launch, loop_code, shared
from .llvm import emit
from .structured import Body, each_height, function
from .vectors import add_pairs, broadcast, lanes_below, load_lanes, store_lanes, transposed

# Columns of a panel: two registers, each of 16 float32.
_COLUMNS, _LANES = 32, 16
_PAIR_BYTES = 2 * 2 * _COLUMNS  # of a panel
# Rows of a tile: 8 rows use 16 of 32 registers for the sums, and each loaded column serves 8 rows. Left-over rows take smaller tiles.
_TILES = (8, 4, 1)
# Terms: the panel lies on the stack of the thread, where it takes 64 bytes for each term, 256 KiB at most.
MOST_TERMS = 4096

# The words of meta: the terms, the distances in bytes between rows of a, rows of b, columns of b, and rows of c; then for each task its
# rows, its columns and its offsets in c, a and b (bytes).
_HEADER, _TASK = 5, 5

_SUM = f"<{_LANES} x float>"
_PAIRS = f"<{_LANES} x i32>"


@functools.cache
def _code(result: DType, order: str) -> Code:
    declarations: set[str] = set()
    parts = [_tile(rows, result, declarations) for rows in _TILES]
    parts += [_pack_rows(declarations), _pack_columns(declarations)]
    return loop_code(lambda body: _loop(body, result, order), 3, parts=parts, declarations=declarations)


def _tile(rows: int, result: DType, declarations: set[str]) -> str:
    """Write `tile(a, stride of a's rows, panel, terms, c, stride of c's rows, columns)`: `rows` rows."""
    halves = range(_COLUMNS // _LANES)

    def add_pair(body: Body, sums: list[list[str]], pair: str, kind: str) -> None:
        """Add the products of one pair of terms. The kind "i16" reads only the first term of the pair, which is the last of all."""
        at = body.integer("mul", pair, _PAIR_BYTES)
        panel = [
            body.let(f"load {_PAIRS}, ptr {body.at(body.at('%panel', at), 64 * half)}, align 64")
            for half in halves
        ]
        for row in range(rows):
            place = body.place("%a", ("%down", row), (pair, 4))
            value = body.let(f"load {kind}, ptr {place}, align 2")
            if kind == "i16":
                value = body.let(f"zext i16 {value} to i32")
            pairs = broadcast(body, "i32", _LANES, value)
            for half in halves:
                total = add_pairs(body, body.get(sums[row][half], _SUM), pairs, panel[half], _PAIRS)
                body.set(sums[row][half], _SUM, total)

    def write(body: Body) -> None:
        sums = [[body.variable(_SUM, "zeroinitializer") for _ in halves] for _ in range(rows)]
        whole = body.integer("lshr", "%terms", 1)
        with body.loop(0, whole) as pair:
            add_pair(body, sums, pair, "i32")
        with body.when(body.let("trunc i64 %terms to i1")):
            add_pair(body, sums, whole, "i16")
        total = load(0, float32)
        for half in halves:
            inside = lanes_below(body, _LANES, body.integer("sub", "%columns", half * _LANES))
            for row in range(rows):
                (rounded,) = emit(
                    body, [convert(total, result)], {total: body.get(sums[row][half], _SUM)}, _LANES
                )
                place = body.at(body.place("%c", ("%below", row)), result.itemsize * _LANES * half)
                store_lanes(body, result, _LANES, rounded, place, inside)

    parameters = "ptr %a, i64 %down, ptr %panel, i64 %terms, ptr %c, i64 %below, i64 %columns"
    return function(f"tile{rows}", parameters, declarations, write, "internal")


def _pack_rows(declarations: set[str]) -> str:
    """`pack_rows(b, stride of rows, stride of columns, terms, columns, panel)` for columns that are neighbours in memory."""
    kind = f"<{_COLUMNS} x i16>"

    def write(body: Body) -> None:
        mask = lanes_below(body, _COLUMNS, "%columns")
        pairs = body.integer("lshr", body.integer("add", "%terms", 1), 1)
        with body.loop(0, pairs) as pair:
            first = body.integer("mul", pair, 2)
            second = body.integer("add", first, 1)
            there = body.let(f"icmp slt i64 {second}, %terms")
            below = body.let(
                f"select i1 {there}, <{_COLUMNS} x i1> {mask}, <{_COLUMNS} x i1> zeroinitializer"
            )
            rows = [
                load_lanes(body, int16, _COLUMNS, body.place("%b", (term, "%down")), inside)
                for term, inside in ((first, mask), (second, below))
            ]
            order = ", ".join(f"i32 {lane}, i32 {lane + _COLUMNS}" for lane in range(_COLUMNS))
            both = body.let(
                f"shufflevector {kind} {rows[0]}, {kind} {rows[1]}, <{2 * _COLUMNS} x i32> <{order}>"
            )
            place = body.place("%panel", (pair, _PAIR_BYTES))
            body.do(f"store <{2 * _COLUMNS} x i16> {both}, ptr {place}, align 64")

    return function("pack_rows", _PACK, declarations, write, "internal")


_PACK = "ptr %b, i64 %down, i64 %across, i64 %terms, i64 %columns, ptr %panel"


def _pack_columns(declarations: set[str]) -> str:
    """`pack_columns(b, stride of rows, stride of columns, terms, columns, panel)` for rows that are neighbours in memory."""

    def write(body: Body) -> None:
        whole = body.integer("lshr", "%terms", 1)
        odd = body.let("trunc i64 %terms to i1")
        with body.when(body.let(f"icmp slt i64 %columns, {_COLUMNS}")):
            pairs = body.integer("lshr", body.integer("add", "%terms", 1), 1)
            nbytes = body.integer("mul", pairs, _PAIR_BYTES)
            body.clear("%panel", nbytes)
        squares = body.integer("and", whole, -_LANES)
        squares = body.let(f"select i1 {body.let(f'icmp eq i64 %columns, {_COLUMNS}')}, i64 {squares}, i64 0")
        for first in range(0, _COLUMNS, _LANES):
            with body.loop(0, squares, _LANES) as pair:
                source = body.place("%b", (pair, 4))
                places = [body.place(source, ("%across", first + lane)) for lane in range(_LANES)]
                rows = transposed(
                    body, _PAIRS, [body.let(f"load {_PAIRS}, ptr {place}, align 2") for place in places]
                )
                target = body.place("%panel", (pair, _PAIR_BYTES))
                for k, row in enumerate(rows):
                    place = body.at(target, k * _PAIR_BYTES + 4 * first)
                    body.do(f"store {_PAIRS} {row}, ptr {place}, align 64")
        with body.loop(0, "%columns") as column:
            source = body.place("%b", (column, "%across"))
            target = body.place("%panel", (column, 4))
            with body.loop(squares, whole) as pair:
                value = body.let(f"load i32, ptr {body.place(source, (pair, 4))}, align 2")
                place = body.place(target, (pair, _PAIR_BYTES))
                body.do(f"store i32 {value}, ptr {place}, align 4")
            with body.when(odd):
                last = body.let(f"load i16, ptr {body.place(source, (whole, 4))}, align 2")
                place = body.place(target, (whole, _PAIR_BYTES))
                body.do(f"store i32 {body.let(f'zext i16 {last} to i32')}, ptr {place}, align 4")

    return function("pack_columns", _PACK, declarations, write, "internal")


def _loop(body: Body, result: DType, order: str) -> None:
    """Tasks begin to end; operands are the addresses of c, a and b in this order."""
    c, a, b = (body.operands(k, k + 1)[0] for k in map(order.index, "cab"))
    terms, down, b_down, b_across, below = body.meta(_HEADER)
    pairs = body.integer("lshr", body.integer("add", terms, 1), 1)
    panel = body.let(f"alloca i8, i64 {body.integer('mul', pairs, _PAIR_BYTES)}, align 64")
    by_rows = body.let(f"icmp eq i64 {b_across}, 2")
    by_columns = body.let(f"xor i1 {by_rows}, true")
    with body.loop("%begin", "%end") as number:
        task = body.at("%meta", body.integer("add", body.integer("mul", number, 8 * _TASK), 8 * _HEADER))
        rows, columns, *offsets = body.words(task, _TASK)
        own_c, own_a, own_b = (body.at(p, o) for p, o in zip((c, a, b), offsets, strict=True))
        with body.loop(0, columns, _COLUMNS) as column:
            width = body.minimum(body.integer("sub", columns, column), _COLUMNS)
            first = body.place(own_b, (column, b_across))
            given = f"ptr {first}, i64 {b_down}, i64 {b_across}, i64 {terms}, i64 {width}, ptr {panel}"
            with body.when(by_rows):
                body.do(f"call void @pack_rows({given})")
            with body.when(by_columns):
                body.do(f"call void @pack_columns({given})")
            target = body.place(own_c, (column, result.itemsize))

            def multiply(row: str, height: int) -> None:
                body.do(
                    f"call void @tile{height}(ptr {body.place(own_a, (row, down))}, i64 {down}, ptr {panel}, i64 {terms}, "
                    f"ptr {body.place(target, (row, below))}, i64 {below}, i64 {width})"
                )

            each_height(body, rows, _TILES, multiply)


def products(
    dtype: DType,
    result: DType,
    sizes: tuple[int, int, int],
    left: Sequence[int],
    right: Sequence[int],
    places: Places,
) -> Launch:
    """Compute `c[i] = a[i] @ b[i]` of narrow floats, as `entry(c, a, b, meta, count)` with three addresses.

    dtype: of a and b; float16 only for products with a vector. result: the dtype of c, that of a and b or float32.
    sizes: rows, terms and columns of each product; at most MOST_TERMS terms, but for products with a vector whose terms are
    neighbours in both operands.
    left, right: the strides of the matrices of a and b; the columns of a and either columns or rows of b are neighbours. All are in
    elements.
    """
    rows, terms, columns = sizes
    order = "cab"
    if terms == 1:  # the stride of a dim of size 1 is never used
        left, right = (left[0], 1), (1, right[1])
    if columns == 1:
        # The product of the transposes, whose result has the same place.
        rows, columns, left, right = 1, rows, (right[1], right[0]), (left[1], left[0])
        places, order = places.transposed(), "cba"
    if rows == left[1] == right[0] == 1:
        return dot_products(dtype, result, (terms, columns), (left, right), places, order)
    if columns == 1:
        # The stride of a dim of size 1 is never used: choose that of the faster way to pack.
        right = right[0], 1
    work = places.products * rows * terms * columns
    is_shared = work >= SHARED_WORK
    tasks = _tasks(result.itemsize, (rows, terms, columns), tuple(left), tuple(right), places, is_shared)
    code = _code(result, order)
    entry = shared(code, work >= ALWAYS_SHARED_WORK) if is_shared else code.entry
    return Launch(entry, tasks.address, tasks.count, tasks)


@per_plan
def _tasks(size: int, sizes, left, right, places: Places, is_shared: bool) -> Tasks:
    """Return the words of the products, each cut into panels of columns or tiles of rows to suit the threads."""
    rows, terms, columns = sizes
    threads = workers.get_num_threads() if is_shared else 1
    by_columns = columns >= threads * _COLUMNS
    length, grain = (columns, _COLUMNS) if by_columns else (rows, _TILES[0])
    parts = 1 if places.products % threads == 0 else threads
    tiles = -(-length // grain)
    edges = sorted({min(tiles * part // parts * grain, length) for part in range(parts + 1)})
    header = terms, 2 * left[0], 2 * right[0], 2 * right[1], size * columns
    return tasks_of(header, (rows, columns), (left[0], right[1]), places, not by_columns, edges, (size, 2, 2))
