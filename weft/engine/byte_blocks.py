"""Products of bytes for processors that multiply pairs of int16 (`vpmaddwd` of AVX2): each matrix is widened once for many tiles.

The tiles of `byte_tiles.py` widen what they read each time. Here a block of b, as many lines as the second-level cache holds, becomes
int16 first, and then the rows of a tile. What remains in a tile are multiplications and additions. The sums are the same integers.

The even bytes of a quad are a pair of int16, and the odd ones another. A *panel* has the pairs of two lines: for each quad the even pairs
of both, then the odd ones. A row has for each quad the even pair and the odd one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import int32
from .byte_tiles import (
    HEADER,
    PLACES,
    QUAD,
    Epilogue,
    Shape,
    as_unsigned,
    each_task,
    finish,
    read_some,
    tasks_code,
    word,
)
from .kernel import Code
from .llvm import value_type
from .structured import Body, each_height, function
from .vectors import add_word_pairs, broadcast, byte_fields

# Bytes of a block of b in int16: half of the second-level cache of AMD Zen 3.
BLOCK_BYTES = 1 << 18

# Rows: with fewer, widening b takes longer than it saves.
LEAST_ROWS = 12

_HEIGHTS = (6, 3, 1)  # rows of tiles, falling to 1: 12 of 16 registers hold sums
_LINES = 2  # of a panel
_PAIRS = 2 * QUAD  # bytes of the pairs of a quad


def most_terms(how: Shape) -> int:
    """The terms of a panel that fills a block."""
    return BLOCK_BYTES // (2 * how.lanes * _LINES)


def suits_byte_blocks(how: Shape, rows: int, terms: int) -> bool:
    """Whether blocks are faster than the tiles of `byte_tiles.py` for so many rows of a task."""
    return how.quads == "pmaddwd" and rows >= LEAST_ROWS and 0 < terms <= most_terms(how)


@functools.cache
def blocks_code(epilogue: Epilogue, how: Shape, in_pieces: bool) -> Code:
    """Compute `entry` with the arguments and the meta of `tiles_code`."""
    kernel = _Blocks(epilogue, how, in_pieces)
    functions = [kernel.widen_lines(), kernel.widen_row(), *(kernel.tile(rows) for rows in _HEIGHTS)]
    return tasks_code(kernel.tasks, functions, kernel.declarations, epilogue)


class _Blocks:
    def __init__(self, epilogue: Epilogue, how: Shape, in_pieces: bool):
        self.epilogue, self.how, self.in_pieces = epilogue, how, in_pieces
        self.line = QUAD * how.lanes  # bytes of a quad of a line
        self.panel = 2 * _LINES * self.line  # bytes of a quad of a panel
        self.vector = value_type(int32, how.lanes)
        self.declarations: set[str] = set()

    def function(self, name: str, parameters: str, write: Callable[[Body], None]) -> str:
        return function(name, parameters, self.declarations, write, "internal")

    def tasks(self, b: Body) -> None:
        c, a, lines = b.operands(3)
        meta = b.fields("%meta", HEADER)
        quads = self.quads(b, meta)
        block = b.room(BLOCK_BYTES)
        near = b.room(_HEIGHTS[0] * most_terms(self.how) // QUAD * _PAIRS)
        wide = self.how.lanes * _LINES
        panel_bytes = b.integer("mul", quads, self.panel)
        span = b.integer("mul", b.integer("udiv", BLOCK_BYTES, panel_bytes), wide)
        with each_task(b) as task, b.loop(0, task["columns"], span) as n:
            columns = b.minimum(b.integer("sub", task["columns"], n), span)
            first = b.integer("udiv", n, self.how.lanes)
            source = b.place(b.at(lines, task["b"]), (first, meta["line"]))
            with b.loop(0, columns, wide) as j:
                panel = self.panel_of(b, block, j, panel_bytes)
                b.do(
                    f"call void @widen_lines(ptr {panel}, ptr {source}, i64 {meta['line']}, i64 {quads}, i64 {j}, i64 {columns})"
                )
            self.rows(b, meta, task, (c, a, block, near), n, columns, quads, panel_bytes)

    def quads(self, b: Body, meta) -> str:
        """Return the quads of a row of a."""
        of_piece = b.integer("lshr", b.integer("add", meta["terms"], QUAD - 1), 2)
        return b.integer("mul", of_piece, meta["pieces"])

    def panel_of(self, b: Body, block: str, column: str, panel_bytes: str) -> str:
        number = b.integer("udiv", column, self.how.lanes * _LINES)
        return b.place(block, (number, panel_bytes))

    def rows(self, b: Body, meta, task, places, n: str, columns: str, quads: str, panel_bytes: str) -> None:
        """All rows of a task at the columns of a block, of which n is the first."""
        c, a, block, near = places
        size, row_bytes = self.epilogue.result.dtype.itemsize, b.integer("mul", quads, _PAIRS)
        target = b.place(b.at(c, task["c"]), (n, size))
        source = b.at(a, task["a"])

        def multiply(m: str, height: int) -> None:
            row = b.integer("add", task["row"], m)
            for k in range(height):
                given = b.place(source, (b.integer("add", m, k), meta["a_row"]))
                into = b.place(near, (row_bytes, k))
                b.do(
                    f"call void @widen_row(ptr {into}, ptr %meta, ptr {given}, i64 {b.integer('add', row, k)})"
                )
            own = b.place(target, (m, meta["c_row"]))
            with b.loop(0, columns, self.how.lanes * _LINES) as j:
                column = b.integer("add", task["column"], b.integer("add", n, j))
                b.do(
                    f"call void @tile{height}(ptr %operands, ptr %meta, i64 {row}, i64 {column}, "
                    f"ptr {b.place(own, (j, size))}, ptr {near}, "
                    f"ptr {self.panel_of(b, block, j, panel_bytes)}, i64 {b.integer('sub', columns, j)}, i64 {quads})"
                )

        each_height(b, task["rows"], _HEIGHTS, multiply)

    def tile(self, rows: int) -> str:
        def write(b: Body) -> None:
            sums = [[b.variable(self.vector, "zeroinitializer") for _ in range(_LINES)] for _ in range(rows)]
            row_bytes = b.integer("mul", "%quads", _PAIRS)
            sources = [b.place("%a", (row_bytes, m)) for m in range(rows)]
            with b.loop(0, "%quads") as k:
                place, own = b.place("%b", (k, self.panel)), b.integer("mul", k, _PAIRS)
                for half in range(2):
                    pairs = [
                        b.let(
                            f"load {self.vector}, ptr {b.at(place, (_LINES * half + j) * self.line)}, align 32"
                        )
                        for j in range(_LINES)
                    ]
                    for m, source in enumerate(sources):
                        value = b.let(f"load i32, ptr {b.at(b.at(source, own), QUAD * half)}")
                        value = broadcast(b, "i32", self.how.lanes, value)
                        for total, pair in zip(sums[m], pairs, strict=True):
                            before = b.get(total, self.vector)
                            b.set(total, self.vector, add_word_pairs(b, self.how.lanes, before, value, pair))
            meta = b.fields("%meta", HEADER)
            finish(b, sums, self.epilogue, self.how, meta["c_row"])

        return self.function(f"tile{rows}", f"{PLACES}, i64 %quads", write)

    def widen_lines(self) -> str:
        """Make a panel of the line of a column and the one after it; where there is none, of the same line twice."""

        def write(b: Body) -> None:
            line = b.integer("udiv", "%column", self.how.lanes)
            first = b.place("%lines", (line, "%line"))
            left = b.integer("sub", "%columns", "%column")
            has_second = b.let(f"icmp sgt i64 {left}, {self.how.lanes}")
            second = b.at(first, b.let(f"select i1 {has_second}, i64 %line, i64 0"))
            with b.loop(0, "%quads") as k:
                target = b.place("%panel", (k, self.panel))
                for j, source in enumerate((first, second)):
                    value = b.let(f"load {self.vector}, ptr {b.place(source, (k, self.line))}, align 32")
                    for half, pairs in enumerate(byte_fields(b, value, self.how.lanes, 16, signed=True)):
                        place = b.at(target, (_LINES * half + j) * self.line)
                        b.do(f"store {self.vector} {pairs}, ptr {place}, align 32")

        parameters = (
            "ptr noalias %panel, ptr noalias %lines, i64 %line, i64 %quads, i64 %column, i64 %columns"
        )
        return self.function("widen_lines", parameters, write)

    def widen_row(self) -> str:
        """Make the pairs of a row of a, whose pieces are read where they are."""

        def write(b: Body) -> None:
            meta = b.fields("%meta", HEADER)
            whole = b.integer("lshr", meta["terms"], 2)
            if self.in_pieces:
                starts, steps = (b.pointer(meta[name]) for name in ("starts", "steps"))
                start = b.at("%source", word(b, starts, "%row"))
                with b.loop(0, meta["pieces"]) as piece:
                    target = b.place("%target", (b.integer("mul", piece, whole), _PAIRS))
                    self.widen(b, target, b.at(start, word(b, steps, piece)), whole)
                return
            self.widen(b, "%target", "%source", whole)
            rest = b.integer("and", meta["terms"], QUAD - 1)
            with b.when(b.let(f"icmp ne i64 {rest}, 0")):
                value = read_some(b, b.place("%source", (whole, QUAD)), rest)
                value = b.let(f"bitcast i32 {value} to <1 x i32>")
                self.store_pairs(b, value, 1, b.place("%target", (whole, _PAIRS)))

        return self.function(
            "widen_row", "ptr noalias %target, ptr %meta, ptr noalias %source, i64 %row", write
        )

    def widen(self, b: Body, target: str, source: str, quads: str) -> None:
        """Make the pairs of some quads, as many at once as a vector has lanes."""
        lanes = self.how.lanes
        many = b.integer("sub", quads, b.integer("urem", quads, lanes))
        for start, stop, count in (("0", many, lanes), (many, quads, 1)):
            with b.loop(start, stop, count) as k:
                value = b.let(f"load <{count} x i32>, ptr {b.place(source, (k, QUAD))}, align 1")
                self.store_pairs(b, value, count, b.place(target, (k, _PAIRS)))

    def store_pairs(self, b: Body, quads: str, count: int, target: str) -> None:
        if self.epilogue.signed:
            quads = as_unsigned(b, f"<{count} x i32>", quads)
        even, odd = byte_fields(b, quads, count, 16, signed=False)
        order = ", ".join(f"i32 {k + half * count}" for k in range(count) for half in range(2))
        both = b.let(
            f"shufflevector <{count} x i32> {even}, <{count} x i32> {odd}, <{2 * count} x i32> <{order}>"
        )
        b.do(f"store <{2 * count} x i32> {both}, ptr {target}, align {_PAIRS}")
