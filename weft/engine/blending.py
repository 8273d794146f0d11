"""Weighted sums of a few elements of a plane, as LLVM IR: data say which elements, the same for all channels of an image."""

from __future__ import annotations

import functools

from ..core.dtype import DType, float64
from .kernel import Code, loop_code
from .structured import Body

# Channels that are summed side by side, so that a position and its weight are loaded once for all of them, and fewer behind them.
CHANNELS = 8
_SIDE_BY_SIDE = (CHANNELS, 4, 2, 1)

# Operands: result [images, channels, points], planes [images, channels, size], positions, weights [images, taps, points].
_OPERANDS = 4
_META = ("channels", "size", "points", "groups")
POINTS = 4096  # of a task, so that two threads share a single image


@functools.cache
def blending_code(dtype: DType, taps: int, fused: bool) -> Code:
    """Call `entry(result, planes, positions, weights, meta, tasks)`, a task for each image, group of channels and `POINTS` points.

    positions: int64, in elements of a plane; a negative one stands for the value 0. meta: the number of channels, the elements of a
    plane, the points of an image, and the groups of `CHANNELS` channels of an image. Sums are fused multiply-adds if `fused`.
    """
    return loop_code(lambda body: _Loop(body, dtype, taps, fused).write(), _OPERANDS)


class _Loop:
    def __init__(self, body: Body, dtype: DType, taps: int, fused: bool):
        self.body, self.dtype, self.taps, self.fused = body, dtype, taps, fused
        self.kind, self.nbytes = ("double", 8) if dtype is float64 else ("float", 4)
        self.zero = body.variable(self.kind, "0.0")

    def write(self) -> None:
        b = self.body
        bases = b.operands(_OPERANDS)
        channels, size, self.points, groups = b.meta(len(_META))
        self.row, plane = (b.integer("mul", count, self.nbytes) for count in (self.points, size))
        blocks = b.integer("sdiv", b.integer("add", self.points, POINTS - 1), POINTS)
        with b.loop("%begin", "%end") as task:
            item = b.integer("sdiv", task, blocks)
            point_from = b.integer("mul", b.integer("srem", task, blocks), POINTS)
            point_to = b.minimum(b.integer("add", point_from, POINTS), self.points)
            image = b.integer("sdiv", item, groups)
            first = b.integer("mul", b.integer("srem", item, groups), CHANNELS)
            last = b.minimum(b.integer("add", first, CHANNELS), channels)
            tables = [
                b.place(base, (b.integer("mul", image, self.taps), pitch))
                for base, pitch in zip(bases[2:], (b.integer("mul", self.points, 8), self.row), strict=True)
            ]
            start = first
            for count in _SIDE_BY_SIDE:
                left = b.integer("sub", last, start)
                stop = b.integer("sub", last, b.integer("and", left, count - 1))
                with b.loop(start, stop, count) as channel:
                    k = b.integer("add", b.integer("mul", image, channels), channel)
                    result = b.place(bases[0], (k, self.row))
                    start_of = [b.place(bases[1], (b.integer("add", k, j), plane)) for j in range(count)]
                    with b.loop(point_from, point_to) as point:
                        self.sums(result, start_of, tables, point)
                start = stop

    def sums(self, result: str, planes: list[str], tables: list[str], point: str) -> None:
        """Compute one point of some channels."""
        b, kind = self.body, self.kind
        totals = [""] * len(planes)
        for tap in range(self.taps):
            k = b.integer("add", b.integer("mul", self.points, tap), point)
            position = b.load("i64", b.place(tables[0], (k, 8)))
            weight = b.let(f"load {kind}, ptr {b.place(tables[1], (k, self.nbytes))}")
            outside = b.let(f"icmp slt i64 {position}, 0")
            offset = b.integer("mul", position, self.nbytes)
            for j, plane in enumerate(planes):
                place = b.let(f"select i1 {outside}, ptr {self.zero}, ptr {b.at(plane, offset)}")
                totals[j] = self.added(totals[j], b.let(f"load {kind}, ptr {place}"), weight)
        for j, total in enumerate(totals):
            place = b.integer("add", b.integer("mul", self.row, j), b.integer("mul", point, self.nbytes))
            b.do(f"store {kind} {total}, ptr {b.at(result, place)}")

    def added(self, total: str, value: str, weight: str) -> str:
        b = self.body
        if total and self.fused:
            return b.intrinsic("fma", self.dtype, 1, value, weight, total)
        product = b.let(f"fmul {self.kind} {value}, {weight}")
        return b.let(f"fadd {self.kind} {total}, {product}") if total else product
