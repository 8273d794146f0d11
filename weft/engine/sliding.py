"""Direct convolution as LLVM IR: sums of shifted lines, a tile of channels and positions at a time.

Both kernels copy the planes of an image into scratch memory, with zeros around them and lines of all dims laid end to end. There,
a place in the window is a fixed distance from the first place, for every position: the distances are a table. So the loops
run over positions in memory order, many at once, and no patches are copied out. The price is sums that no position needs: those that
reach over the end of a line.

    sums      line[m][p] = bias[m] + the sum over terms t of weight[m][t] * line[p + distance[t]]
    products  weight[m][t] = the sum over p of result[m][p] * line[p + distance[t]]

Each element of `sums` is one chain of fused multiply-adds in the order of the table, and each of `products` one for each lane of
64 bytes, so the results depend neither on the number of threads nor on the registers of the processor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ..core.dtype import DType
from .host import cpu
from .kernel import Code, loop_code
from .llvm import value_type
from .structured import Body, function
from .vectors import broadcast, has_masks, lane_sums, lanes_below, load_lanes, store_lanes

LINE = 64  # bytes of a vector, as many as an AVX-512 register has
TOTALS = 8  # sums of lanes that are stored side by side: at least `Tile.right`


class Tile(NamedTuple):
    """The sizes of a tile, whose sums stay in registers."""

    rows: int  # channels of `sums`
    lines: int  # vectors of positions of `sums`
    left: int  # channels of the result of `products`
    right: int  # terms of `products`


@functools.cache
def tile() -> Tile:
    """32 registers hold 24 sums, a few elements and a factor. Without AVX-512 there are 16 of half the size, or 32 of a quarter."""
    return Tile(8, 3, 4, 6) if "+avx512f" in cpu()[1].split(",") else Tile(6, 1, 2, 3)


def lines_at_once(rows: int) -> int:
    """Vectors of positions of a tile of so many channels: with few channels more, so that an addition need not wait for the last."""
    return max(tile().lines, min(8, tile().rows * tile().lines // rows))


# The words of meta. Distances and sizes of memory are in bytes; tables are addresses of int64.
SUMS_META = (
    "tasks", "parts", "scratch", "groups", "strips", "strip_table",
    "planes", "input_unit", "input_plane", "line_plane", "line_bytes", "input_step",
    "made", "weight_group", "weight_row", "result_unit", "result_plane", "result_step", "sums_row",
)  # fmt: skip
STRIP = ("rows", "row_table", "phases", "phase_table")
PHASE = ("terms", "term_table", "vectors", "start_table", "rows", "row_table")
ROW = ("source", "target", "count")
TERM = ("distance", "weight")

PRODUCTS_META = (
    "parts", "scratch", "groups", "units", "at_once", "strips", "strip_table",
    "planes", "input_image", "input_group", "input_plane", "line_plane", "line_image", "line_bytes", "input_step",
    "made", "result_image", "result_group", "result_plane", "own_plane", "own_image",
    "terms", "weight_group", "weight_row",
)  # fmt: skip


@functools.cache
def sums_code(dtype: DType, made: int) -> Code:
    """`entry(result, input, weight, bias, scratch, meta, parts)` for units of `made` channels; bias has zeros where there is none."""
    kernel = Sums(dtype)
    rows = [size for size in (min(made, tile().rows), made % tile().rows) if size]
    tiles = sorted({(size, lines) for size in rows for lines in (1, lines_at_once(size))})
    parts = [kernel.copy_rows(), *(kernel.tile(*each) for each in tiles)]
    return loop_code(
        lambda body: kernel.write(body, rows[0], rows[-1]),
        5,
        parts=parts,
        declarations=kernel.declarations,
        vectorize=False,
    )


@functools.cache
def products_code(dtype: DType) -> Code:
    """Compute `entry(weight, input, result, scratch, meta, parts)`."""
    kernel = _Products(dtype)
    parts = [kernel.copy_rows(), kernel.tile()]
    return loop_code(kernel.write, 4, parts=parts, declarations=kernel.declarations, vectorize=False)


class Kernel:
    """The parts that these kernels and `panels.py` share."""

    def __init__(self, dtype: DType):
        self.dtype, self.size = dtype, dtype.itemsize
        self.lanes = LINE // dtype.itemsize
        self.element, self.vector = value_type(dtype), value_type(dtype, self.lanes)
        self.declarations: set[str] = set()

    def function(self, name: str, parameters: str, write, linkage: str = "internal") -> str:
        return function(name, parameters, self.declarations, write, linkage)

    def load(self, b: Body, address: str) -> str:
        return b.let(f"load {self.vector}, ptr {address}, align {self.size}")

    def spread(self, b: Body, address: str) -> str:
        """Return the element at `address` in every lane."""
        one = b.let(f"load {self.element}, ptr {address}, align {self.size}")
        return broadcast(b, self.element, self.lanes, one)

    def copy_rows(self) -> str:
        """copy_rows(target, source, table, rows, target step, source step): elements `size` bytes apart are copied faster.

        So is every second element, as in a convolution with stride 2: 64 channels of 56x56, each with its own kernel, take 1.4 ms instead
        of 2.1 (AMD Zen 3, one thread). With masks of AVX-512 so are short rows, and elements that become every second one, as in a
        transposed convolution. Without them single elements are faster: that of 8x64x16x16 takes 8.6 ms instead of 10.2 (AMD Zen 3).
        """

        def write(b: Body) -> None:
            with b.loop(0, "%rows") as r:
                row = b.fields(b.place("%table", (r, 8 * len(ROW))), ROW)
                source, target = b.at("%source", row["source"]), b.at("%target", row["target"])
                close_source = b.let(f"icmp eq i64 %source_step, {self.size}")
                close_target = b.let(f"icmp eq i64 %target_step, {self.size}")
                close = b.let(f"and i1 {close_source}, {close_target}")
                wide = b.let(f"icmp sge i64 {row['count']}, {self.lanes}")
                is_done = b.let(f"and i1 {close}, {wide}")
                with b.when(is_done):
                    # The last vector may overlap the one before.
                    last = b.integer("sub", row["count"], self.lanes)
                    with b.loop(0, b.integer("add", last, self.lanes), self.lanes) as i:
                        offset = b.integer("mul", b.minimum(i, last), self.size)
                        value = self.load(b, b.at(source, offset))
                        b.do(f"store {self.vector} {value}, ptr {b.at(target, offset)}, align {self.size}")
                if has_masks():
                    with b.when(b.let(f"and i1 {close}, {b.let(f'xor i1 {wide}, true')}")):
                        inside = lanes_below(b, self.lanes, row["count"])
                        value = load_lanes(b, self.dtype, self.lanes, source, inside)
                        store_lanes(b, self.dtype, self.lanes, value, target, inside)
                    every_second = b.let(f"icmp eq i64 %target_step, {2 * self.size}")
                    every_second = b.let(f"and i1 {close_source}, {every_second}")
                    with b.when(every_second):
                        self.copy_apart(b, target, source, row["count"])
                    is_done = b.let(f"or i1 {close}, {every_second}")
                apart = b.let(f"icmp eq i64 %source_step, {2 * self.size}")
                apart = b.let(f"and i1 {apart}, {close_target}")
                # The last vector is left out, because the element behind its last one may lie behind the source.
                whole = b.integer("sub", row["count"], 1)
                whole = b.integer("sub", whole, b.integer("srem", whole, self.lanes))
                whole = b.let(f"select i1 {apart}, i64 {whole}, i64 0")
                with b.loop(0, whole, self.lanes) as i:
                    self.copy_together(
                        b, b.place(target, (i, self.size)), b.place(source, (i, 2 * self.size))
                    )
                begin = b.let(f"select i1 {is_done}, i64 {row['count']}, i64 {whole}")
                with b.loop(begin, row["count"]) as i:
                    self.move(
                        b,
                        b.place(target, (i, "%target_step")),
                        b.place(source, (i, "%source_step")),
                    )

        parameters = "ptr noalias %target, ptr noalias %source, ptr %table, i64 %rows, i64 %target_step, i64 %source_step"
        return self.function("copy_rows", parameters, write)

    def copy_apart(self, b: Body, target: str, source: str, count: str) -> None:
        """Copy neighbours to every second element: the halves of a vector are spread, and the lanes between are not stored.

        A transposed convolution of 8x64x16x16 with stride 2 takes 3.46 ms instead of 3.78 (AMD Zen 4, one thread).
        """
        half = self.lanes // 2
        with b.loop(0, count, self.lanes) as i:
            inside = lanes_below(b, self.lanes, b.integer("sub", count, i))
            value = load_lanes(b, self.dtype, self.lanes, b.place(source, (i, self.size)), inside)
            for first in (0, half):
                order = [k for lane in range(first, first + half) for k in (lane, self.lanes)]
                part, mask = (
                    self.chosen(b, kind, vector, order)
                    for kind, vector in ((self.element, value), ("i1", inside))
                )
                place = b.place(target, (b.integer("add", i, first), 2 * self.size))
                store_lanes(b, self.dtype, self.lanes, part, place, mask)

    def copy_together(self, b: Body, target: str, source: str) -> None:
        """Copy every second element, a vector of them."""
        low, high = self.load(b, source), self.load(b, b.at(source, LINE))
        order = ", ".join(f"i32 {2 * lane}" for lane in range(self.lanes))
        value = b.let(
            f"shufflevector {self.vector} {low}, {self.vector} {high}, <{self.lanes} x i32> <{order}>"
        )
        b.do(f"store {self.vector} {value}, ptr {target}, align {self.size}")

    def chosen(self, b: Body, kind: str, vector: str, lanes: list[int]) -> str:
        """Lanes of a vector, in this order; the number after the last one stands for 0."""
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        kind = f"<{self.lanes} x {kind}>"
        return b.let(f"shufflevector {kind} {vector}, {kind} zeroinitializer, <{self.lanes} x i32> <{order}>")

    def move(self, b: Body, target: str, source: str) -> None:
        value = b.let(f"load {self.element}, ptr {source}, align {self.size}")
        b.do(f"store {self.element} {value}, ptr {target}, align {self.size}")

    def copy(self, b: Body, target: str, source: str, table: str, rows: str, steps: tuple[str, str]) -> None:
        b.do(
            f"call void @copy_rows(ptr {target}, ptr {source}, ptr {table}, i64 {rows}, i64 {steps[0]}, i64 {steps[1]})"
        )

    def part(self, b: Body, k: str, count: str, parts: str) -> tuple[str, str]:
        """Which of `count` tasks are those of part k."""
        following = b.integer("add", k, 1)
        first, last = (b.integer("sdiv", b.integer("mul", count, each), parts) for each in (k, following))
        return first, last


class Sums(Kernel):
    def tile(self, rows: int, lines: int) -> str:
        """Return the sums of some channels at `lines` vectors of positions."""

        def write(b: Body) -> None:
            sums = []
            for m in range(rows):
                start = self.spread(b, b.at("%bias", m * self.size))
                sums.append([b.variable(self.vector, start) for _ in range(lines)])
            with b.loop(0, "%terms") as t:
                term = b.fields(b.place("%table", (t, 8 * len(TERM))), TERM)
                found = [self.load(b, b.at(f"%source{j}", term["distance"])) for j in range(lines)]
                weight = b.at("%weight", term["weight"])
                for m in range(rows):
                    factor = self.spread(b, b.place(weight, ("%weight_row", m)))
                    for j in range(lines):
                        before = b.get(sums[m][j], self.vector)
                        after = b.intrinsic("fma", self.dtype, self.lanes, found[j], factor, before)
                        b.set(sums[m][j], self.vector, after)
            for m in range(rows):
                target = b.place("%target", ("%target_row", m))
                for j in range(lines):
                    value = b.get(sums[m][j], self.vector)
                    b.do(f"store {self.vector} {value}, ptr {b.at(target, j * LINE)}, align {LINE}")

        parameters = (
            "ptr noalias %target, ptr noalias %weight, ptr noalias %bias, ptr noalias %table, i64 %terms, i64 %weight_row, "
            f"i64 %target_row, {', '.join(f'ptr %source{j}' for j in range(lines))}"
        )
        return self.function(f"tile{rows}x{lines}", parameters, write)

    def write(self, b: Body, rows: int, rest: int) -> None:
        operands = b.operands(5)
        result, input, weight, bias, scratch = operands
        meta = b.fields("%meta", SUMS_META)
        strip_table = b.pointer(meta["strip_table"])
        with b.loop("%begin", "%end") as part:
            lines = b.place(scratch, (part, meta["scratch"]))
            sums = b.at(lines, meta["line_bytes"])
            first, last = self.part(b, part, meta["tasks"], meta["parts"])
            filled = b.variable("i64", "-1")  # the strip whose border is in the scratch memory
            with b.loop(first, last) as task:
                unit, strip = (b.integer(each, task, meta["strips"]) for each in ("sdiv", "srem"))
                group = b.integer("srem", unit, meta["groups"])
                own = b.fields(b.place(strip_table, (strip, 8 * len(STRIP))), STRIP)
                with b.when(b.let(f"icmp ne i64 {b.get(filled, 'i64')}, {strip}")):
                    b.clear(lines, meta["line_bytes"])
                    b.set(filled, "i64", strip)
                source = b.place(input, (unit, meta["input_unit"]))
                table = b.pointer(own["row_table"])
                with b.loop(0, meta["planes"]) as c:
                    target, plane = (
                        b.place(base, (c, step))
                        for base, step in ((lines, meta["line_plane"]), (source, meta["input_plane"]))
                    )
                    self.copy(b, target, plane, table, own["rows"], (str(self.size), meta["input_step"]))
                weights = b.place(weight, (group, meta["weight_group"]))
                offsets = b.place(bias, (b.integer("mul", group, meta["made"]), self.size))
                target = b.place(result, (unit, meta["result_unit"]))
                phases = b.pointer(own["phase_table"])
                with b.loop(0, own["phases"]) as f:
                    phase = b.fields(b.place(phases, (f, 8 * len(PHASE))), PHASE)
                    self.channels(b, rows, rest, meta, phase, lines, sums, weights, offsets, target)

    def channels(
        self, b: Body, rows: int, rest: int, meta, phase, lines, sums, weights, offsets, target
    ) -> None:
        """Return all channels at the positions of one phase: blocks of `rows` channels, and the rest of them."""

        def add(m: str, count: int) -> None:
            self.block(b, m, count, meta, phase, lines, sums, weights, offsets, target)

        self.each_block(b, meta["made"], rows, rest, add)

    def each_block(self, b: Body, made: str, rows: int, rest: int, write: Callable[[str, int], None]) -> None:
        """Write code for blocks of `rows` channels and the rest of them: for the first channel of a block, and how many it has."""
        whole = b.integer("sub", made, b.integer("srem", made, rows))
        with b.loop(0, whole, rows) as m:
            write(m, rows)
        if rest != rows:
            write(whole, rest)

    def block(self, b: Body, m, rows, meta, phase, lines, sums, weights, offsets, target) -> None:
        """The sums of `rows` channels, and those of them that belong to the result."""
        weight = b.place(weights, (m, meta["weight_row"]))
        offset = b.place(offsets, (m, self.size))
        table, starts = (b.pointer(phase[word]) for word in ("term_table", "start_table"))

        def call(v: str, count: int) -> None:
            own = b.place(starts, (v, 8))
            sources = [b.at(lines, b.load("i64", b.at(own, 8 * j))) for j in range(count)]
            b.do(
                f"call void @tile{rows}x{count}(ptr {b.place(sums, (v, LINE))}, ptr {weight}, ptr {offset}, "
                f"ptr {table}, i64 {phase['terms']}, i64 {meta['weight_row']}, i64 {meta['sums_row']}, "
                f"{', '.join(f'ptr {each}' for each in sources)})"
            )

        at_once = lines_at_once(rows)
        last = b.integer("sub", phase["vectors"], at_once)
        enough = b.let(f"icmp sge i64 {last}, 0")
        # The last tile may overlap the one before, whose sums it computes again.
        with b.loop(0, b.let(f"select i1 {enough}, i64 {phase['vectors']}, i64 0"), at_once) as v:
            call(b.minimum(v, last), at_once)
        with b.loop(0, b.let(f"select i1 {enough}, i64 0, i64 {phase['vectors']}")) as v:
            call(v, 1)
        self.give(b, m, rows, meta, phase, sums, target)

    def give(self, b: Body, m, rows, meta, phase, sums, target) -> None:
        """Copy those sums of `rows` channels, from channel m on, that belong to the result."""
        table = b.pointer(phase["row_table"])
        with b.loop(0, rows) as k:
            self.copy(
                b,
                b.place(target, (b.integer("add", m, k), meta["result_plane"])),
                b.place(sums, (k, meta["sums_row"])),
                table,
                phase["rows"],
                (meta["result_step"], str(self.size)),
            )


PRODUCTS_STRIP = ("rows", "row_table", "own_rows", "own_table", "vectors", "start_table", "term_table")


class _Products(Kernel):
    def tile(self) -> str:
        """Add the products of `left` channels and `right` terms to the weight; `%rows` and `%columns` bound what it has of them."""
        left, right = tile().left, tile().right

        def write(b: Body) -> None:
            sums = [[b.variable(self.vector, "zeroinitializer") for _ in range(right)] for _ in range(left)]
            distances = b.words("%table", right)
            with b.loop(0, "%images") as n:
                owns = b.place("%own", (n, "%own_image"))
                lines = b.place("%lines", (n, "%line_image"))
                with b.loop(0, "%vectors") as v:
                    here = b.place(owns, (v, LINE))
                    there = b.at(lines, b.let(f"load i64, ptr {b.place('%starts', (v, 8))}"))
                    found = [self.load(b, b.place(here, (m, "%own_plane"))) for m in range(left)]
                    for j in range(right):
                        other = self.load(b, b.at(there, distances[j]))
                        for m in range(left):
                            before = b.get(sums[m][j], self.vector)
                            after = b.intrinsic("fma", self.dtype, self.lanes, found[m], other, before)
                            b.set(sums[m][j], self.vector, after)
            inside = lanes_below(b, TOTALS, b.minimum("%columns", right))
            for m in range(left):
                with b.when(b.let(f"icmp slt i64 {m}, %rows")):
                    row = b.place("%weight", (m, "%weight_row"))
                    found = [b.get(each, self.vector) for each in sums[m]]
                    totals = lane_sums(b, self.dtype, self.lanes, found + found[-1:] * (TOTALS - right))
                    before = load_lanes(b, self.dtype, TOTALS, row, inside)
                    after = b.let(f"fadd <{TOTALS} x {self.element}> {before}, {totals}")
                    store_lanes(b, self.dtype, TOTALS, after, row, inside)

        parameters = (
            "ptr noalias %weight, ptr noalias %own, ptr noalias %lines, ptr noalias %table, i64 %rows, i64 %columns, i64 %images, "
            "i64 %vectors, ptr noalias %starts, i64 %own_plane, i64 %own_image, i64 %line_image, i64 %weight_row"
        )
        return self.function("tile", parameters, write)

    def write(self, b: Body) -> None:
        operands = b.operands(4)
        weight, input, result, scratch = operands
        meta = b.fields("%meta", PRODUCTS_META)
        left = tile().left
        blocks = b.integer("sdiv", b.integer("add", meta["made"], left - 1), left)
        with b.loop("%begin", "%end") as part:
            lines = b.place(scratch, (part, meta["scratch"]))
            owns = b.at(lines, meta["line_bytes"])
            first, last = self.part(b, part, b.integer("mul", blocks, meta["groups"]), meta["parts"])
            end = b.integer("sdiv", b.integer("add", last, b.integer("sub", blocks, 1)), blocks)
            filled = b.variable("i64", "-1")  # the strip whose border is in the scratch memory
            with b.loop(b.integer("sdiv", first, blocks), end) as group:
                start = b.integer("mul", group, blocks)
                low, high = (
                    b.integer("mul", b.integer("sub", block, start), left) for block in (first, last)
                )
                low, high = b.maximum(low, 0), b.minimum(high, meta["made"])
                target = b.place(weight, (group, meta["weight_group"]), (low, meta["weight_row"]))
                rows = b.integer("sub", high, low)
                b.clear(target, b.integer("mul", rows, meta["weight_row"]))
                source = b.place(input, (group, meta["input_group"]))
                other = b.place(result, (group, meta["result_group"]), (low, meta["result_plane"]))
                with b.loop(0, meta["units"], meta["at_once"]) as unit:
                    self.units(b, meta, unit, filled, lines, owns, source, other, target, rows)

    def units(self, b: Body, meta, first, filled, lines, owns, input, result, weight, rows) -> None:
        """Add the products of some units, from `first` on, for `rows` channels of one group."""
        last = b.minimum(b.integer("add", first, meta["at_once"]), meta["units"])
        strip = b.integer("srem", first, meta["strips"])
        strips = b.pointer(meta["strip_table"])
        own = b.fields(b.place(strips, (strip, 8 * len(PRODUCTS_STRIP))), PRODUCTS_STRIP)
        with b.when(b.let(f"icmp ne i64 {b.get(filled, 'i64')}, {strip}")):
            b.clear(lines, meta["scratch"])
            b.set(filled, "i64", strip)
        images = b.integer("sub", last, first)
        with b.loop(0, images) as k:
            image = b.integer("sdiv", b.integer("add", first, k), meta["strips"])
            for count, base, base_image, base_plane, base_step, target, target_image, target_plane, table in (
                ("planes", input, "input_image", "input_plane", "input_step", lines, "line_image", "line_plane", "row"),
                (rows, result, "result_image", "result_plane", self.size, owns, "own_image", "own_plane", "own"),
            ):  # fmt: skip
                with b.loop(0, meta.get(count, count)) as c:
                    self.copy(
                        b,
                        b.place(target, (k, meta[target_image]), (c, meta[target_plane])),
                        b.place(base, (image, meta[base_image]), (c, meta[base_plane])),
                        b.pointer(own[f"{table}_table"]),
                        own["rows" if table == "row" else "own_rows"],
                        (str(self.size), meta.get(base_step, str(base_step))),
                    )
        starts = b.pointer(own["start_table"])
        with b.loop(0, rows, tile().left) as m, b.loop(0, meta["terms"], tile().right) as t:
            target = b.place(weight, (m, meta["weight_row"]), (t, self.size))
            here = b.place(owns, (m, meta["own_plane"]))
            table = b.place(b.pointer(own["term_table"]), (t, 8))
            left, right = (b.integer("sub", count, done) for count, done in ((rows, m), (meta["terms"], t)))
            b.do(
                f"call void @tile(ptr {target}, ptr {here}, ptr {lines}, ptr {table}, i64 {left}, i64 {right}, "
                f"i64 {images}, i64 {own['vectors']}, ptr {starts}, i64 {meta['own_plane']}, i64 {meta['own_image']}, "
                f"i64 {meta['line_image']}, i64 {meta['weight_row']})"
            )
