"""Products of many matrices, one after the other, with the same matrix b: b is copied into panels once, as `panels.py` reads it.

The tiles, and the order in which they add terms, are those of `panels.py`, and so are the bits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from ..core.dtype import DType
from .kernel import Code, Launch, Stage, block, loop_code, sharing
from .panels import CHAINS, DEPTH, Panels, tiles
from .sliding import LINE, tile
from .structured import Body

# The words of meta: of the copy; of a product, where addresses from `tiles` follow for 1, 2, ... rows. Strides are in bytes.
_COPY = ("wide_panels", "terms", "columns", "b_row", "b_column")
_PRODUCT = ("terms", "rows", "columns", "a_row", "c_row", "height")


class Packed(NamedTuple):
    """Computes products with one matrix b."""

    nbytes: int  # of the copy of b
    copy: Launch | None  # call `entry(copy, b, meta, count)`; None if the products read b itself
    products: dict[int, Launch]  # for each number of rows: call `entry(result, a, copy, meta, count)`
    grain: int = 1  # threads get multiples of so many rows, so that the bits do not depend on their number


def packed_products(
    dtype: DType, terms: int, columns: int, strides: tuple[int, int], heights: Iterable[int]
) -> Packed:
    """The products of contiguous matrices of `heights` rows. strides: those of b in elements, one of which is 1."""
    heights = tuple(heights)
    height = -(-max(heights) // -(-max(heights) // tile().rows))  # of tiles that are as even as possible
    size, lanes = dtype.itemsize, LINE // dtype.itemsize
    wide = columns // (tile().lines * lanes)
    count = wide + -(-(columns - wide * tile().lines * lanes) // lanes)
    nbytes = -(-columns // lanes) * LINE * terms
    meta = block((wide, terms, columns, *(each * size for each in strides)))
    entry = sharing(_copy_code(dtype, strides[1] != 1), 2 * nbytes)
    return Packed(
        nbytes,
        Launch(entry, meta.address, count, meta),
        {rows: _product(dtype, (rows, terms, columns), height) for rows in heights},
        height,
    )


@functools.lru_cache(maxsize=1024)
def _product(dtype: DType, sizes: tuple[int, int, int], height: int) -> Launch:
    """Return the product of one matrix. height: rows of a tile."""
    (rows, terms, columns), size = sizes, dtype.itemsize
    # A thread gets whole tiles, but for the last rows.
    chains = CHAINS if rows == 1 else 1
    found = [
        tiles(dtype, m, tile().lines, chains) if m in (height, rows % height) else (0, 0)
        for m in range(1, height + 1)
    ]
    words = [terms, rows, columns, terms * size, columns * size, height, *chain.from_iterable(found)]
    meta, code = block(words), _product_code(dtype)
    strides = (columns * size,), (terms * size,), (0,)
    stage = Stage(code.loop, 0, "ppp", 1, rows * terms * columns, height == 1, meta, (rows,), strides)
    return Launch(code.entry, meta.address, rows, stage)


@functools.cache
def _copy_code(dtype: DType, transposed: bool) -> Code:
    """`entry(copy, b, meta, panels)`. transposed: the terms of a column of b are neighbours."""
    kernel = Panels(dtype, tile().lines)
    wide = tile().lines

    def loop(b: Body) -> None:
        target, source = b.operands(2)
        meta = b.fields("%meta", _COPY)
        middle = b.minimum(b.maximum("%begin", meta["wide_panels"]), "%end")

        def copy(start: str, stop: str, edge: bool) -> None:
            with b.loop(start, stop) as i:
                skipped = b.integer("sub", i, meta["wide_panels"]) if edge else i
                column = b.integer("mul", skipped, (1 if edge else wide) * kernel.lanes)
                if edge:
                    before = b.integer("mul", meta["wide_panels"], wide * kernel.lanes)
                    column = b.integer("add", column, before)
                panel = b.place(target, (b.integer("mul", column, meta["terms"]), kernel.size))
                first = b.place(source, (column, meta["b_column"]))
                left = b.integer("sub", meta["columns"], column)
                b.do(
                    f"call void @{'pack_edge' if edge else 'pack'}(ptr {panel}, ptr {first}, i64 {meta['terms']}, i64 {left}, "
                    f"i64 {meta['b_row']}, i64 {meta['b_column']})"
                )

        copy("%begin", b.minimum("%end", meta["wide_panels"]), False)
        copy(middle, "%end", True)

    functions = [kernel.pack(edge, transposed) for edge in (False, True)]
    return loop_code(loop, 2, parts=functions, declarations=kernel.declarations, vectorize=False)


@functools.cache
def _product_code(dtype: DType) -> Code:
    """Compute `entry(c, a, panels, meta, rows)`: the rows of the product, `height` at a time."""
    kernel = Panels(dtype, tile().lines)

    def loop(b: Body) -> None:
        c, a, panels = b.operands(3)
        meta = b.fields("%meta", _PRODUCT)
        table = b.at("%meta", 8 * len(_PRODUCT))

        def columns(start: str, stop: str, edge: bool) -> None:
            lines = 1 if edge else tile().lines
            with b.loop(start, stop, lines * kernel.lanes) as n, b.loop(0, meta["terms"], DEPTH) as k:
                terms = b.minimum(b.integer("sub", meta["terms"], k), DEPTH)
                panel = b.place(panels, (b.integer("mul", n, meta["terms"]), kernel.size), (k, lines * LINE))
                left = b.integer("sub", meta["columns"], n)
                first = b.let(f"zext i1 {b.let(f'icmp eq i64 {k}, 0')} to i64")
                with b.loop("%begin", "%end", meta["height"]) as m:
                    rows = b.minimum(b.integer("sub", "%end", m), meta["height"])
                    word = b.integer("mul", b.integer("sub", rows, 1), 16)
                    place = b.at(b.at(table, word), 0 if edge else 8)
                    code = b.load("ptr", place)
                    target = b.place(c, (m, meta["c_row"]), (n, kernel.size))
                    source = b.place(a, (m, meta["a_row"]), (k, kernel.size))
                    b.do(
                        f"call void {code}(ptr {target}, ptr {source}, ptr {panel}, i64 {lines * LINE}, i64 {terms}, "
                        f"i64 {left}, i64 {first}, i64 {meta['a_row']}, i64 {kernel.size}, i64 {meta['c_row']})"
                    )

        wide = tile().lines * kernel.lanes
        whole = b.integer("sub", meta["columns"], b.integer("urem", meta["columns"], wide))
        columns("0", whole, False)
        columns(whole, meta["columns"], True)

    return loop_code(loop, 3, vectorize=False)
