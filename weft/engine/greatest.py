"""Finds the greatest pixel of each rectangle of a plane, as LLVM IR."""

from __future__ import annotations

import functools

from ..core.dtype import DType, float64
from .kernel import Code, loop_code
from .structured import Body


@functools.cache
def greatest_code(dtype: DType) -> Code:
    """Call `entry(values, places, pixels, bounds, images, meta, regions * channels)`.

    bounds: int64 [regions, bins, 4], the first row, the row behind the last, and the same for columns. images: int64 [regions].
    values and places (int32): [regions, channels, bins]. An empty rectangle gives 0 and -1. NaN is never greater.
    meta: channels, bins, rows and columns of a plane.
    """
    return loop_code(lambda body: _write(body, dtype), 5)


def _write(b: Body, dtype: DType) -> None:
    kind, nbytes, least = (
        ("double", 8, "0xFFEFFFFFFFFFFFFF") if dtype is float64 else ("float", 4, "0xC7EFFFFFE0000000")
    )
    values, places, pixels, bounds, images = b.operands(5)
    channels, bins, height, width = b.meta(4)
    plane = b.integer("mul", height, width)
    with b.loop("%begin", "%end") as row:
        region, channel = b.integer("sdiv", row, channels), b.integer("srem", row, channels)
        image = b.load("i64", b.place(images, (region, 8)))
        first = b.integer("mul", b.integer("add", b.integer("mul", image, channels), channel), plane)
        source = b.place(pixels, (first, nbytes))
        with b.loop(0, bins) as p:
            entry = b.place(bounds, (b.integer("add", b.integer("mul", region, bins), p), 32))
            top, bottom, left, right = b.words(entry, 4)
            filled = b.let(
                f"and i1 {b.let(f'icmp slt i64 {top}, {bottom}')}, {b.let(f'icmp slt i64 {left}, {right}')}"
            )
            best = b.variable(kind, b.let(f"select i1 {filled}, {kind} {least}, {kind} 0.0"))
            where = b.variable("i64", "-1")
            with b.loop(top, bottom) as y, b.loop(left, right) as x:
                place = b.integer("add", b.integer("mul", y, width), x)
                value = b.let(f"load {kind}, ptr {b.place(source, (place, nbytes))}")
                before, old = b.get(best, kind), b.get(where, "i64")
                greater = b.let(f"fcmp ogt {kind} {value}, {before}")
                b.set(best, kind, b.let(f"select i1 {greater}, {kind} {value}, {kind} {before}"))
                b.set(where, "i64", b.let(f"select i1 {greater}, i64 {place}, i64 {old}"))
            index = b.integer("add", b.integer("mul", row, bins), p)
            b.do(f"store {kind} {b.get(best, kind)}, ptr {b.place(values, (index, nbytes))}")
            found = b.let(f"trunc i64 {b.get(where, 'i64')} to i32")
            b.do(f"store i32 {found}, ptr {b.place(places, (index, 4))}")
