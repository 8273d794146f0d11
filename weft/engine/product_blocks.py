"""Matrix products as LLVM IR for processors with 16 vector registers: blocks of b in the second-level cache, rows of a in the first.

The tiles are those of `panels.py`, and so are the bits: each element is one chain of fused multiply-adds. A tile has few rows here (6 rows
of 16 float32 take 12 registers), so each panel of b is read by many tiles. Therefore a block of b, many panels side by side, is
copied into memory that stays in the second-level cache. All tiles of the same rows of a follow each other, so that these rows stay in the
first-level cache, and rows of c are written in the order of memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import DType
from .kernel import Code, loop_code
from .panels import COPIED_ROWS, Panels
from .sliding import LINE, tile
from .structured import Body
from .vectors import has_masks, prefetch

# Terms of a panel, and bytes of a block of b, whose 16 panels leave room in the second-level cache (512 KiB on AMD Zen 3).
DEPTH = 192
BLOCK_BYTES = 16 * DEPTH * LINE

# Bytes: a larger b is not in the caches, and panels that are read where they are touch one line of each row. On AMD Zen 3,
# 16x1000 @ 1000x1000 takes 0.67 ms in blocks and 1.57 ms by `panels.py`, but 16x700 @ 700x700 takes 0.27 and 0.24.
FAR_BYTES = 3 << 20

# Bytes that the terms of a row of a span. From here on, the columns of a tile are copied together first. On AMD Zen 3 the
# product of a transposed matrix of 512x512 takes 3.5 ms instead of 4.2, one of 128x128 takes 54 us instead of 48.
APART_BYTES = 1 << 17


def suits_blocks(rows: int, nbytes: int, transposed: bool) -> bool:
    """Whether blocks are faster than `panels.py` for so many rows of a and a matrix b of `nbytes`.

    transposed: the terms of a column of b are neighbours, so that a panel is read in the order of memory anyway.
    """
    if has_masks() or rows == 1:
        return False
    return rows >= COPIED_ROWS or (nbytes >= FAR_BYTES and not transposed)


@functools.cache
def blocks_code(dtype: DType, transposed: bool, order: str) -> Code:
    """`entry(c, a, b, meta, tasks)` with the arguments and the meta of `panels_code`; the panels have one vector."""
    kernel = _Blocks(dtype, 1)
    functions = [kernel.pack(edge, transposed) for edge in (False, True)]
    functions += [kernel.pack_rows(), kernel.gather()]
    return loop_code(
        lambda body: kernel.tasks(body, transposed, order),
        3,
        parts=functions,
        declarations=kernel.declarations,
        vectorize=False,
    )


class _Blocks(Panels):
    def tasks(self, b: Body, transposed: bool, order: str) -> None:
        block, near = b.room(BLOCK_BYTES), b.room(tile().rows * DEPTH * self.size)
        with self.each_task(b, order) as (meta, task), b.loop(0, meta["terms"], DEPTH) as k:
            terms = b.minimum(b.integer("sub", meta["terms"], k), DEPTH)
            panels = b.integer("udiv", BLOCK_BYTES, b.integer("mul", terms, LINE))
            span = b.integer("mul", panels, self.lanes)
            with b.loop(0, task["columns"], span) as n:
                columns = b.minimum(b.integer("sub", task["columns"], n), span)
                source = b.place(task["b"], (k, meta["b_row"]), (n, meta["b_column"]))
                self.copy_block(b, meta, block, source, terms, columns, transposed)
                a, c = (
                    b.place(task["a"], (k, meta["a_column"])),
                    b.place(task["c"], (n, self.size)),
                )

                def tiles(m: str, rows: str, rest: str) -> None:
                    """Return all tiles of some rows."""
                    target = b.place(c, (m, meta["c_row"]))
                    left = self.near_rows(b, meta, b.place(a, (m, meta["a_row"])), near, rows, terms)

                    def multiply(j: str, panel: str, edge: bool) -> None:
                        places = b.place(target, (j, self.size)), left, (panel, LINE)
                        self.call_tile(b, meta, edge, rest, places, k, terms, b.integer("sub", columns, j))

                    self.each_panel(b, block, terms, columns, multiply)

                self.each_height(b, meta, task["rows"], tiles)

    def each_panel(
        self, b: Body, block: str, terms: str, columns: str, write: Callable[[str, str, bool], None]
    ) -> None:
        """Write code for each panel of a block: its first column, its address, and whether it has fewer columns than lanes."""
        step = b.integer("mul", terms, self.size)  # a panel has as many bytes as its columns, without gaps
        whole = b.integer("sub", columns, b.integer("urem", columns, self.lanes))
        with b.loop(0, whole, self.lanes) as j:
            write(j, b.place(block, (j, step)), False)
        with b.when(b.let(f"icmp ne i64 {whole}, {columns}")):
            write(whole, b.place(block, (whole, step)), True)

    # ---- Copies of b ---------------------------------------------------------------------------------------------------

    def copy_block(
        self, b: Body, meta, block: str, source: str, terms: str, columns: str, transposed: bool
    ) -> None:
        def pack(j: str, panel: str, edge: bool) -> None:
            if transposed or edge:
                self.call_pack(
                    b,
                    meta,
                    edge,
                    panel,
                    b.place(source, (j, meta["b_column"])),
                    terms,
                    b.integer("sub", columns, j),
                )

        self.each_panel(b, block, terms, columns, pack)
        if not transposed:
            b.do(
                f"call void @pack_rows(ptr {block}, ptr {source}, i64 {terms}, i64 {columns}, i64 {meta['b_row']})"
            )

    def pack_rows(self) -> str:
        """Copy `terms` rows of b into all whole panels of a block: each row is read in the order of memory."""

        def write(b: Body) -> None:
            step = b.integer("mul", "%terms", self.size)
            whole = b.integer("sub", "%columns", b.integer("urem", "%columns", self.lanes))
            with b.loop(0, "%terms") as k:
                source, target = b.place("%b", (k, "%b_row")), b.place("%block", (k, LINE))
                with b.loop(0, whole, self.lanes) as j:
                    value = self.load(b, b.place(source, (j, self.size)))
                    b.do(f"store {self.vector} {value}, ptr {b.place(target, (j, step))}, align {LINE}")

        parameters = "ptr noalias %block, ptr noalias %b, i64 %terms, i64 %columns, i64 %b_row"
        return self.function("pack_rows", parameters, write)

    # ---- Copies of a ---------------------------------------------------------------------------------------------------

    def near_rows(self, b: Body, meta, a: str, near: str, rows: str, terms: str) -> tuple[str, str, str]:
        """Return where the tiles read some rows of a: the address, the distance of rows, and that of columns."""
        step = tile().rows * self.size
        apart = b.let(f"icmp sge i64 {b.integer('mul', terms, meta['a_column'])}, {APART_BYTES}")
        with b.when(apart):
            b.do(f"call void @gather(ptr {near}, ptr {a}, i64 {terms}, i64 {rows}, i64 {meta['a_column']})")
        return (
            b.let(f"select i1 {apart}, ptr {near}, ptr {a}"),
            b.let(f"select i1 {apart}, i64 {self.size}, i64 {meta['a_row']}"),
            b.let(f"select i1 {apart}, i64 {step}, i64 {meta['a_column']}"),
        )

    def gather(self) -> str:
        """Copy the columns of the rows of a tile; the elements of a column are neighbours."""

        def write(b: Body) -> None:
            self.copy_columns(b, "%terms", "%rows", ("%near", tile().rows * self.size), ("%a", "%a_column"))
            # The columns are too far apart for the processor to guess which lines the next tiles read.
            with b.loop(0, "%terms") as k:
                prefetch(b, b.at(b.place("%a", (k, "%a_column")), LINE))

        parameters = "ptr noalias %near, ptr noalias %a, i64 %terms, i64 %rows, i64 %a_column"
        return self.function("gather", parameters, write)
