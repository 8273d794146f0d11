"""Products of a few rows of float32 and a matrix of small integers, which are converted in the registers.

With few rows a product waits for the memory of the matrix, so a matrix of bytes or nibbles is faster than one of floats. With more rows
it is better to convert the matrix once, and multiply floats.

    bytes    c[m, n] = (the sum over k of a[m, k] * b[n, k]) * scale[n]
    nibbles  c[m, n] = the sum over groups g of the sum over k in g of a[m, k] * ((b[n, k] - 8) * scale[g, n] + zero[g, n])
             computed as scale[g, n] * (the sum of a[m, k] * b[n, k]) + (zero[g, n] - 8 * scale[g, n]) * (the sum of a[m, k])

Each element of a sum is a chain of fused multiply-adds in the order of the terms, one for each of 16 lanes of bytes. So the bits depend
neither on the registers of the processor nor on the number of threads.
"""

from __future__ import annotations

import functools

import numpy as np

from ..core.dtype import DType, float32, int8
from . import host
from .kernel import Code, Launch, loop_code, sharing
from .structured import Body, each_height, function
from .vectors import broadcast, lane_sums, lanes_below, load_lanes, store_lanes

_LANES, _LINE = 16, 64  # of float32; bytes of a vector of them
_FLOATS, _INTS = f"<{_LANES} x float>", f"<{_LANES} x i32>"

# Columns of a tile of bytes, with one row and with several.
_COLUMNS = {1: 8, 4: 4}
# Columns of a block of nibbles, and the vectors that they take.
BLOCK, _LINES = 64, 4


def _heights() -> tuple[int, ...]:
    """Rows of tiles. 16 vectors of sums need 32 registers."""
    return (4, 1) if "+avx512f" in host.cpu()[1].split(",") else (1,)


def _multiply(b: Body, total: str, x: str, y: str) -> None:
    """Add the product of two vectors to the variable `total`."""
    b.set(total, _FLOATS, b.intrinsic("fma", float32, _LANES, x, y, b.get(total, _FLOATS)))


# ---- Bytes -----------------------------------------------------------------------------------------------------------

_BYTES_META = ("rows", "terms", "columns")


def _bytes_tile(rows: int, columns: int, declarations: set[str]) -> str:
    """`columns` elements of `rows` rows of c. Where there is no further column, the last one is read again."""

    def write(b: Body) -> None:
        meta = b.fields("%meta", _BYTES_META)
        last = b.integer("sub", "%left", 1)
        sources = [b.place("%a", (m, b.integer("mul", meta["terms"], 4))) for m in range(rows)]
        lines = [b.place("%b", (b.minimum(n, last), meta["terms"])) for n in range(columns)]
        sums = [[b.variable(_FLOATS, "zeroinitializer") for _ in lines] for _ in sources]
        whole = b.integer("and", meta["terms"], -_LANES)
        rest = lanes_below(b, _LANES, b.integer("sub", meta["terms"], whole))

        def add(k: str, inside: str) -> None:
            def read(base: str, dtype: DType) -> str:
                return load_lanes(b, dtype, _LANES, b.place(base, (k, dtype.itemsize)), inside)

            given = [read(source, float32) for source in sources]
            for n, line in enumerate(lines):
                wide = b.let(f"sext <{_LANES} x i8> {read(line, int8)} to {_INTS}")
                value = b.let(f"sitofp {_INTS} {wide} to {_FLOATS}")
                for m, row in enumerate(given):
                    _multiply(b, sums[m][n], row, value)

        with b.loop(0, whole, _LANES) as k:
            add(k, "")
        with b.when(b.let(f"icmp slt i64 {whole}, {meta['terms']}")):
            add(whole, rest)
        inside = lanes_below(b, columns, "%left")
        scales = load_lanes(b, float32, columns, "%scales", inside)
        for m, row in enumerate(sums):
            totals = lane_sums(b, float32, _LANES, [b.get(each, _FLOATS) for each in row])
            value = b.let(f"fmul <{columns} x float> {totals}, {scales}")
            place = b.place("%c", (m, b.integer("mul", meta["columns"], 4)))
            store_lanes(b, float32, columns, value, place, inside)

    parameters = "ptr %meta, ptr %c, ptr %a, ptr %b, ptr %scales, i64 %left"
    return function(f"tile{rows}", parameters, declarations, write, "internal")


def _bytes_loop(b: Body) -> None:
    """Blocks of as many columns as the widest tile has."""
    operands = b.fields("%operands", ("c", "a", "b", "scales"), "ptr")
    meta = b.fields("%meta", _BYTES_META)
    width = max(_COLUMNS.values())
    with b.loop("%begin", "%end") as block:
        first = b.integer("mul", block, width)
        stop = b.minimum(meta["columns"], b.integer("add", first, width))

        def call(m: str, height: int) -> None:
            source = b.place(operands["a"], (m, b.integer("mul", meta["terms"], 4)))
            target = b.place(operands["c"], (m, b.integer("mul", meta["columns"], 4)))
            with b.loop(first, stop, _COLUMNS[height]) as n:
                line = b.place(operands["b"], (n, meta["terms"]))
                given = f"ptr {b.place(target, (n, 4))}, ptr {source}, ptr {line}, ptr {b.place(operands['scales'], (n, 4))}"
                b.do(f"call void @tile{height}(ptr %meta, {given}, i64 {b.integer('sub', stop, n)})")

        each_height(b, meta["rows"], _heights(), call)


@functools.cache
def _bytes_code() -> Code:
    return _compiled(_bytes_loop, lambda height, found: _bytes_tile(height, _COLUMNS[height], found), 4)


def _compiled(write, tile, operands: int) -> Code:
    declarations: set[str] = set()
    parts = [tile(height, declarations) for height in _heights()]
    return loop_code(write, operands, parts=parts, declarations=declarations, vectorize=False)


def times_bytes(rows: int, terms: int, columns: int) -> Launch:
    """`entry(c, a, b, scales, meta, blocks)`: a [rows, terms], b int8 [columns, terms], scales [columns] -> c [rows, columns]."""
    width = max(_COLUMNS.values())
    meta = np.array([rows, terms, columns], np.int64)
    # Tiles of 4 rows read a byte as often as there are tiles, and converting it takes as long as moving 4.
    entry = sharing(_bytes_code(), 4 * terms * columns * -(-rows // 4))
    return Launch(entry, meta.ctypes.data, -(-columns // width), meta)


# ---- Nibbles ---------------------------------------------------------------------------------------------------------

_NIBBLES_META = ("rows", "terms", "columns", "group")


def _nibbles_tile(rows: int, declarations: set[str]) -> str:
    """Add the products of the terms of one group to `rows` rows of a block of c."""

    def write(b: Body) -> None:
        meta = b.fields("%meta", _NIBBLES_META)
        row_bytes = b.integer("mul", meta["terms"], 4)
        sources = [b.place("%a", (m, row_bytes)) for m in range(rows)]
        sums = [[b.variable(_FLOATS, "zeroinitializer") for _ in range(_LINES)] for _ in sources]
        with b.loop(0, meta["group"]) as k:
            packed = b.place("%b", (k, BLOCK // 2))
            values: list[str] = [""] * _LINES
            for half in range(2):
                line = b.let(f"load <{_LANES} x i8>, ptr {b.at(packed, _LANES * half)}, align {_LANES}")
                wide = b.let(f"zext <{_LANES} x i8> {line} to {_INTS}")
                for upper in range(2):
                    part = b.let(
                        f"lshr {_INTS} {wide}, splat (i32 4)"
                        if upper
                        else f"and {_INTS} {wide}, splat (i32 15)"
                    )
                    values[half + 2 * upper] = b.let(f"sitofp {_INTS} {part} to {_FLOATS}")
            for source, row in zip(sources, sums, strict=True):
                factor = b.let(f"load float, ptr {b.place(source, (k, 4))}, align 4")
                factor = broadcast(b, "float", _LANES, factor)
                for total, value in zip(row, values, strict=True):
                    _multiply(b, total, factor, value)
        groups = b.integer("udiv", meta["terms"], meta["group"])
        shares = []
        for m in range(rows):
            share = b.let(f"load float, ptr {b.place('%sums', (m, b.integer('mul', groups, 4)))}, align 4")
            shares.append(broadcast(b, "float", _LANES, share))
        for j in range(_LINES):
            both = [
                b.let(f"load {_FLOATS}, ptr {b.at('%scales', _LINE * (2 * j + half))}, align 4")
                for half in range(2)
            ]
            scale, zero = (
                b.let(f"shufflevector {_FLOATS} {both[0]}, {_FLOATS} {both[1]}, <{_LANES} x i32> <{order}>")
                for order in (
                    ", ".join(f"i32 {2 * lane + odd}" for lane in range(_LANES)) for odd in range(2)
                )
            )
            shift = b.intrinsic("fma", float32, _LANES, scale, "splat (float -8.0)", zero)
            for m, row in enumerate(sums):
                place = b.at(b.place("%c", (m, b.integer("mul", meta["columns"], 4))), _LINE * j)
                value = b.let(f"load {_FLOATS}, ptr {place}, align 4")
                value = b.intrinsic("fma", float32, _LANES, shift, shares[m], value)
                value = b.intrinsic("fma", float32, _LANES, scale, b.get(row[j], _FLOATS), value)
                b.do(f"store {_FLOATS} {value}, ptr {place}, align 4")

    parameters = "ptr %meta, ptr %c, ptr %a, ptr %b, ptr %scales, ptr %sums"
    return function(f"tile{rows}", parameters, declarations, write, "internal")


def _nibbles_loop(b: Body) -> None:
    """Write blocks of columns, and for each the groups of terms."""
    operands = b.fields("%operands", ("c", "a", "b", "scales", "sums"), "ptr")
    meta = b.fields("%meta", _NIBBLES_META)
    groups = b.integer("udiv", meta["terms"], meta["group"])
    line_bytes = b.integer("mul", meta["columns"], 4)
    with b.loop("%begin", "%end") as block:
        panel = b.place(operands["b"], (block, b.integer("mul", meta["terms"], BLOCK // 2)))
        target = b.place(operands["c"], (block, 4 * BLOCK))
        with b.loop(0, groups) as g:
            first = b.integer("mul", g, meta["group"])
            scales = b.place(operands["scales"], (g, b.integer("mul", line_bytes, 2)), (block, 8 * BLOCK))

            def call(m: str, height: int) -> None:
                given = [
                    b.place(target, (m, line_bytes)),
                    b.place(operands["a"], (m, b.integer("mul", meta["terms"], 4)), (first, 4)),
                    b.place(panel, (first, BLOCK // 2)),
                    scales,
                    b.place(operands["sums"], (m, b.integer("mul", groups, 4)), (g, 4)),
                ]
                b.do(f"call void @tile{height}(ptr %meta, {', '.join(f'ptr {each}' for each in given)})")

            each_height(b, meta["rows"], _heights(), call)


@functools.cache
def _nibbles_code() -> Code:
    return _compiled(_nibbles_loop, _nibbles_tile, 5)


def times_nibbles(rows: int, terms: int, columns: int, group: int) -> Launch:
    """`entry(c, a, b, scales, sums, meta, blocks)`: adds a product to c, [rows, columns].

    a: [rows, terms]. b: for each block of 64 columns and each term 32 bytes, of which byte i of 16 bytes holds columns i and i + 32, and
    of the other 16 columns i + 16 and i + 48. scales: of each group and column the scale and the zero, [groups, columns, 2]. sums: of the
    terms of a in each group, [rows, groups].
    columns is a multiple of 64, and terms one of group.
    """
    meta = np.array([rows, terms, columns, group], np.int64)
    entry = sharing(_nibbles_code(), 4 * terms * columns * -(-rows // 4))
    return Launch(entry, meta.ctypes.data, columns // BLOCK, meta)
