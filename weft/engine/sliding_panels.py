"""The sums of `sliding.py` for processors with 16 vector registers, where a tile has few channels.

Many tiles read the same elements there. So the terms of one vector of positions are copied side by side first: a panel, which stays
in the first-level cache while all channels read it, and whose vectors never lie across two lines of the cache. The elements are the
same chains of fused multiply-adds, so the bits are those of `sliding.py`. On AMD Zen 3 and one thread, 64 channels 3x3 take 23.7 to
26 ms instead of 30 (PyTorch 23.5), and 256 channels 1x1 2.8 to 3.6 ms instead of 5.1 (PyTorch 3.3 to 4.5).
"""

from __future__ import annotations

import functools

from ..core.dtype import DType
from .kernel import Code, loop_code
from .sliding import LINE, TERM, Sums, tile
from .structured import Body
from .vectors import has_masks

# Terms of a panel: with the rows of the weight that a tile reads, it takes half of the first-level cache (32 KiB on AMD Zen 3).
DEPTH = 192

# Tiles of channels: with fewer, copying a panel takes longer than it saves.
LEAST_TILES = 4


def suits_panels(made: int) -> bool:
    """Whether panels are faster for so many channels of the result."""
    return not has_masks() and made >= LEAST_TILES * tile().rows


@functools.cache
def panel_sums_code(dtype: DType, made: int) -> Code:
    """`entry(result, input, weight, bias, scratch, meta, parts)` as `sums_code`; the scratch memory has sums for all channels."""
    kernel = _PanelSums(dtype)
    rest = made % tile().rows or tile().rows
    parts = [kernel.copy_rows(), kernel.gather()]
    parts += [kernel.panel_tile(rows) for rows in sorted({tile().rows, rest})]
    return loop_code(
        lambda body: kernel.write(body, tile().rows, rest),
        5,
        parts=parts,
        declarations=kernel.declarations,
        vectorize=False,
    )


class _PanelSums(Sums):
    def channels(
        self, b: Body, rows: int, rest: int, meta, phase, lines, sums, weights, offsets, target
    ) -> None:
        self.begin_sums(b, meta, phase, sums, offsets)
        panel = b.room(DEPTH * LINE)
        table, starts = (b.pointer(phase[word]) for word in ("term_table", "start_table"))
        with b.loop(0, phase["vectors"]) as v, b.loop(0, phase["terms"], DEPTH) as k:
            terms = b.minimum(b.integer("sub", phase["terms"], k), DEPTH)
            source = b.at(lines, b.let(f"load i64, ptr {b.place(starts, (v, 8))}"))
            own = b.place(table, (k, 8 * len(TERM)))
            b.do(f"call void @gather(ptr {panel}, ptr {source}, ptr {own}, i64 {terms})")

            def add(m: str, count: int) -> None:
                place = b.place(sums, (m, meta["sums_row"]), (v, LINE))
                weight = b.place(weights, (m, meta["weight_row"]))
                b.do(
                    f"call void @tile{count}(ptr {place}, ptr {weight}, ptr {panel}, ptr {own}, i64 {terms}, "
                    f"i64 {meta['weight_row']}, i64 {meta['sums_row']})"
                )

            self.each_block(b, meta["made"], rows, rest, add)
        self.give(b, "0", meta["made"], meta, phase, sums, target)

    def begin_sums(self, b: Body, meta, phase, sums: str, offsets: str) -> None:
        """All sums begin with the bias."""
        with b.loop(0, meta["made"]) as m:
            start = self.spread(b, b.place(offsets, (m, self.size)))
            row = b.place(sums, (m, meta["sums_row"]))
            with b.loop(0, phase["vectors"]) as v:
                b.do(f"store {self.vector} {start}, ptr {b.place(row, (v, LINE))}, align {LINE}")

    def gather(self) -> str:
        """Copy the elements that one vector of positions multiplies."""

        def write(b: Body) -> None:
            with b.loop(0, "%terms") as t:
                term = b.fields(b.place("%table", (t, 8 * len(TERM))), TERM)
                value = self.load(b, b.at("%source", term["distance"]))
                b.do(f"store {self.vector} {value}, ptr {b.place('%panel', (t, LINE))}, align {LINE}")

        return self.function(
            "gather", "ptr noalias %panel, ptr noalias %source, ptr noalias %table, i64 %terms", write
        )

    def panel_tile(self, rows: int) -> str:
        """Add the terms of a panel to the sums of some channels."""

        def write(b: Body) -> None:
            targets = [b.place("%sums", ("%sums_row", m)) for m in range(rows)]
            sums = [b.variable(self.vector, self.aligned(b, target)) for target in targets]
            with b.loop(0, "%terms") as t:
                term = b.fields(b.place("%table", (t, 8 * len(TERM))), TERM)
                weight = b.at("%weight", term["weight"])
                found = self.aligned(b, b.place("%panel", (t, LINE)))
                for m in range(rows):
                    factor = self.spread(b, b.place(weight, ("%weight_row", m)))
                    before = b.get(sums[m], self.vector)
                    b.set(
                        sums[m],
                        self.vector,
                        b.intrinsic("fma", self.dtype, self.lanes, found, factor, before),
                    )
            for target, each in zip(targets, sums, strict=True):
                b.do(f"store {self.vector} {b.get(each, self.vector)}, ptr {target}, align {LINE}")

        parameters = "ptr noalias %sums, ptr noalias %weight, ptr noalias %panel, ptr noalias %table, i64 %terms, i64 %weight_row, i64 %sums_row"
        return self.function(f"tile{rows}", parameters, write)

    def aligned(self, b: Body, address: str) -> str:
        return b.let(f"load {self.vector}, ptr {address}, align {LINE}")
