"""Convolutions of bytes in which each channel is a group of its own, with the sums and epilogues of `byte_tiles.py`.

The channels of an element lie side by side. For four taps of the window, the bytes of as many channels as fit four vectors are interleaved,
so that the taps of a channel are a quad. Interleaving stays within 16 bytes, where it takes one instruction, and the sums are put in order
at the end.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.dtype import int32
from ..core.spec import contiguous_stride
from .byte_tiles import PLACES, QUAD, Epilogue, Shape, finish, shape, tasks_code
from .kernel import Code, Launch, sharing
from .llvm import value_type
from .structured import Body, function
from .vectors import add_quads

_META = ("channels", "quads", "count", "step", "c_step", "c_row", "rows_table", "taps_table", "block_bytes")


def block_channels() -> int:
    """Channels are computed in blocks of so many, which the input must have."""
    return QUAD * shape().lanes


def weight_order() -> list[int]:
    """Which channel of a block each lane of the four vectors of sums belongs to."""
    lanes = shape().lanes
    return [
        16 * group + QUAD * vector + k
        for vector in range(QUAD)
        for group in range(lanes // QUAD)
        for k in range(QUAD)
    ]


@functools.cache
def _code(epilogue: Epilogue, how: Shape) -> Code:
    declarations: set[str] = set()
    tiles = [
        function(
            f"tile{count}",
            PLACES,
            declarations,
            functools.partial(_tile, epilogue=epilogue, how=how, count=count),
            "internal",
        )
        for count in _heights(how)
    ]
    return tasks_code(lambda body: _rows(body, epilogue, how), tiles, declarations, epilogue)


def _heights(how: Shape) -> tuple[int, ...]:
    """Positions of tiles, falling to 1. Where the bytes of weights have to be spread to int16, two positions share this work."""
    return (2, 1) if how.quads == "pmaddwd" else (1,)


def _tile(b: Body, epilogue: Epilogue, how: Shape, count: int) -> None:
    """Return one block of channels of so many neighbouring positions."""
    meta, lanes = b.fields("%meta", _META), how.lanes
    vector, line, width = value_type(int32, lanes), f"<{QUAD * lanes} x i8>", QUAD * lanes
    taps = b.pointer(meta["taps_table"])
    sums = [[b.variable(vector, "zeroinitializer") for _ in range(QUAD)] for _ in range(count)]
    sources = [b.place("%a", (meta["step"], m)) for m in range(count)]
    with b.loop(0, meta["quads"]) as q:
        table = b.place(taps, (q, 8 * QUAD))
        offsets = b.words(table, QUAD)
        place = b.place("%b", (q, QUAD * width))
        weights = [b.let(f"load {vector}, ptr {b.at(place, width * k)}, align {width}") for k in range(QUAD)]
        for totals, source in zip(sums, sources, strict=True):
            read = [b.let(f"load {line}, ptr {b.at(source, offset)}, align 1") for offset in offsets]
            if epilogue.signed:
                read = [b.let(f"xor {line} {value}, splat (i8 -128)") for value in read]
            for total, quad, weight in zip(totals, _interleaved(b, read, lanes), weights, strict=True):
                b.set(total, vector, add_quads(b, how.quads, lanes, b.get(total, vector), quad, weight))
    for totals in sums:
        ordered = _in_order(b, [b.get(each, vector) for each in totals], lanes)
        for total, value in zip(totals, ordered, strict=True):
            b.set(total, vector, value)
    finish(b, sums, epilogue, how, meta["c_step"])


def _interleaved(b: Body, taps: Sequence[str], lanes: int) -> list[str]:
    """Four vectors of quads from four vectors of bytes; see `weight_order` for their lanes."""

    def halves(x: str, y: str, items: int, bits: int) -> list[str]:
        """Return the lower and the upper halves of each 16 bytes of x and y, item by item."""
        kind, each = f"<{items} x i{bits}>", 128 // bits
        found = []
        for start in (0, each // 2):
            order = [
                group + start + k + source
                for group in range(0, items, each)
                for k in range(each // 2)
                for source in (0, items)
            ]
            mask = ", ".join(f"i32 {place}" for place in order)
            found.append(b.let(f"shufflevector {kind} {x}, {kind} {y}, <{items} x i32> <{mask}>"))
        return found

    bytes_, words = f"<{QUAD * lanes} x i8>", f"<{2 * lanes} x i16>"
    pairs = [
        [b.let(f"bitcast {bytes_} {half} to {words}") for half in halves(x, y, QUAD * lanes, 8)]
        for x, y in (taps[:2], taps[2:])
    ]
    quads = [each for x, y in zip(*pairs, strict=True) for each in halves(x, y, 2 * lanes, 16)]
    return [b.let(f"bitcast {words} {each} to <{lanes} x i32>") for each in quads]


def _in_order(b: Body, vectors: Sequence[str], lanes: int) -> list[str]:
    """Return the sums of a block of channels in their order."""
    kind, both = f"<{lanes} x i32>", f"<{2 * lanes} x i32>"
    joined = ", ".join(f"i32 {k}" for k in range(2 * lanes))
    pairs = [
        b.let(f"shufflevector {kind} {x}, {kind} {y}, {both} <{joined}>")
        for x, y in (vectors[:2], vectors[2:])
    ]
    places = {channel: place for place, channel in enumerate(weight_order())}
    found = []
    for first in range(0, QUAD * lanes, lanes):
        mask = ", ".join(f"i32 {places[channel]}" for channel in range(first, first + lanes))
        found.append(b.let(f"shufflevector {both} {pairs[0]}, {both} {pairs[1]}, {kind} <{mask}>"))
    return found


def _rows(b: Body, epilogue: Epilogue, how: Shape) -> None:
    """Return rows of positions: those of the last dim, in each of which a block of channels after the other."""
    c, a, weights = b.operands(3)
    meta, width = b.fields("%meta", _META), QUAD * how.lanes
    table = b.pointer(meta["rows_table"])
    size = epilogue.result.dtype.itemsize
    with b.loop("%begin", "%end") as row:
        source = b.at(a, b.load("i64", b.place(table, (row, 8))))
        target = b.place(c, (row, meta["c_row"]))
        with b.loop(0, meta["channels"], width) as channel:
            own = b.place(weights, (channel, meta["block_bytes"]))
            left = b.integer("sub", meta["channels"], channel)
            done = "0"
            for count in _heights(how):
                stop = b.integer("sub", meta["count"], b.integer("urem", meta["count"], count))
                with b.loop(done, stop, count) as n:
                    place = b.at(b.place(source, (n, meta["step"])), channel)
                    into = b.place(target, (n, meta["c_step"]), (channel, size))
                    b.do(
                        f"call void @tile{count}(ptr %operands, ptr %meta, i64 0, i64 {channel}, ptr {into}, ptr {place}, ptr {own}, i64 {left})"
                    )
                done = stop


class Places(NamedTuple):
    """Where the positions and taps of a convolution lie in an input [N, *sizes, channels], without padding."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    positions: tuple[int, ...]

    def distances(self, images: int, channels: int) -> tuple[np.ndarray, np.ndarray]:
        """How far each position [images, *positions] and each tap [*kernel] lies from the first one, in elements."""
        steps = [channels * each for each in contiguous_stride(self.sizes)]
        gaps = [gap * step for gap, step in zip(self.dilation, steps, strict=True)]
        moves = [each * step for each, step in zip(self.stride, steps, strict=True)]
        starts = _distances((images, *self.positions), [channels * math.prod(self.sizes), *moves])
        return starts, _distances(self.kernel, gaps)


def depthwise(epilogue: Epilogue, images: int, channels: int, places: Places) -> Launch:
    """Compute `c[image, position] = epilogue(the sum over taps of a[image, element] * weight[tap])`, for each channel.

    Call `entry(c, a, weights, columns..., params..., meta, rows)`. a: [images, *sizes, channels in whole blocks], contiguous. weights: for
    each block of channels and four taps the quads of the channels in `weight_order`; missing taps are 0. c: [images, *positions, channels].
    """
    padded = -(-channels // block_channels()) * block_channels()
    starts, taps = places.distances(images, padded)
    taps = np.pad(taps.ravel(), (0, -taps.size % QUAD), mode="edge")  # of missing taps any element is read
    rows = np.ascontiguousarray(starts[..., 0]).ravel()
    size, count, quads = epilogue.result.dtype.itemsize, places.positions[-1], len(taps) // QUAD
    addresses = rows.ctypes.data, taps.ctypes.data
    c_step = channels * size
    meta = np.array(
        [
            channels,
            quads,
            count,
            padded * places.stride[-1],
            c_step,
            count * c_step,
            *addresses,
            quads * QUAD,
        ],
        np.int64,
    )
    entry = sharing(_code(epilogue, shape()), len(rows) * count * channels * len(taps))
    return Launch(entry, meta.ctypes.data, len(rows), (meta, rows, taps))


def _distances(sizes: Sequence[int], steps: Sequence[int]) -> np.ndarray:
    """How far each index lies from the first."""
    found = np.zeros((), np.int64)
    for size, step in zip(sizes, steps, strict=True):
        found = found[..., None] + np.arange(size) * step
    return found
