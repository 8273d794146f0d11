"""Bilinear resizing of planes, as LLVM IR: each element is a sum over four pixels, added up in PyTorch's order.

PyTorch adds in one order where it computes a vector of channels at once, and in another for the remaining channels, so that the
bits depend on the channel.
"""

from __future__ import annotations

import functools

from ..core.dtype import DType, float64
from .kernel import Code, loop_code
from .llvm import value_type
from .structured import Body
from .vectors import load_lanes, splat, store_lanes

LANES = 16  # channels that are summed side by side where channels are last

# The corners (upper left, upper right, lower left, lower right) in the order in which they are added up.
ORDERS = {"single": (1, 0, 2, 3), "vector": (2, 3, 1, 0)}

_OPERANDS = ("result", "input", "rows", "row_weights", "columns", "column_weights")
_META = ("channels", "height", "width", "out_height", "out_width", "first", "last")


@functools.cache
def bilinear_code(dtype: DType, order: str, channels_last: bool) -> Code:
    """Call `entry(result, input, rows, row_weights, columns, column_weights, meta, images * out_height)`.

    rows: int64 [out_height, 2], the rows above and below each row of the result; row_weights [out_height, 2]; and so for columns.
    meta: channels, sizes of the input and of the result, and which channels to compute, from `first` to `last`.
    """
    return loop_code(lambda body: _Loop(body, dtype, order, channels_last).write(), len(_OPERANDS))


class _Loop:
    def __init__(self, body: Body, dtype: DType, order: str, channels_last: bool):
        self.body, self.dtype, self.order, self.channels_last = body, dtype, ORDERS[order], channels_last
        self.scalar, self.nbytes = ("double", 8) if dtype is float64 else ("float", 4)

    def write(self) -> None:
        b = self.body
        operands = b.fields("%operands", _OPERANDS, "ptr")
        meta = b.fields("%meta", _META)
        self.pixel = (
            self.nbytes if not self.channels_last else b.integer("mul", meta["channels"], self.nbytes)
        )
        with b.loop("%begin", "%end") as row:
            image, y = b.integer("sdiv", row, meta["out_height"]), b.integer("srem", row, meta["out_height"])
            rows, shares = self.pair(operands["rows"], operands["row_weights"], y)

            def visit(channel: str, x: str, lanes: int) -> None:
                columns, across = self.pair(operands["columns"], operands["column_weights"], x)
                pixels = []
                for i in rows:
                    start = self.place(operands["input"], image, channel, i, "0", meta, "")
                    pixels += [b.place(start, (j, self.pixel)) for j in columns]
                target = self.place(operands["result"], image, channel, y, x, meta, "out_")
                self.sum(target, pixels, [(u, v) for u in shares for v in across], lanes)

            if self.channels_last:
                count = b.integer("sub", meta["last"], meta["first"])
                whole = b.integer("sub", meta["last"], b.integer("urem", count, LANES))
                with b.loop(0, meta["out_width"]) as x:
                    with b.loop(meta["first"], whole, LANES) as channel:
                        visit(channel, x, LANES)
                    with b.loop(whole, meta["last"]) as channel:
                        visit(channel, x, 1)
            else:
                with b.loop(meta["first"], meta["last"]) as channel, b.loop(0, meta["out_width"]) as x:
                    visit(channel, x, 1)

    def pair(self, places: str, weights: str, k: str) -> tuple[list[str], list[str]]:
        """Return the two neighbours of position k along a dim, and their weights."""
        b = self.body
        place = b.place(places, (k, 16))
        weight = b.place(weights, (k, 2 * self.nbytes))
        return (
            b.words(place, 2),
            [b.let(f"load {self.scalar}, ptr {b.at(weight, self.nbytes * j)}") for j in range(2)],
        )

    def place(
        self, base: str, image: str, channel: str, y: str, x: str, meta: dict[str, str], side: str
    ) -> str:
        """Return the address of an element of the input, or of the result for `side` "out_"."""
        b = self.body
        sizes = {"height": meta[f"{side}height"], "width": meta[f"{side}width"], "channels": meta["channels"]}
        steps = [("height", y), ("width", x), ("channels", channel)]
        if not self.channels_last:
            steps = [("channels", channel), ("height", y), ("width", x)]
        index = image
        for name, position in steps:
            index = b.integer("add", b.integer("mul", index, sizes[name]), position)
        return b.place(base, (index, self.nbytes))

    def sum(self, target: str, pixels: list[str], weights: list[tuple[str, str]], lanes: int) -> None:
        b = self.body
        kind, total = value_type(self.dtype, lanes), ""
        for corner in self.order:
            value = load_lanes(b, self.dtype, lanes, pixels[corner])
            weight = b.let(f"fmul {self.scalar} {weights[corner][0]}, {weights[corner][1]}")
            weight = splat(b, self.scalar, lanes, weight)
            if total:
                total = b.intrinsic("fma", self.dtype, lanes, weight, value, total)
            else:
                total = b.let(f"fmul {kind} {weight}, {value}")
        store_lanes(b, self.dtype, lanes, total, target)
