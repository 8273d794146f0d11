"""Reading images between their pixels, as LLVM IR: sums of weighted pixels in groups of four, the corners around each point.

A table says what is read: `positions`, int32 [points, 4], offsets into a plane in pixels (negative: a corner that counts as
zero), and `weights` [points, 4]. The points of bin p of region n are those from `starts[n * bins + p]` to the next start. `gather`
reads them, `scatter` adds the gradients of bins to them.

    gather     out[n, p, c]  = sum over points of (w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3) / counts[n]
    scatter    xk           += out[n, p, c] * wk / counts[n]

Here x are channels c of pixels of image `images[n]`. Channels are last in memory, so that many are read at once. A pixel of the
input has `width` channels, of which bin p reads those from `p * per_bin` on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import DType
from .kernel import Code, loop_code
from .llvm import value_type
from .structured import Body
from .vectors import load_lanes, splat, store_lanes

CORNERS = 4
LANES = 32  # channels that are summed side by side

# Words of meta: channels, bins, pixels of an image, width, per_bin, regions.
_META = 6
# Operands: bins [regions, bins, channels], pixels, positions, weights, starts, images, counts.
_OPERANDS = 7


@functools.cache
def gather_code(dtype: DType) -> Code:
    """Call `entry(bins, pixels, positions, weights, starts, images, counts, meta, regions)`."""
    return loop_code(lambda body: _Sampling(body, dtype).gather(), _OPERANDS)


@functools.cache
def scatter_code(dtype: DType) -> Code:
    """Call `entry(bins, pixels, positions, weights, starts, images, counts, meta, channels)`.

    It is shared by channels, so that each element is written by one thread, in the order of the regions.
    """
    return loop_code(lambda body: _Sampling(body, dtype).scatter(), _OPERANDS)


class _Sampling:
    def __init__(self, body: Body, dtype: DType):
        self.body, self.dtype, self.scalar, self.nbytes = body, dtype, value_type(dtype), dtype.itemsize
        self.bins, self.pixels, self.positions, self.weights, self.starts, self.images, self.counts = (
            body.operands(_OPERANDS)
        )
        self.channels, self.bin_count, self.plane, self.width, self.per_bin, self.regions = body.meta(_META)

    def gather(self) -> None:
        with self.body.loop("%begin", "%end") as region:
            self.each_bin(region, "0", self.channels, self.read)

    def scatter(self) -> None:
        with self.body.loop(0, self.regions) as region:
            self.each_bin(region, "%begin", "%end", self.write)

    def each_bin(self, region: str, first: str, last: str, visit: Callable) -> None:
        """Compute `visit` channels first to last of each bin of a region, several at once."""
        b = self.body
        image = b.load("i64", b.place(self.images, (region, 8)))
        image = b.integer("mul", b.integer("mul", image, self.plane), self.width)
        count = b.load(self.scalar, b.place(self.counts, (region, self.nbytes)))
        whole = b.integer("sub", last, b.integer("urem", b.integer("sub", last, first), LANES))
        with b.loop(0, self.bin_count) as p:
            at = b.integer("add", b.integer("mul", region, self.bin_count), p)
            bounds = b.place(self.starts, (at, 8))
            begin, end = b.words(bounds, 2)
            result = b.place(self.bins, (b.integer("mul", at, self.channels), self.nbytes))
            pixels = b.integer("add", image, b.integer("mul", p, self.per_bin))
            pixels = b.place(self.pixels, (pixels, self.nbytes))
            for start, stop, lanes in ((first, whole, LANES), (whole, last, 1)):
                with b.loop(start, stop, lanes) as k:
                    offset = b.integer("mul", k, self.nbytes)
                    places = b.at(result, offset), b.at(pixels, offset)
                    visit(*places, begin, end, splat(b, self.scalar, lanes, count), lanes)

    def corner(self, point: str, k: int, lanes: int) -> tuple[str, str]:
        """Return the position of a corner and its weight."""
        b = self.body
        index = b.integer("add", b.integer("mul", point, CORNERS), k)
        position = b.load("i32", b.place(self.positions, (index, 4)))
        weight = b.load(self.scalar, b.place(self.weights, (index, self.nbytes)))
        return b.let(f"sext i32 {position} to i64"), splat(b, self.scalar, lanes, weight)

    def pixel(self, pixels: str, position: str) -> str:
        return self.body.place(pixels, (self.body.integer("mul", position, self.width), self.nbytes))

    def read(self, result: str, pixels: str, begin: str, end: str, count: str, lanes: int) -> None:
        b, kind = self.body, value_type(self.dtype, lanes)
        zero = "0.0" if lanes == 1 else "zeroinitializer"
        total = b.variable(kind, zero)
        with b.loop(begin, end) as point:
            value = ""
            for k in range(CORNERS):
                position, weight = self.corner(point, k, lanes)
                outside = b.let(f"icmp slt i64 {position}, 0")
                inside = b.let(f"select i1 {outside}, i64 0, i64 {position}")
                found = load_lanes(b, self.dtype, lanes, self.pixel(pixels, inside))
                found = b.let(f"select i1 {outside}, {kind} {zero}, {kind} {found}")
                term = b.let(f"fmul {kind} {weight}, {found}")
                value = b.let(f"fadd {kind} {value}, {term}") if value else term
            b.set(total, kind, b.let(f"fadd {kind} {b.get(total, kind)}, {value}"))
        mean = b.let(f"fdiv {kind} {b.get(total, kind)}, {count}")
        store_lanes(b, self.dtype, lanes, mean, result)

    def write(self, result: str, pixels: str, begin: str, end: str, count: str, lanes: int) -> None:
        b, kind = self.body, value_type(self.dtype, lanes)
        grad = load_lanes(b, self.dtype, lanes, result)
        with b.loop(begin, end) as point:
            for k in range(CORNERS):
                position, weight = self.corner(point, k, lanes)
                with b.when(b.let(f"icmp sge i64 {position}, 0")):
                    share = b.let(f"fdiv {kind} {b.let(f'fmul {kind} {grad}, {weight}')}, {count}")
                    place = self.pixel(pixels, position)
                    before = load_lanes(b, self.dtype, lanes, place)
                    after = b.let(f"fadd {kind} {before}, {share}")
                    store_lanes(b, self.dtype, lanes, after, place)
