"""Matrix products as LLVM IR: panels of b, copied so that they are read in order, times a few rows of a in the registers.

Each element of the result is one chain of fused multiply-adds from the first term to the last. A product of one row has four chains in
each panel. So the bits depend neither on the number of threads nor on how the product is cut. Only b is copied: the elements of a are
broadcast to all lanes, so they may lie anywhere. Measured on one thread of an AMD Zen 4, against OpenBLAS, with b transposed:
128x784 @ 784x512 takes 0.94 ms instead of 1.14, 32x128 @ 128x512 47 us instead of 78.
"""

from __future__ import annotations

import functools

from ..core.dtype import DType
from .host import compile_ir
from .kernel import Code, compile_loop
from .sliding import LINE, Kernel, tile
from .structured import Body
from .vectors import lanes_below, masked_load, masked_store, transposed

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
    "height", "narrow", "wide", "narrow_rest", "wide_rest",
)  # fmt: skip
TASK = ("rows", "columns", "c", "a", "b")


@functools.cache
def panels_code(dtype: DType, transposed: bool, order: str) -> Code:
    """`entry(c, a, b, meta, tasks)`, or with the operands in another `order`, such as "cba".

    transposed: the terms of a column of b are neighbours, not the columns of a term.
    """
    kernel = Panels(dtype)
    functions = [kernel.pack(lines, transposed) for lines in sorted({1, tile().lines})]
    parameters = "ptr %operands, ptr %meta, i64 %begin, i64 %end"
    functions.append(
        kernel.function("loop", parameters, lambda body: kernel.tasks(body, transposed, order), "")
    )
    return compile_loop("\n".join([*sorted(kernel.declarations), *functions]), 3, "", vectorize=False)


@functools.cache
def tiles(dtype: DType, rows: int) -> tuple[int, ...]:
    """The addresses of the machine code for `rows` rows: with panels of one vector, and with as many as a tile has.

    Each is compiled once and serves all products with tiles of this height.
    """
    kernel = Panels(dtype)
    widths = sorted({1, tile().lines})
    functions = [kernel.tile(rows, lines) for lines in widths]
    text = "\n".join([*sorted(kernel.declarations), *functions])
    found = compile_ir(text, *(f"tile{lines}" for lines in widths), vectorize=False)
    return found[0], found[-1]


class Panels(Kernel):
    # ---- One tile ----------------------------------------------------------------------------------------------------

    def tile(self, rows: int, lines: int) -> str:
        """Add the products of `rows` rows of a and a panel to c, or begin with them if `first`.

        A panel of one vector may have fewer columns than lanes: the others are neither read nor written in c.
        """
        edge = lines == 1

        def write(b: Body) -> None:
            inside = lanes_below(b, self.lanes, "%columns") if edge else ""
            chains = [
                [[b.variable(self.vector, "zeroinitializer") for _ in range(lines)] for _ in range(rows)]
                for _ in range(CHAINS if rows == 1 else 1)
            ]
            sums = chains[0]

            def add(k: str, sums: list[list[str]]) -> None:
                line = self.place(b, "%panel", (k, "%panel_row"))
                found = [self.read(b, b.at(line, j * LINE), inside) for j in range(lines)]
                column = self.place(b, "%a", (k, "%a_column"))
                for m in range(rows):
                    factor = self.spread(b, self.place(b, column, (m, "%a_row")))
                    for j in range(lines):
                        before = b.get(sums[m][j], self.vector)
                        after = b.intrinsic("fma", self.dtype, self.lanes, found[j], factor, before)
                        b.set(sums[m][j], self.vector, after)

            with b.when(b.let("icmp eq i64 %first, 0")):
                for m, j, place in self.places(b, rows, lines):
                    b.set(sums[m][j], self.vector, self.read(b, place, inside))
            whole = b.integer("sub", "%terms", b.integer("urem", "%terms", len(chains)))
            with b.loop(0, whole, len(chains)) as k:
                for number, chain in enumerate(chains):
                    add(b.integer("add", k, number), chain)
            if len(chains) > 1:
                with b.loop(whole, "%terms") as k:
                    add(k, sums)
            for m, j, place in self.places(b, rows, lines):
                value = b.get(sums[m][j], self.vector)
                for chain in chains[1:]:
                    value = b.let(f"fadd {self.vector} {value}, {b.get(chain[m][j], self.vector)}")
                self.write(b, value, place, inside)

        parameters = (
            "ptr noalias %c, ptr noalias %a, ptr noalias %panel, i64 %panel_row, i64 %terms, i64 %columns, i64 %first, "
            "i64 %a_row, i64 %a_column, i64 %c_row"
        )
        return self.function(f"tile{lines}", parameters, write, "")

    def places(self, b: Body, rows: int, lines: int):
        for m in range(rows):
            row = self.place(b, "%c", (m, "%c_row"))
            for j in range(lines):
                yield m, j, b.at(row, j * LINE)

    def read(self, b: Body, address: str, inside: str) -> str:
        if inside:
            return masked_load(b, self.dtype, self.lanes, address, inside)
        return self.load(b, address)

    def write(self, b: Body, value: str, address: str, inside: str) -> None:
        if inside:
            masked_store(b, self.dtype, self.lanes, value, address, inside)
        else:
            b.do(f"store {self.vector} {value}, ptr {address}, align {self.size}")

    # ---- Panels ------------------------------------------------------------------------------------------------------

    def pack(self, lines: int, transposed: bool) -> str:
        """Copy `terms` rows of `lines` vectors of b into the panel; lanes that are no columns become 0."""

        def write(b: Body) -> None:
            if not transposed and lines > 1:
                with b.loop(0, "%terms") as k:
                    source = self.place(b, "%b", (k, "%b_row"))
                    target = self.place(b, "%panel", (k, lines * LINE))
                    for j in range(lines):
                        value = self.load(b, b.at(source, j * LINE))
                        b.do(f"store {self.vector} {value}, ptr {b.at(target, j * LINE)}, align {LINE}")
            elif not transposed:
                inside = lanes_below(b, self.lanes, "%columns")
                with b.loop(0, "%terms") as k:
                    value = self.read(b, self.place(b, "%b", (k, "%b_row")), inside)
                    b.do(
                        f"store {self.vector} {value}, ptr {self.place(b, '%panel', (k, LINE))}, align {LINE}"
                    )
            else:
                self.transpose(b, lines)

        parameters = "ptr noalias %panel, ptr noalias %b, i64 %terms, i64 %columns, i64 %b_row, i64 %b_column"
        return self.function(f"pack{lines}", parameters, write)

    def transpose(self, b: Body, lines: int) -> None:
        """Squares of as many columns as lanes in registers, the terms and columns that are left one by one."""
        lanes, width = self.lanes, lines * self.lanes
        full = b.let(f"icmp sge i64 %columns, {width}")
        whole = b.integer("sub", "%terms", b.integer("urem", "%terms", lanes))
        squares = b.let(f"select i1 {full}, i64 {whole}, i64 0")
        for line in range(lines):
            with b.loop(0, squares, lanes) as k:
                source = self.place(b, "%b", (k, self.size), (line * lanes, "%b_column"))
                target = self.place(b, "%panel", (k, lines * LINE))
                rows = [self.load(b, self.place(b, source, (n, "%b_column"))) for n in range(lanes)]
                for term, row in enumerate(transposed(b, self.vector, rows)):
                    place = b.at(target, (term * lines + line) * LINE)
                    b.do(f"store {self.vector} {row}, ptr {place}, align {LINE}")
        with b.loop(squares, "%terms") as k:
            target = self.place(b, "%panel", (k, lines * LINE))
            if lines == 1:
                b.do(f"store {self.vector} zeroinitializer, ptr {target}, align {LINE}")
            bound = b.let(f"select i1 {full}, i64 {width}, i64 %columns")
            with b.loop(0, bound) as n:
                source = self.place(b, "%b", (k, self.size), (n, "%b_column"))
                self.move(b, self.place(b, target, (n, self.size)), source)

    # ---- All of it ---------------------------------------------------------------------------------------------------

    def tasks(self, b: Body, transposed: bool, order: str) -> None:
        bases = {name: b.let(f"load ptr, ptr {b.at('%operands', 8 * k)}") for k, name in enumerate(order)}
        meta = {name: b.let(f"load i64, ptr {b.at('%meta', 8 * k)}") for k, name in enumerate(HEADER)}
        panel = b.room(DEPTH * tile().lines * LINE)
        with b.loop("%begin", "%end") as i:
            words = self.place(b, b.at("%meta", 8 * len(HEADER)), (i, 8 * len(TASK)))
            task = {name: b.let(f"load i64, ptr {b.at(words, 8 * k)}") for k, name in enumerate(TASK)}
            task |= {name: b.at(base, task[name]) for name, base in bases.items()}
            wide = tile().lines * self.lanes
            whole = b.integer("sub", task["columns"], b.integer("urem", task["columns"], wide))
            if tile().lines > 1:
                self.panels(b, meta, task, panel, ("0", whole), tile().lines, transposed)
            else:
                whole = "0"
            self.panels(b, meta, task, panel, (whole, task["columns"]), 1, transposed)

    def panels(
        self, b: Body, meta, task, panel: str, span: tuple[str, str], lines: int, transposed: bool
    ) -> None:
        """The columns of one task from span[0] to span[1], `lines` vectors at a time."""
        with b.loop(span[0], span[1], lines * self.lanes) as n, b.loop(0, meta["terms"], DEPTH) as k:
            terms = b.minimum(b.integer("sub", meta["terms"], k), DEPTH)
            columns = b.integer("sub", task["columns"], n)
            source = self.place(b, task["b"], (k, meta["b_row"]), (n, meta["b_column"]))
            # Few rows are not worth a copy of whole vectors.
            direct = b.let(f"icmp slt i64 {task['rows']}, {0 if transposed else COPIED_ROWS}")
            with b.when(b.let(f"xor i1 {direct}, true")):
                b.do(
                    f"call void @pack{lines}(ptr {panel}, ptr {source}, i64 {terms}, i64 {columns}, i64 {meta['b_row']}, "
                    f"i64 {meta['b_column']})"
                )
            right = b.let(f"select i1 {direct}, ptr {source}, ptr {panel}")
            step = b.let(f"select i1 {direct}, i64 {meta['b_row']}, i64 {lines * LINE}")
            first = b.let(f"zext i1 {b.let(f'icmp eq i64 {k}, 0')} to i64")
            corner = self.place(b, task["c"], (n, self.size))
            column = self.place(b, task["a"], (k, meta["a_column"]))

            def call(m: str, word: str) -> None:
                target, here = (
                    self.place(b, base, (m, meta[step]))
                    for base, step in ((corner, "c_row"), (column, "a_row"))
                )
                code = b.let(f"inttoptr i64 {meta[word]} to ptr")
                b.do(
                    f"call void {code}(ptr {target}, ptr {here}, ptr {right}, i64 {step}, i64 {terms}, "
                    f"i64 {columns}, i64 {first}, i64 {meta['a_row']}, i64 {meta['a_column']}, i64 {meta['c_row']})"
                )

            word = "narrow" if lines == 1 else "wide"
            left = b.integer("urem", task["rows"], meta["height"])
            full = b.integer("sub", task["rows"], left)
            with b.loop(0, full, meta["height"]) as m:
                call(m, word)
            with b.when(b.let(f"icmp ne i64 {left}, 0")):
                call(full, f"{word}_rest")
