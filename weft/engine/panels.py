"""Matrix products as LLVM IR: panels of b, copied so that they are read in order, times a few rows of a in the registers.

Each element of the result is one chain of fused multiply-adds from the first term to the last. A product of one row has four chains in
each panel. So the bits depend neither on the number of threads, nor on how the product is cut, nor on the registers of the processor. Only
b is copied: the elements of a are broadcast to all lanes, so they may lie anywhere. `product_blocks.py` has the loops for larger products with 16
registers. Measured on one thread of an AMD Zen 4, against OpenBLAS, with b transposed:
128x784 @ 784x512 takes 0.94 ms instead of 1.14, 32x128 @ 128x512 47 us instead of 78.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.dtype import DType
from .host import compile_ir
from .kernel import Code, loop_code
from .llvm import value_type
from .sliding import LINE, Kernel, lines_at_once, tile
from .structured import Body
from .vectors import has_masks, lanes_below, load_lanes, store_lanes, transposed

# Terms of a panel: 3 vectors of each are 48 KiB, which lie in the memory next to the first cache beside the rows of a.
DEPTH = 256

# One row alone has a chain for each of so many terms in turn, because an addition takes four cycles.
CHAINS = 4

# Rows: from here on, the vectors of b are copied into the panel, where they follow each other.
COPIED_ROWS = 17

# The words of meta: terms, strides (bytes), the rows of a tile, and addresses from `tiles` for so many rows and for the rows that are
# left. Then for each task its rows, its columns and its offsets in c, a and b.
HEADER = (
    "terms", "a_row", "a_column", "b_row", "b_column", "c_row",
    "height", "edge", "whole", "edge_rest", "whole_rest",
)  # fmt: skip
TASK = ("rows", "columns", "c", "a", "b")


@functools.cache
def panels_code(dtype: DType, transposed: bool, order: str, lines: int) -> Code:
    """Write `entry(c, a, b, meta, tasks)`, or with the operands in another `order`, such as "cba".

    transposed: the terms of a column of b are neighbours, not the columns of a term. lines: vectors of a panel.
    """
    kernel = Panels(dtype, lines)
    functions = [kernel.pack(edge, transposed) for edge in (False, True)]
    return loop_code(
        lambda body: kernel.tasks(body, transposed, order),
        3,
        parts=functions,
        declarations=kernel.declarations,
        vectorize=False,
    )


@functools.cache
def tiles(dtype: DType, rows: int, lines: int, chains: int = 1) -> tuple[int, ...]:
    """Return the addresses of the code for `rows` rows: with a panel at the edge of b, and a whole one of `lines` vectors.

    Each is compiled once and serves all products with tiles of this height.
    """
    kernel = Panels(dtype, lines)
    functions = [kernel.tile(rows, edge, chains) for edge in (True, False)]
    text = "\n".join([*sorted(kernel.declarations), *functions])
    return compile_ir(text, "tile_edge", "tile", vectorize=False)


def panel_lines(rows: int) -> int:
    """Return the vectors of a panel for a product of so many rows.

    With 16 registers, few rows take more vectors, so that an addition need not wait for the last. One row has chains instead.
    """
    return tile().lines if has_masks() or not 1 < rows <= 3 else lines_at_once(rows)


class Panels(Kernel):
    def __init__(self, dtype: DType, lines: int):
        super().__init__(dtype)
        self.lines = lines

    # ---- One tile ----------------------------------------------------------------------------------------------------

    def tile(self, rows: int, edge: bool, chains: int) -> str:
        """Add the products of `rows` rows of a and a panel to c, or begin with them if `first`.

        A panel at the edge is one vector, and may have fewer columns than lanes: the others are neither read nor written in c.
        """
        lines = 1 if edge else self.lines

        def write(b: Body) -> None:
            inside = lanes_below(b, self.lanes, "%columns") if edge and has_masks() else ""
            near = b.room(rows * LINE) if edge and not has_masks() else ""
            partial = [
                [[b.variable(self.vector, "zeroinitializer") for _ in range(lines)] for _ in range(rows)]
                for _ in range(chains)
            ]
            sums = partial[0]

            def add(k: str, sums: list[list[str]]) -> None:
                line = b.place("%panel", (k, "%panel_row"))
                found = [self.read(b, b.at(line, j * LINE), inside) for j in range(lines)]
                column = b.place("%a", (k, "%a_column"))
                for m in range(rows):
                    factor = self.spread(b, b.place(column, (m, "%a_row")))
                    for j in range(lines):
                        before = b.get(sums[m][j], self.vector)
                        after = b.intrinsic("fma", self.dtype, self.lanes, found[j], factor, before)
                        b.set(sums[m][j], self.vector, after)

            with b.when(b.let("icmp eq i64 %first, 0")):
                if near:
                    self.copy_columns(b, rows, "%columns", (near, LINE), ("%c", "%c_row"))
                for m, j, place in self.places(b, rows, lines, near):
                    b.set(sums[m][j], self.vector, self.read(b, place, inside))
            whole = b.integer("sub", "%terms", b.integer("urem", "%terms", chains))
            with b.loop(0, whole, chains) as k:
                for number, chain in enumerate(partial):
                    add(b.integer("add", k, number), chain)
            if chains > 1:
                with b.loop(whole, "%terms") as k:
                    add(k, sums)
            for m, j, place in self.places(b, rows, lines, near):
                value = b.get(sums[m][j], self.vector)
                for chain in partial[1:]:
                    value = b.let(f"fadd {self.vector} {value}, {b.get(chain[m][j], self.vector)}")
                self.write(b, value, place, inside)
            if near:
                self.copy_columns(b, rows, "%columns", ("%c", "%c_row"), (near, LINE))

        parameters = (
            "ptr noalias %c, ptr noalias %a, ptr noalias %panel, i64 %panel_row, i64 %terms, i64 %columns, i64 %first, "
            "i64 %a_row, i64 %a_column, i64 %c_row"
        )
        return self.function("tile_edge" if edge else "tile", parameters, write, "")

    def places(self, b: Body, rows: int, lines: int, near: str):
        """Where the vectors of c are: in memory on the stack if its address `near` is given."""
        for m in range(rows):
            row = b.at(near, m * LINE) if near else b.place("%c", (m, "%c_row"))
            for j in range(lines):
                yield m, j, b.at(row, j * LINE)

    def copy_columns(
        self,
        b: Body,
        rows: str | int,
        columns: str,
        target: tuple[str, str | int],
        source: tuple[str, str | int],
    ) -> None:
        """Copy at most `lanes` columns of some rows, in pieces of 16, 8, 4, 2 and 1.

        target, source: the address of the first row, and the distance of rows.
        """
        piece = self.lanes
        while piece:
            kind = value_type(self.dtype, piece)
            with b.when(b.let(f"icmp ne i64 {b.integer('and', columns, piece)}, 0")):
                done = b.integer("and", columns, -2 * piece)
                with b.loop(0, rows) as m:
                    to, here = (
                        b.place(base, (m, step), (done, self.size)) for base, step in (target, source)
                    )
                    value = b.let(f"load {kind}, ptr {here}, align {self.size}")
                    b.do(f"store {kind} {value}, ptr {to}, align {self.size}")
            piece //= 2

    def read(self, b: Body, address: str, inside: str) -> str:
        return load_lanes(b, self.dtype, self.lanes, address, inside)

    def write(self, b: Body, value: str, address: str, inside: str) -> None:
        store_lanes(b, self.dtype, self.lanes, value, address, inside)

    # ---- Panels ------------------------------------------------------------------------------------------------------

    def pack(self, edge: bool, transposed: bool) -> str:
        """Copy `terms` rows of b into the panel; lanes that are no columns become 0."""
        lines = 1 if edge else self.lines

        def write(b: Body) -> None:
            if transposed:
                self.transpose(b, lines)
            elif edge and not has_masks():
                b.clear("%panel", b.integer("mul", "%terms", LINE))
                self.copy_columns(b, "%terms", "%columns", ("%panel", LINE), ("%b", "%b_row"))
            else:
                inside = lanes_below(b, self.lanes, "%columns") if edge else ""
                with b.loop(0, "%terms") as k:
                    source = b.place("%b", (k, "%b_row"))
                    target = b.place("%panel", (k, lines * LINE))
                    for j in range(lines):
                        value = self.read(b, b.at(source, j * LINE), inside)
                        b.do(f"store {self.vector} {value}, ptr {b.at(target, j * LINE)}, align {LINE}")

        parameters = "ptr noalias %panel, ptr noalias %b, i64 %terms, i64 %columns, i64 %b_row, i64 %b_column"
        return self.function("pack_edge" if edge else "pack", parameters, write)

    def transpose(self, b: Body, lines: int) -> None:
        """Squares of as many columns as lanes in registers, the terms and columns that are left one by one."""
        lanes, width = self.lanes, lines * self.lanes
        full = b.let(f"icmp sge i64 %columns, {width}")
        whole = b.integer("sub", "%terms", b.integer("urem", "%terms", lanes))
        squares = b.let(f"select i1 {full}, i64 {whole}, i64 0")
        for line in range(lines):
            with b.loop(0, squares, lanes) as k:
                source = b.place("%b", (k, self.size), (line * lanes, "%b_column"))
                target = b.place("%panel", (k, lines * LINE))
                rows = [self.load(b, b.place(source, (n, "%b_column"))) for n in range(lanes)]
                for term, row in enumerate(transposed(b, self.vector, rows)):
                    place = b.at(target, (term * lines + line) * LINE)
                    b.do(f"store {self.vector} {row}, ptr {place}, align {LINE}")
        with b.loop(squares, "%terms") as k:
            target = b.place("%panel", (k, lines * LINE))
            if lines == 1:
                b.do(f"store {self.vector} zeroinitializer, ptr {target}, align {LINE}")
            bound = b.let(f"select i1 {full}, i64 {width}, i64 %columns")
            with b.loop(0, bound) as n:
                source = b.place("%b", (k, self.size), (n, "%b_column"))
                self.move(b, b.place(target, (n, self.size)), source)

    # ---- All of it ---------------------------------------------------------------------------------------------------

    def tasks(self, b: Body, transposed: bool, order: str) -> None:
        panel = b.room(DEPTH * self.lines * LINE)
        with self.each_task(b, order) as (meta, task):
            wide = self.lines * self.lanes
            whole = b.integer("sub", task["columns"], b.integer("urem", task["columns"], wide))
            self.panels(b, meta, task, panel, ("0", whole), False, transposed)
            self.panels(b, meta, task, panel, (whole, task["columns"]), True, transposed)

    @contextmanager
    def each_task(self, b: Body, order: str) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """Return the words of meta, and those of each task with the addresses of its operands."""
        bases = b.fields("%operands", order, "ptr")
        meta = b.fields("%meta", HEADER)
        with b.loop("%begin", "%end") as i:
            words = b.place(b.at("%meta", 8 * len(HEADER)), (i, 8 * len(TASK)))
            task = b.fields(words, TASK)
            yield meta, task | {name: b.at(base, task[name]) for name, base in bases.items()}

    def panels(
        self, b: Body, meta, task, panel: str, span: tuple[str, str], edge: bool, transposed: bool
    ) -> None:
        """Write the columns of one task from span[0] to span[1]."""
        lines = 1 if edge else self.lines
        with b.loop(span[0], span[1], lines * self.lanes) as n, b.loop(0, meta["terms"], DEPTH) as k:
            terms = b.minimum(b.integer("sub", meta["terms"], k), DEPTH)
            columns = b.minimum(b.integer("sub", task["columns"], n), lines * self.lanes)
            source = b.place(task["b"], (k, meta["b_row"]), (n, meta["b_column"]))
            # Few rows are not worth a copy of whole vectors.
            copied = transposed or (edge and not has_masks())
            direct = b.let(f"icmp slt i64 {task['rows']}, {0 if copied else COPIED_ROWS}")
            with b.unless(direct):
                self.call_pack(b, meta, edge, panel, source, terms, columns)
            right = b.let(f"select i1 {direct}, ptr {source}, ptr {panel}")
            step = b.let(f"select i1 {direct}, i64 {meta['b_row']}, i64 {lines * LINE}")
            corner = b.place(task["c"], (n, self.size))
            column = b.place(task["a"], (k, meta["a_column"]))

            def multiply(m: str, rows: str, rest: str) -> None:
                target, here = (
                    b.place(base, (m, meta[step])) for base, step in ((corner, "c_row"), (column, "a_row"))
                )
                left = here, meta["a_row"], meta["a_column"]
                self.call_tile(b, meta, edge, rest, (target, left, (right, step)), k, terms, columns)

            self.each_height(b, meta, task["rows"], multiply)

    def each_height(self, b: Body, meta, rows: str, write: Callable[[str, str, str], None]) -> None:
        """Write code for the rows of whole tiles, and for those that are left: the first row, their number, and the suffix of words in meta."""
        left = b.integer("urem", rows, meta["height"])
        full = b.integer("sub", rows, left)
        with b.loop(0, full, meta["height"]) as m:
            write(m, meta["height"], "")
        with b.when(b.let(f"icmp ne i64 {left}, 0")):
            write(full, left, "_rest")

    def call_pack(self, b: Body, meta, edge: bool, panel: str, source: str, terms: str, columns: str) -> None:
        b.do(
            f"call void @{'pack_edge' if edge else 'pack'}(ptr {panel}, ptr {source}, i64 {terms}, i64 {columns}, "
            f"i64 {meta['b_row']}, i64 {meta['b_column']})"
        )

    def call_tile(
        self, b: Body, meta, edge: bool, rest: str, places, k: str, terms: str, columns: str
    ) -> None:
        """Call a tile. places: of c; of a with the distances of rows and columns; of the panel with that of rows."""
        c, (a, a_row, a_column), (panel, panel_row) = places
        code = b.pointer(meta[("edge" if edge else "whole") + rest])
        first = b.let(f"zext i1 {b.let(f'icmp eq i64 {k}, 0')} to i64")
        b.do(
            f"call void {code}(ptr {c}, ptr {a}, ptr {panel}, i64 {panel_row}, i64 {terms}, i64 {columns}, i64 {first}, "
            f"i64 {a_row}, i64 {a_column}, i64 {meta['c_row']})"
        )
