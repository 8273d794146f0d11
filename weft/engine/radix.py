"""Stable orders of rows of unsigned keys, as LLVM IR: a radix sort from the least significant digit on.

A digit has eight bits. An element carries its key above its position, so that each pass reads and writes memory once and reads the
keys in order. A pass is skipped if all keys have the same digit there.
Measured on AMD Zen 4, one thread: 10^6 random float32 take 11 ms, NumPy's radix sort of 16-bit digits 60 ms.
"""

from __future__ import annotations

import functools

from .kernel import Code, loop_code
from .structured import Body, function

_DIGITS = 256  # values of a digit


def element_bytes(bits: int) -> int:
    """Return the size of an element: a key of at most 32 bits above a position of 32 bits, or 64 above 64."""
    return 16 if bits == 64 else 8


def room_bytes(bits: int, n: int) -> int:
    """The memory that sorting a row of `n` keys needs besides the order; the memory of the order holds elements of 8 bytes, too."""
    return 2 * 16 * n if bits == 64 else 8 * n


@functools.cache
def order_code(bits: int) -> Code:
    """A loop over parts of the rows: operands are the order, int64 [rows, n], unsigned keys [rows, n], and room for each part.

    meta: n, the number of rows, the number of parts. Keys of at most 32 bits are less than 2**32 in a row.
    """
    declarations: set[str] = set()
    passes = [
        function(
            f"pass_{source}_{target}",
            "ptr %source, ptr %target, ptr %places, i64 %shift, i64 %n",
            declarations,
            functools.partial(_pass, bits=bits, source=source, target=target),
            "internal",
        )
        for source in ("keys", "elements")
        for target in ("elements", "order")
    ]
    row = function(
        "sort_row",
        "ptr %order, ptr %keys, ptr %room, i64 %n",
        declarations,
        lambda b: _row(b, bits),
        "internal",
    )
    return loop_code(lambda b: _parts(b, bits), 3, parts=[*passes, row], declarations=declarations)


def _load(b: Body, kind: str, base: str, i: str | int) -> str:
    address = b.let(f"getelementptr {kind}, ptr {base}, i64 {i}")
    return b.let(f"load {kind}, ptr {address}")


def _key(b: Body, bits: int, keys: str, i: str | int) -> str:
    key = _load(b, f"i{bits}", keys, i)
    return key if bits == 64 else b.let(f"zext i{bits} {key} to i64")


def _digit(b: Body, key: str, shift: str | int) -> str:
    return b.integer("and", b.integer("lshr", key, shift), _DIGITS - 1)


def _pass(b: Body, bits: int, source: str, target: str) -> None:
    """Move all elements to the places that their digits give, in order."""
    kind, below = f"i{8 * element_bytes(bits)}", 4 * element_bytes(bits)
    with b.loop(0, "%n") as i:
        if source == "keys":
            key, position = _key(b, bits, "%source", i), i
        else:
            element = _load(b, kind, "%source", i)
            key, position = b.let(f"lshr {kind} {element}, {below}"), element
            if kind == "i128":
                key = b.let(f"trunc i128 {key} to i64")
        slot = b.let(f"getelementptr i64, ptr %places, i64 {_digit(b, key, '%shift')}")
        place = b.let(f"load i64, ptr {slot}")
        b.do(f"store i64 {b.integer('add', place, 1)}, ptr {slot}")
        if target == "order":
            if source == "elements" and kind == "i128":
                position = b.let(f"trunc i128 {element} to i64")
            elif source == "elements":
                position = b.integer("and", element, 2**32 - 1)
            to = b.let(f"getelementptr i64, ptr %target, i64 {place}")
            b.do(f"store i64 {position}, ptr {to}")
        else:
            if source == "keys" and kind == "i128":
                upper = b.let(f"shl i128 {b.let(f'zext i64 {key} to i128')}, 64")
                element = b.let(f"or i128 {upper}, {b.let(f'zext i64 {position} to i128')}")
            elif source == "keys":
                element = b.integer("or", b.integer("shl", key, below), position)
            to = b.let(f"getelementptr {kind}, ptr %target, i64 {place}")
            b.do(f"store {kind} {element}, ptr {to}, align 8")


def _row(b: Body, bits: int) -> None:
    digits = bits // 8
    counts = b.zeros(8 * _DIGITS * digits)
    with b.loop(0, "%n") as i:
        key = _key(b, bits, "%keys", i)
        for digit in range(digits):
            slot = b.let(f"getelementptr i64, ptr {counts}, i64 {_digit(b, key, 8 * digit)}")
            slot = b.at(slot, 8 * _DIGITS * digit)
            b.do(f"store i64 {b.integer('add', b.let(f'load i64, ptr {slot}'), 1)}, ptr {slot}")
    # The places of the digits that differ, one behind the other; `active` counts them.
    used, active = b.room(8 * digits), b.variable("i64", "0")
    first = _key(b, bits, "%keys", 0)
    for d in range(digits):
        table = b.at(counts, 8 * _DIGITS * d)
        differs = b.let(f"icmp ne i64 {_load(b, 'i64', table, _digit(b, first, 8 * d))}, %n")
        with b.when(differs):
            number = b.get(active, "i64")
            b.do(f"store i64 {d}, ptr {b.let(f'getelementptr i64, ptr {used}, i64 {number}')}")
            b.set(active, "i64", b.integer("add", number, 1))
            total = b.variable("i64", "0")
            with b.loop(0, _DIGITS) as k:
                slot = b.let(f"getelementptr i64, ptr {table}, i64 {k}")
                count, before = b.let(f"load i64, ptr {slot}"), b.get(total, "i64")
                b.do(f"store i64 {before}, ptr {slot}")
                b.set(total, "i64", b.integer("add", before, count))
    count = b.get(active, "i64")
    with b.when(b.let(f"icmp eq i64 {count}, 0")), b.loop(0, "%n") as i:
        b.do(f"store i64 {i}, ptr {b.let(f'getelementptr i64, ptr %order, i64 {i}')}")
    last = b.integer("sub", count, 1)
    other = b.place("%room", ("%n", 16)) if bits == 64 else "%order"
    with b.loop(0, count) as p:
        current = _load(b, "i64", used, p)
        table = b.place(counts, (current, 8 * _DIGITS))
        shift = b.integer("mul", current, 8)
        # The last pass but one writes into the room, the one before it into the other memory, and so on.
        odd = b.let(f"trunc i64 {b.integer('sub', last, p)} to i1")
        to = b.let(f"select i1 {odd}, ptr %room, ptr {other}")
        start = b.let(f"select i1 {odd}, ptr {other}, ptr %room")
        is_first, is_last = b.let(f"icmp eq i64 {p}, 0"), b.let(f"icmp eq i64 {p}, {last}")
        for source, from_keys in (("keys", is_first), ("elements", b.let(f"xor i1 {is_first}, true"))):
            for target, chosen in (("order", is_last), ("elements", b.let(f"xor i1 {is_last}, true"))):
                begin = "%keys" if source == "keys" else start
                end = "%order" if target == "order" else to
                with b.when(b.let(f"and i1 {from_keys}, {chosen}")):
                    b.do(
                        f"call void @pass_{source}_{target}(ptr {begin}, ptr {end}, ptr {table}, i64 {shift}, i64 %n)"
                    )


def _parts(b: Body, bits: int) -> None:
    order, keys, room = (_load(b, "ptr", "%operands", k) for k in range(3))
    n, rows, parts = (_load(b, "i64", "%meta", k) for k in range(3))
    own = b.integer("mul", n, room_bytes(bits, 1))
    with b.loop("%begin", "%end") as part:
        begin = b.integer("sdiv", b.integer("mul", rows, part), parts)
        end = b.integer("sdiv", b.integer("mul", rows, b.integer("add", part, 1)), parts)
        free = b.place(room, (part, own))
        with b.loop(begin, end) as row:
            position = b.integer("mul", row, n)
            here = b.let(f"getelementptr i64, ptr {order}, i64 {position}")
            source = b.let(f"getelementptr i{bits}, ptr {keys}, i64 {position}")
            b.do(f"call void @sort_row(ptr {here}, ptr {source}, ptr {free}, i64 {n})")
