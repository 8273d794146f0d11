"""The element that would come at a given rank if a row were sorted, as LLVM IR.

The key at rank r is the greatest number that has at most r keys below it. So its bits are found one after the other, from the highest
on: a bit is set unless more than r keys lie below. Each bit takes one pass over the row, which counts in vectors and never branches
on data.
"""

from __future__ import annotations

import functools

from .kernel import Code, loop_code
from .structured import Body, function
from .vectors import broadcast


@functools.cache
def rank_code(bits: int) -> Code:
    """A loop over rows: operands are the positions found, int64 [rows], ranks, int64 [rows], and unsigned keys [rows, n], contiguous.

    meta: n. A rank is at least 0 and less than n. Of equal keys the position of the first one is found.
    """
    declarations: set[str] = set()
    key = f"i{bits}"
    parameters = f"ptr %row, i64 %n, {key} %limit, ptr %found"
    count = function("below", parameters, declarations, lambda b: _count(b, bits), "internal")
    return loop_code(lambda b: _rows(b, bits), 3, parts=[count], declarations=declarations)


def _rows(b: Body, bits: int) -> None:
    n = b.let("load i64, ptr %meta")
    found, ranks, keys = b.operands(3)
    room = b.variable("i64", "0")
    with b.loop("%begin", "%end") as r:
        row = b.place(keys, (b.integer("mul", r, n), bits // 8))
        rank = b.load("i64", b.place(ranks, (r, 8)))
        key = _key_at(b, bits, row, n, rank, room)
        b.do(f"store i64 {_first(b, bits, row, key)}, ptr {b.place(found, (r, 8))}")


def _key_at(b: Body, bits: int, row: str, n: str, rank: str, room: str) -> str:
    """Return the key at `rank`."""
    kind = f"i{bits}"
    known = b.variable(kind, "0")
    with b.loop(0, bits) as k:
        place = b.integer("sub", bits - 1, k)
        if bits < 64:
            place = b.let(f"trunc i64 {place} to {kind}")
        bit = b.let(f"shl {kind} 1, {place}")
        before = b.get(known, kind)
        limit = b.let(f"or {kind} {before}, {bit}")
        b.do(f"call void @below(ptr {row}, i64 {n}, {kind} {limit}, ptr {room})")
        fits = b.let(f"icmp sle i64 {b.get(room, 'i64')}, {rank}")
        b.set(known, kind, b.let(f"select i1 {fits}, {kind} {limit}, {kind} {before}"))
    return b.get(known, kind)


def _count(b: Body, bits: int) -> None:
    """How many keys of the row lie below the limit."""
    lanes, kind = 512 // bits, f"i{bits}"
    total = b.variable("i64", "0")
    whole = b.integer("mul", b.integer("sdiv", "%n", lanes), lanes)
    limits = broadcast(b, kind, lanes, "%limit")
    b.declarations.add(f"declare i{lanes} @llvm.ctpop.i{lanes}(i{lanes})")
    with b.loop(0, whole, lanes) as i:
        keys = b.let(f"load <{lanes} x {kind}>, ptr {_place(b, bits, '%row', i)}, align {bits // 8}")
        less = b.let(f"icmp ult <{lanes} x {kind}> {keys}, {limits}")
        mask = b.let(f"bitcast <{lanes} x i1> {less} to i{lanes}")
        number = b.let(f"call i{lanes} @llvm.ctpop.i{lanes}(i{lanes} {mask})")
        if lanes < 64:
            number = b.let(f"zext i{lanes} {number} to i64")
        b.set(total, "i64", b.integer("add", b.get(total, "i64"), number))
    with b.loop(whole, "%n") as i:
        key = b.let(f"load {kind}, ptr {_place(b, bits, '%row', i)}")
        less = b.let(f"zext i1 {b.let(f'icmp ult {kind} {key}, %limit')} to i64")
        b.set(total, "i64", b.integer("add", b.get(total, "i64"), less))
    b.do(f"store i64 {b.get(total, 'i64')}, ptr %found")


def _first(b: Body, bits: int, row: str, key: str) -> str:
    """The position of the first element that equals `key`, which the row contains."""
    place = b.variable("i64", "-1")
    b.do("br label %look\nlook:")
    here = b.integer("add", b.get(place, "i64"), 1)
    b.set(place, "i64", here)
    one = b.let(f"load i{bits}, ptr {_place(b, bits, row, here)}")
    b.do(f"br i1 {b.let(f'icmp eq i{bits} {one}, {key}')}, label %seen, label %look\nseen:")
    return here


def _place(b: Body, bits: int, row: str, position: str) -> str:
    return b.place(row, (position, bits // 8))
