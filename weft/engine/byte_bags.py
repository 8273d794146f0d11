"""Sums of rows of a table of bytes or nibbles, in which each row has a scale and a bias: embeddings of bags of words.

    c[bag] = the sum over the places k of the bag of table[row] * (weight[k] * scale[row]) + weight[k] * bias[row], where row = indices[k]

Each element of a sum is one chain in the order of the places, which adds the bias and then, by a fused multiply-add, the integer times the
scale. So the bits depend neither on the registers of the processor nor on the number of threads.
"""

from __future__ import annotations

import functools

import numpy as np

from ..core.dtype import DType, float32, int64, uint8
from .kernel import Code, Launch, loop_code, sharing
from .llvm import value_type
from .structured import Body, function
from .vectors import broadcast, lanes_below, load_lanes, store_lanes

_LANES, _LINES = 16, 4  # of float32; vectors of a whole tile
_FLOATS = f"<{_LANES} x float>"
_OPERANDS = ("c", "table", "scales", "biases", "indices", "offsets", "weights")
_META = ("columns", "row_bytes")


def _element(b: Body, base: str, index: str, dtype: DType) -> str:
    place = b.place(base, (index, dtype.itemsize))
    return b.let(f"load {value_type(dtype)}, ptr {place}, align {dtype.itemsize}")


def _numbers(b: Body, address: str, bits: int, left: str) -> str:
    """The integers of as many columns as a vector has lanes, as float32; if `left` is given, only so many are read."""
    count = _LANES * bits // 8
    inside = ""
    if left:
        inside = lanes_below(b, count, left if bits == 8 else b.integer("ashr", b.integer("add", left, 1), 1))
    read = load_lanes(b, uint8, count, address, inside)
    if bits == 4:  # the first integer of each byte is in its lower bits
        kind = f"<{count} x i8>"
        low, high = b.let(f"and {kind} {read}, splat (i8 15)"), b.let(f"lshr {kind} {read}, splat (i8 4)")
        order = ", ".join(f"i32 {k // 2 + k % 2 * count}" for k in range(_LANES))
        read = b.let(f"shufflevector {kind} {low}, {kind} {high}, <{_LANES} x i32> <{order}>")
    wide = b.let(f"zext <{_LANES} x i8> {read} to <{_LANES} x i32>")
    return b.let(f"sitofp <{_LANES} x i32> {wide} to {_FLOATS}")


def _tile(b: Body, lines: int, bits: int, weighted: bool, left: str) -> None:
    """The sums of `lines` vectors of columns of one bag; if `left` is given, of so many columns of one vector."""
    operands, meta = b.fields("%operands", _OPERANDS, "ptr"), b.fields("%meta", _META)
    sums = [b.variable(_FLOATS, "zeroinitializer") for _ in range(lines)]
    start = _element(b, operands["offsets"], "%bag", int64)
    stop = _element(b, operands["offsets"], b.integer("add", "%bag", 1), int64)
    first_byte = b.integer("lshr", b.integer("mul", "%column", bits), 3)
    with b.loop(start, stop) as k:
        row = _element(b, operands["indices"], k, int64)
        source = b.at(b.place(operands["table"], (row, meta["row_bytes"])), first_byte)
        factors = [_element(b, operands[name], row, float32) for name in ("scales", "biases")]
        if weighted:
            weight = _element(b, operands["weights"], k, float32)
            factors = [b.let(f"fmul float {weight}, {each}") for each in factors]
        scale, bias = (broadcast(b, "float", _LANES, each) for each in factors)
        for j, total in enumerate(sums):
            number = _numbers(b, b.at(source, j * _LANES * bits // 8), bits, left)
            before = b.let(f"fadd {_FLOATS} {b.get(total, _FLOATS)}, {bias}")
            b.set(total, _FLOATS, b.intrinsic("fma", float32, _LANES, number, scale, before))
    place = b.integer("add", b.integer("mul", "%bag", meta["columns"]), "%column")
    target = b.place(operands["c"], (place, 4))
    for j, total in enumerate(sums):
        value, into = b.get(total, _FLOATS), b.at(target, 4 * _LANES * j)
        store_lanes(b, float32, _LANES, value, into, lanes_below(b, _LANES, left) if left else "")


def _bags(b: Body) -> None:
    columns = b.fields("%meta", _META)["columns"]
    wide = _LANES * _LINES
    whole = b.integer("sub", columns, b.integer("urem", columns, wide))
    with b.loop("%begin", "%end") as bag:
        given = f"ptr %operands, ptr %meta, i64 {bag}"
        with b.loop(0, whole, wide) as n:
            b.do(f"call void @whole({given}, i64 {n}, i64 0)")
        with b.loop(whole, columns, _LANES) as n:
            b.do(f"call void @part({given}, i64 {n}, i64 {b.integer('sub', columns, n)})")


@functools.cache
def _code(bits: int, weighted: bool) -> Code:
    declarations: set[str] = set()
    places = "ptr %operands, ptr %meta, i64 %bag, i64 %column, i64 %left"
    functions = []
    for name, lines, left in (("whole", _LINES, ""), ("part", 1, "%left")):
        write = functools.partial(_tile, lines=lines, bits=bits, weighted=weighted, left=left)
        functions.append(function(name, places, declarations, write, "internal"))
    return loop_code(_bags, len(_OPERANDS), parts=functions, declarations=declarations, vectorize=False)


def byte_bags(bags: int, places: int, columns: int, row_bytes: int, bits: int, weighted: bool) -> Launch:
    """`entry(c, table, scales, biases, indices, offsets, weights, meta, bags)`.

    c: float32 [bags, columns]. table: rows of `row_bytes` bytes, with integers of 8 or 4 bits. scales, biases: float32, of each row.
    indices: int64 [places]. offsets: int64 [bags + 1]. weights: float32 [places]; read only if `weighted`.
    """
    meta = np.array([columns, row_bytes], np.int64)
    entry = sharing(_code(bits, weighted), places * columns * float32.itemsize)
    return Launch(entry, meta.ctypes.data, bags, meta)
