"""Reading images between their pixels, as LLVM IR: sums of weighted pixels in groups of four, the corners around each point.

A table says what is read: `positions`, int32 [points, 4], offsets into a plane in elements (negative: a corner that counts as
zero), and `weights` [points, 4]. The points of bin p of region n are those from `starts[n * bins + p]` to the next start. `gather`
reads them, `scatter` adds the gradients of bins to them.

    gather     out[n, c, p]  = sum over points of (w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3) / counts[n]
    scatter    xk           += out[n, c, p] * wk / counts[n]

Here x are pixels of plane `images[n] * planes + c * per_channel + p * per_bin` of the input.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import DType, float64
from .kernel import Code, compile_loop
from .structured import Body, function

CORNERS = 4

# Words of meta: channels, bins, elements of a plane, planes of an image, per_channel, per_bin, regions.
_META = 7
# Operands: bins, pixels, positions, weights, starts, images, counts.
_OPERANDS = 7


@functools.cache
def gather_code(dtype: DType) -> Code:
    """Call `entry(bins, pixels, positions, weights, starts, images, counts, meta, regions * channels)`."""
    return _compile(lambda body: _Sampling(body, dtype).gather())


@functools.cache
def scatter_code(dtype: DType) -> Code:
    """Call `entry(bins, pixels, positions, weights, starts, images, counts, meta, channels)`.

    It is shared by channels, so that each pixel is written by one thread, in the order of the regions.
    """
    return _compile(lambda body: _Sampling(body, dtype).scatter())


def _compile(write: Callable[[Body], None]) -> Code:
    declarations: set[str] = set()
    text = function("loop", "ptr %operands, ptr %meta, i64 %begin, i64 %end", declarations, write)
    return compile_loop("\n".join([*sorted(declarations), text]), _OPERANDS, "")


class _Sampling:
    def __init__(self, body: Body, dtype: DType):
        self.body = body
        self.kind, self.nbytes = ("double", 8) if dtype is float64 else ("float", 4)
        (self.bins, self.pixels, self.positions, self.weights, self.starts, self.images, self.counts) = (
            body.let(f"load ptr, ptr {body.at('%operands', 8 * k)}") for k in range(_OPERANDS)
        )
        (
            self.channels,
            self.bin_count,
            self.plane,
            self.planes,
            self.per_channel,
            self.per_bin,
            self.regions,
        ) = (body.let(f"load i64, ptr {body.at('%meta', 8 * k)}") for k in range(_META))

    def item(self, base: str, index: str, nbytes: int) -> str:
        return self.body.at(base, self.body.integer("mul", index, nbytes))

    def gather(self) -> None:
        b = self.body
        with b.loop("%begin", "%end") as row:
            region, channel = b.integer("sdiv", row, self.channels), b.integer("srem", row, self.channels)
            self.each_bin(region, channel, self.read)

    def scatter(self) -> None:
        with self.body.loop("%begin", "%end") as channel, self.body.loop(0, self.regions) as region:
            self.each_bin(region, channel, self.write)

    def each_bin(self, region: str, channel: str, visit: Callable) -> None:
        b = self.body
        image = b.let(f"load i64, ptr {self.item(self.images, region, 8)}")
        first = b.integer("mul", image, self.planes)
        first = b.integer("add", first, b.integer("mul", channel, self.per_channel))
        count = b.let(f"load {self.kind}, ptr {self.item(self.counts, region, self.nbytes)}")
        row = b.integer("add", b.integer("mul", region, self.channels), channel)
        results = self.item(self.bins, b.integer("mul", row, self.bin_count), self.nbytes)
        starts = self.item(self.starts, b.integer("mul", region, self.bin_count), 8)
        with b.loop(0, self.bin_count) as p:
            plane = b.integer("add", first, b.integer("mul", p, self.per_bin))
            pixels = self.item(self.pixels, b.integer("mul", plane, self.plane), self.nbytes)
            bounds = self.item(starts, p, 8)
            begin = b.let(f"load i64, ptr {bounds}")
            end = b.let(f"load i64, ptr {b.at(bounds, 8)}")
            visit(self.item(results, p, self.nbytes), pixels, begin, end, count)

    def corner(self, point: str, k: int) -> tuple[str, str]:
        """The position of a corner and its weight."""
        b = self.body
        index = b.integer("add", b.integer("mul", point, CORNERS), k)
        position = b.let(f"load i32, ptr {self.item(self.positions, index, 4)}")
        weight = b.let(f"load {self.kind}, ptr {self.item(self.weights, index, self.nbytes)}")
        return b.let(f"sext i32 {position} to i64"), weight

    def read(self, result: str, pixels: str, begin: str, end: str, count: str) -> None:
        b = self.body
        total = b.variable(self.kind, "0.0")
        with b.loop(begin, end) as point:
            value = ""
            for k in range(CORNERS):
                position, weight = self.corner(point, k)
                outside = b.let(f"icmp slt i64 {position}, 0")
                inside = b.let(f"select i1 {outside}, i64 0, i64 {position}")
                pixel = b.let(f"load {self.kind}, ptr {self.item(pixels, inside, self.nbytes)}")
                pixel = b.let(f"select i1 {outside}, {self.kind} 0.0, {self.kind} {pixel}")
                term = b.let(f"fmul {self.kind} {weight}, {pixel}")
                value = b.let(f"fadd {self.kind} {value}, {term}") if value else term
            b.set(total, self.kind, b.let(f"fadd {self.kind} {b.get(total, self.kind)}, {value}"))
        mean = b.let(f"fdiv {self.kind} {b.get(total, self.kind)}, {count}")
        b.do(f"store {self.kind} {mean}, ptr {result}")

    def write(self, result: str, pixels: str, begin: str, end: str, count: str) -> None:
        b = self.body
        grad = b.let(f"load {self.kind}, ptr {result}")
        with b.loop(begin, end) as point:
            for k in range(CORNERS):
                position, weight = self.corner(point, k)
                share = b.let(f"fdiv {self.kind} {b.let(f'fmul {self.kind} {grad}, {weight}')}, {count}")
                with b.when(b.let(f"icmp sge i64 {position}, 0")):
                    place = self.item(pixels, position, self.nbytes)
                    before = b.let(f"load {self.kind}, ptr {place}")
                    b.do(f"store {self.kind} {b.let(f'fadd {self.kind} {before}, {share}')}, ptr {place}")
