"""Vectors in LLVM IR: one element in all lanes, loads and stores of some lanes, sums of lanes."""

from __future__ import annotations

import functools
import platform
from collections.abc import Sequence

from ..core.dtype import DType, float32
from .host import cpu
from .llvm import Block, suffix, value_type
from .structured import Body


def broadcast(b: Body, kind: str, lanes: int, value: str) -> str:
    """Return a vector with `value` in every lane."""
    vector = f"<{lanes} x {kind}>"
    first = b.let(f"insertelement {vector} poison, {kind} {value}, i64 0")
    return b.let(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")


def splat(b: Body, kind: str, lanes: int, value: str) -> str:
    """`value` in every lane, for code that computes with scalars if there is one lane."""
    return value if lanes == 1 else broadcast(b, kind, lanes, value)


@functools.cache
def has_masks() -> bool:
    """Whether stores of some lanes are as fast as those of all (AVX-512). A `vmaskmovps` of AVX2 takes 18 cycles (AMD Zen 3)."""
    return "+avx512f" in cpu()[1].split(",")


@functools.cache
def has_avx2() -> bool:
    """Whether vectors of integers have 32 bytes, as those of floats do."""
    return "+avx2" in cpu()[1].split(",")


def lanes_below(b: Body, lanes: int, count: str) -> str:
    """A mask of the first `count` lanes, which is compared in int32, as AVX2's masks of float32 are."""
    order = ", ".join(f"i32 {k}" for k in range(lanes))
    last = b.let(f"trunc i64 {b.minimum(count, lanes)} to i32")
    return b.let(f"icmp slt <{lanes} x i32> <{order}>, {broadcast(b, 'i32', lanes, last)}")


def load_lanes(b: Body, dtype: DType, lanes: int, address: str, mask: str = "") -> str:
    """The elements at `address`; with a mask, those in its lanes, and 0 in the others, whose memory is not read."""
    kind, name = value_type(dtype, lanes), f"@llvm.masked.load.{suffix(dtype, lanes)}.p0"
    if not mask:
        return b.let(f"load {kind}, ptr {address}, align {dtype.itemsize}")
    b.declarations.add(f"declare {kind} {name}(ptr, i32, <{lanes} x i1>, {kind})")
    given = f"ptr {address}, i32 {dtype.itemsize}, <{lanes} x i1> {mask}, {kind} zeroinitializer"
    return b.let(f"call {kind} {name}({given})")


def store_lanes(b: Body, dtype: DType, lanes: int, value: str, address: str, mask: str = "") -> None:
    """Store all lanes; with a mask, only its lanes."""
    kind, name = value_type(dtype, lanes), f"@llvm.masked.store.{suffix(dtype, lanes)}.p0"
    if not mask:
        return b.do(f"store {kind} {value}, ptr {address}, align {dtype.itemsize}")
    b.declarations.add(f"declare void {name}({kind}, ptr, i32, <{lanes} x i1>)")
    b.do(f"call void {name}({kind} {value}, ptr {address}, i32 {dtype.itemsize}, <{lanes} x i1> {mask})")


def prefetch(b: Body, address: str) -> None:
    """Ask for a cache line. Asking for memory that is not mapped does nothing."""
    b.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    b.do(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")


def add_pairs(b: Body, total: str, x: str, y: str, kind: str) -> str:
    """`total`, of 16 float32, plus the products of the two bfloat16 in each of its lanes of x and y, which are of the type `kind`."""
    if not multiplies_bfloat16():
        return _add_one_of_each_pair(
            b, _add_one_of_each_pair(b, total, x, y, kind, "shl", 16), x, y, kind, "and", -1 << 16
        )
    sums, pairs = "<16 x float>", "<32 x bfloat>"
    name = "@llvm.x86.avx512bf16.dpbf16ps.512"
    b.declarations.add(f"declare {sums} {name}({sums}, {pairs}, {pairs})")
    x, y = (b.let(f"bitcast {kind} {operand} to {pairs}") for operand in (x, y))
    return b.let(f"call {sums} {name}({sums} {total}, {pairs} {x}, {pairs} {y})")


def multiplies_bfloat16() -> bool:
    """Whether this processor has an instruction for pairs of bfloat16."""
    return "+avx512bf16" in cpu()[1].split(",")


def multiplies_and_adds() -> bool:
    """Whether this processor has an instruction for a * b + c. Without it, LLVM calls a function for each element."""
    return "+fma" in cpu()[1].split(",") or platform.machine() in ("aarch64", "arm64")


def _add_one_of_each_pair(
    b: Body, total: str, x: str, y: str, kind: str, operation: str, operand: int
) -> str:
    """Add the products of the bfloat16 that an operation on each pair, as int32, makes a float32."""
    wide = "<16 x i32>"
    values = []
    for each in (x, y):
        pairs = b.let(f"bitcast {kind} {each} to {wide}")
        bits = b.let(f"{operation} {wide} {pairs}, splat (i32 {operand})")
        values.append(b.let(f"bitcast {wide} {bits} to <16 x float>"))
    return b.intrinsic("fma", float32, 16, *values, total)


def add_quads(b: Body, how: str, lanes: int, total: str, x: str, y: str) -> str:
    """Add to `total`, of int32, the products of the four unsigned bytes in each lane of x and the signed ones of y.

    how: "vpdpbusd" multiplies all four at once, "pmaddwd" two pairs of int16, "" one after the other in int32.
    """
    vector = f"<{lanes} x i32>"
    if how == "vpdpbusd":
        name = f"@llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        b.declarations.add(f"declare {vector} {name}({vector}, {vector}, {vector})")
        return b.let(f"call {vector} {name}({vector} {total}, {vector} {x}, {vector} {y})")
    width = 16 if how else 32
    fields = (byte_fields(b, each, lanes, width, signed) for each, signed in ((x, False), (y, True)))
    for left, right in zip(*fields, strict=True):
        if how:
            total = add_word_pairs(b, lanes, total, left, right)
        else:
            total = b.let(f"add {vector} {total}, {b.let(f'mul {vector} {left}, {right}')}")
    return total


def byte_fields(b: Block, quads: str, lanes: int, width: int, signed: bool) -> list[str]:
    """The bytes of quads, which are lanes of int32, as integers of `width` bits: the even and the odd ones, or all four apart."""
    vector, fields = f"<{lanes} x i32>", f"<{32 * lanes // width} x i{width}>"
    quads = b.let(f"bitcast {vector} {quads} to {fields}")
    found = []
    for bits in range(0, width, 8):
        if signed:
            value = b.let(f"shl {fields} {quads}, splat (i{width} {width - 8 - bits})")
            value = b.let(f"ashr {fields} {value}, splat (i{width} {width - 8})")
        else:
            value = b.let(f"lshr {fields} {quads}, splat (i{width} {bits})")
            value = b.let(f"and {fields} {value}, splat (i{width} 255)")
        found.append(b.let(f"bitcast {fields} {value} to {vector}"))
    return found


def add_word_pairs(b: Block, lanes: int, total: str, x: str, y: str) -> str:
    """Add the products of the two int16 in each lane of x and y to `total`, of int32: an instruction of AVX2."""
    vector, fields, name = f"<{lanes} x i32>", f"<{2 * lanes} x i16>", "@llvm.x86.avx2.pmadd.wd"
    b.declarations.add(f"declare {vector} {name}({fields}, {fields})")
    x, y = (b.let(f"bitcast {vector} {each} to {fields}") for each in (x, y))
    return b.let(f"add {vector} {total}, {b.let(f'call {vector} {name}({fields} {x}, {fields} {y})')}")


def lane_sums(b: Body, dtype: DType, lanes: int, vectors: Sequence[str]) -> str:
    """The sums of the lanes of each vector, in one vector of as many lanes. There are a power of two of them, at most `lanes`.

    The upper half of a vector is added to the lower one until one lane is left. Each addition does this for two vectors, whose halves
    lie side by side afterwards.
    """
    vectors, group, kind = list(vectors), lanes, value_type(dtype)
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_halves_added(b, kind, x, y, lanes, 2 * lanes, group) for x, y in pairs]
        group //= 2
    (vector,) = vectors
    while group > 1:
        vector = _halves_added(b, kind, vector, "poison", lanes, lanes, group)
        lanes, group = lanes // 2, group // 2
    return vector


def _halves_added(b: Body, kind: str, x: str, y: str, lanes: int, used: int, group: int) -> str:
    """Return the sums of both halves of each group of lanes, among the first `used` lanes of x and y together."""
    half = group // 2
    parts = []
    for offset in (0, half):
        mask = ", ".join(f"i32 {start + k + offset}" for start in range(0, used, group) for k in range(half))
        parts.append(
            b.let(
                f"shufflevector <{lanes} x {kind}> {x}, <{lanes} x {kind}> {y}, <{used // 2} x i32> <{mask}>"
            )
        )
    return b.let(f"fadd <{used // 2} x {kind}> {parts[0]}, {parts[1]}")


def transposed(b: Block, kind: str, rows: Sequence[str]) -> list[str]:
    """The columns of a square of vectors of the LLVM type `kind`, whose lanes are as many as there are vectors."""
    side, distance, rows = len(rows), 1, list(rows)
    # Each stage exchanges two quarters of all squares of 2 * distance elements a side.
    while distance < side:
        columns = []
        for k in range(side):
            first = k & ~distance
            mask = ", ".join(f"i32 {_chosen(lane, k, distance, side)}" for lane in range(side))
            pair = f"{kind} {rows[first]}, {kind} {rows[first + distance]}"
            columns.append(b.let(f"shufflevector {pair}, <{side} x i32> <{mask}>"))
        rows, distance = columns, 2 * distance
    return rows


def _chosen(lane: int, row: int, distance: int, side: int) -> int:
    """Which lane of the pair of rows becomes `lane` of `row`; lanes of the second row count from `side`."""
    upper_lane = lane & distance
    if row & distance:
        return side + lane if upper_lane else lane + distance
    return side + lane - distance if upper_lane else lane
