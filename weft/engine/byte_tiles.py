"""Tiles of products of bytes: exact sums in int32, and an expression that makes the results of them in the registers.

Four neighbouring terms are a *quad*. One instruction (`vpdpbusd`, of AVX512-VNNI and AVX-VNNI) multiplies the four unsigned bytes of a
quad of a by the four signed ones of a quad of b, and adds the products to an int32 without saturation. Other processors take several
instructions for the same integers. A *line* holds the quads of as many columns of b as a vector has lanes, term by term; columns and terms
that are missing are 0. `layouts/quantized/products.py` copies b into lines once for many products.

The sums wrap around as int32 does, so the results depend neither on the order of the terms nor on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from ..core.dtype import DType, int8, int32
from . import host
from .expr import Expr, load, param
from .kernel import Code, loop_code, param_letters
from .llvm import emit, value_type
from .structured import Body, each_height, function
from .vectors import add_quads, broadcast, lanes_below, load_lanes, store_lanes

QUAD = 4  # terms, and bytes


class Shape(NamedTuple):
    """Describes the vectors and tiles of a processor."""

    quads: str  # the instructions, as `vectors.add_quads` calls them
    lanes: int  # columns of a line
    heights: tuple[int, ...]  # rows of tiles, falling to 1
    lines: int  # of a tile


@functools.cache
def shape() -> Shape:
    """Return the fastest shape of this processor."""
    return find_shape()


def find_shape() -> Shape:
    features = host.cpu()[1].split(",")
    if "+avx512vnni" in features:
        # 16 of 32 registers hold sums. Tiles of 6 rows and 4 lines are no faster: 0.30 ms for 64x1024 @ 1024x1024 on AMD Zen 4.
        return Shape("vpdpbusd", 16, (8, 4, 1), 2)
    if "+avxvnni" in features:
        return Shape("vpdpbusd", 8, (6, 3, 1), 2)
    return Shape("pmaddwd" if "+avx2" in features else "", 8, (4, 2, 1), 2)


class Epilogue(NamedTuple):
    """What is made of the sums.

    result: an element of c. load(0, int32) is the sum; the loads after it are elements of vectors with one element for each column, then
    of vectors with one element for each row; params are numbers.
    signed: a holds signed bytes. The sums are those of a + 128.
    """

    result: Expr
    columns: tuple[DType, ...] = ()
    rows: tuple[DType, ...] = ()
    params: tuple[DType, ...] = ()
    signed: bool = False


class Pieces(NamedTuple):
    """Rows of a that consist of pieces of equal length, a multiple of four, anywhere in memory.

    starts: where each row of each group begins, in bytes [groups * rows]. steps: how far each piece lies from there, in bytes.
    """

    starts: np.ndarray
    steps: np.ndarray


# The words of meta, in bytes but for the terms and pieces; then those of each task, of which the first four are no bytes.
# With pieces, `terms` are those of a piece, and starts and steps are addresses.
HEADER = ("terms", "a_row", "c_row", "line", "pieces", "starts", "steps")
TASK = ("rows", "columns", "row", "column", "c", "a", "b")


@functools.cache
def tiles_code(epilogue: Epilogue, how: Shape, in_pieces: bool) -> Code:
    """Write `entry(c, a, lines of b, columns..., rows..., params..., meta, tasks)`."""
    declarations: set[str] = set()
    tiles = [
        _tile(rows, lines, epilogue, how, in_pieces, declarations)
        for rows in how.heights
        for lines in sorted({1, how.lines})
    ]
    return tasks_code(lambda body: _tasks(body, epilogue, how), tiles, declarations, epilogue)


def tasks_code(
    write: Callable[[Body], None], parts: Sequence[str], declarations: set[str], epilogue: Epilogue
) -> Code:
    """A loop over tasks whose operands are c, a, the lines of b and the vectors of the epilogue."""
    operands, letters = 3 + len(epilogue.columns) + len(epilogue.rows), param_letters(epilogue.params)
    return loop_code(write, operands, letters, parts=parts, declarations=declarations, vectorize=False)


PLACES = "ptr %operands, ptr %meta, i64 %row, i64 %column, ptr %c, ptr %a, ptr %b, i64 %columns"


def word(b: Body, table: str, index: str) -> str:
    return b.load("i64", b.place(table, (index, 8)))


def as_unsigned(b: Body, kind: str, quads: str) -> str:
    """Quads of signed bytes, a vector of int32, as quads of unsigned bytes that are 128 greater."""
    return b.let(f"xor {kind} {quads}, splat (i32 {0x80808080 - 2**32})")


@contextmanager
def each_task(b: Body) -> Iterator[dict[str, str]]:
    """The words of the tasks `%begin` to `%end`."""
    with b.loop("%begin", "%end") as number:
        place = b.integer("add", b.integer("mul", number, 8 * len(TASK)), 8 * len(HEADER))
        yield b.fields(b.at("%meta", place), TASK)


def read_some(b: Body, place: str, count: str) -> str:
    """The quad at `place`, of which there are `count` bytes; the others are 0."""
    inside = lanes_below(b, QUAD, count)
    return b.let(f"bitcast <{QUAD} x i8> {load_lanes(b, int8, QUAD, place, inside)} to i32")


def _tile(
    rows: int, lines: int, epilogue: Epilogue, how: Shape, in_pieces: bool, declarations: set[str]
) -> str:
    """`rows` rows and `lines` lines of c; the last line may have fewer columns than lanes."""
    vector, width = value_type(int32, how.lanes), QUAD * how.lanes

    def write(b: Body) -> None:
        meta = b.fields("%meta", HEADER)
        sums = [[b.variable(vector, "zeroinitializer") for _ in range(lines)] for _ in range(rows)]
        whole = b.integer("lshr", meta["terms"], 2)
        rest = b.integer("and", meta["terms"], QUAD - 1)
        if in_pieces:
            starts = b.pointer(meta["starts"])
            places = [word(b, starts, b.integer("add", "%row", m)) for m in range(rows)]
        else:
            places = [b.integer("mul", meta["a_row"], m) for m in range(rows)]
        sources = [b.at("%a", place) for place in places]
        panels = [b.place("%b", (meta["line"], j)) for j in range(lines)]

        def add(k: str, read: Callable[[str], str], piece: str = "0", step: str = "0") -> None:
            """Add the products of quad k of a piece, `step` bytes behind the start. `read` reads a quad from an address in a."""
            place = b.integer("mul", b.integer("add", k, b.integer("mul", piece, whole)), width)
            quads = [b.let(f"load {vector}, ptr {b.at(panel, place)}, align {width}") for panel in panels]
            behind = b.integer("add", step, b.integer("mul", k, QUAD))
            for m, source in enumerate(sources):
                value = broadcast(b, "i32", how.lanes, read(b.at(source, behind)))
                if epilogue.signed:
                    value = as_unsigned(b, vector, value)
                for total, quad in zip(sums[m], quads, strict=True):
                    before = b.get(total, vector)
                    b.set(total, vector, add_quads(b, how.quads, how.lanes, before, value, quad))

        def read_all(place: str) -> str:
            return b.let(f"load i32, ptr {place}, align 1")

        if in_pieces:
            steps = b.pointer(meta["steps"])
            with b.loop(0, meta["pieces"]) as piece:
                step = word(b, steps, piece)
                with b.loop(0, whole) as k:
                    add(k, read_all, piece, step)
        else:
            with b.loop(0, whole) as k:
                add(k, read_all)
            with b.when(b.let(f"icmp ne i64 {rest}, 0")):
                add(whole, lambda place: read_some(b, place, rest))
        finish(b, sums, epilogue, how, meta["c_row"])

    name = f"tile{rows}x{lines}"
    return function(name, PLACES, declarations, write, "internal")


def finish(b: Body, sums: list[list[str]], epilogue: Epilogue, how: Shape, c_row: str) -> None:
    """Store what the epilogue makes of the sums in the variables. c_row: bytes from row to row of c."""
    lanes, result = how.lanes, epilogue.result
    vector, size = value_type(int32, lanes), result.dtype.itemsize
    first = 3 + len(epilogue.columns) + len(epilogue.rows)
    leaves: dict[Expr, str] = {}
    for k, dtype in enumerate(epilogue.params):
        kind = value_type(dtype)
        number = b.let(f"load {kind}, ptr {b.at('%operands', 8 * (first + k))}")
        leaves[param(k, dtype)] = broadcast(b, kind, lanes, number)

    def element(k: int, dtype: DType, index: str) -> str:
        (base,) = b.operands(2 + k, 3 + k)
        return b.place(base, (index, dtype.itemsize))

    for j in range(len(sums[0])):
        left = b.integer("sub", "%columns", j * lanes)
        inside = lanes_below(b, lanes, left)
        full = b.let(f"icmp sge i64 {left}, {lanes}")
        column = b.integer("add", "%column", j * lanes)
        for k, dtype in enumerate(epilogue.columns, 1):
            leaves[load(k, dtype)] = load_lanes(b, dtype, lanes, element(k, dtype, column), inside)
        for m, line in enumerate(sums):
            row = b.integer("add", "%row", m)
            for k, dtype in enumerate(epilogue.rows, 1 + len(epilogue.columns)):
                kind = value_type(dtype)
                value = b.let(f"load {kind}, ptr {element(k, dtype, row)}, align {dtype.itemsize}")
                leaves[load(k, dtype)] = broadcast(b, kind, lanes, value)
            leaves[load(0, int32)] = b.get(line[j], vector)
            (value,) = emit(b, [result], leaves, lanes)
            place = b.at(b.place("%c", (c_row, m)), j * lanes * size)
            # Without AVX-512, a masked store of bytes takes a branch for each of them.
            with b.when(full):
                b.do(f"store {value_type(result.dtype, lanes)} {value}, ptr {place}, align {size}")
            with b.unless(full):
                store_lanes(b, result.dtype, lanes, value, place, inside)


def _tasks(b: Body, epilogue: Epilogue, how: Shape) -> None:
    """The tasks `begin` to `end`: a tile of lines after the other, and in each a tile of rows after the other."""
    c, a, lines = b.operands(3)
    meta = b.fields("%meta", HEADER)
    size, wide = epilogue.result.dtype.itemsize, how.lanes * how.lines
    with each_task(b) as task:
        corners = [b.at(base, task[name]) for name, base in (("c", c), ("a", a), ("b", lines))]
        whole = b.integer("sub", task["columns"], b.integer("urem", task["columns"], wide))

        def columns(start: str, stop: str, at_once: int) -> None:
            with b.loop(start, stop, how.lanes * at_once) as n:
                left = b.integer("sub", task["columns"], n)
                column = b.integer("add", task["column"], n)
                target = b.place(corners[0], (n, size))
                panel = b.place(corners[2], (b.integer("udiv", n, how.lanes), meta["line"]))

                def multiply(m: str, height: int) -> None:
                    row = b.integer("add", task["row"], m)
                    into = b.place(target, (m, meta["c_row"]))
                    source = b.place(corners[1], (m, meta["a_row"]))
                    b.do(
                        f"call void @tile{height}x{at_once}(ptr %operands, ptr %meta, i64 {row}, i64 {column}, "
                        f"ptr {into}, ptr {source}, ptr {panel}, i64 {left})"
                    )

                each_height(b, task["rows"], how.heights, multiply)

        columns("0", whole, how.lines)
        columns(whole, task["columns"], 1)
