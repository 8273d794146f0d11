"""The table in front of an op's plans that machine code looks into: from the operands' specs to the record of a plan.

A table is direct-mapped, so that a lookup is a hash of two addresses and two comparisons. It owns a reference to each of its
records, and a record owns the specs that are its key. So an address in a key cannot become that of another object.

A record is a tuple `(words, spec, allocation, recorder, plan, key, other key)`. `words` are bytes with what the kernel's loop gets
(WORDS), None where machine code cannot run the plan. `allocation` is the self of `plan.allocate`. `recorder` is None until a
call of the plan was recorded.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from .host import builtin, keepalive
from .objects import BYTES, TUPLE_ITEMS, Function

# A table in memory is HEADER bytes for the objects that the call functions of its op need (FIELDS), then the entries.
ENTRIES = 64
ENTRY = 32  # bytes: key, other key, record
HEADER = 64
NBYTES = HEADER + ENTRIES * ENTRY

# What a table's header holds. `python` is the function for calls that machine code does not take, `reflected` that of the
# reflected operator, and `learn(*operands)` adds a record after the first call with new specs.
FIELDS = ("python", "reflected", "learn")

# What a kernel gets. `flat`: there is one dimension, whose strides follow. `number`: the type of the number that is an operand.
WORDS = ("row", "meta", "count", "flat", "stride0", "stride1", "stride2", "number")
SPEC, ALLOCATION, RECORDER, KEY = 1, 2, 3, 5  # the items of a record after its words


class Table:
    """The table of one op's call functions, which lasts as long as the process. `bound` is what builtins get as their self."""

    # The addresses of the functions `remember` and `forget` below.
    code: ClassVar[tuple[int, int]]

    def __init__(self, **objects: Any):
        self._memory = keepalive((ctypes.c_size_t * (NBYTES // 8 + 1))())
        self.address = ctypes.addressof(self._memory)
        for key, value in objects.items():
            self._memory[FIELDS.index(key)] = id(keepalive(value))
        self.bound = struct.pack("q", self.address)

    @functools.cached_property
    def _remember(self) -> Callable[[tuple], Any]:
        return builtin(self.code[0], "remember", self.bound)

    @functools.cached_property
    def forget(self) -> Callable[[], Any]:
        """Drop all records."""
        return builtin(self.code[1], "forget", self.bound)

    def add(self, *record: Any) -> None:
        """Add a record with these items; without the other key if there is one operand."""
        self._remember(record if len(record) > KEY + 1 else (*record, None))


# ---- IR ------------------------------------------------------------------------------------------------------------------


def table_of_self(f: Function) -> str:
    """The table of a builtin."""
    return f.load("%self", BYTES)


def field(f: Function, table: str, called: str) -> str:
    return f.load(table, 8 * FIELDS.index(called))


def _entry(f: Function, table: str, key: str, other: str) -> str:
    """The address of the entry for two keys, which are i64."""
    mixed = f.let(f"mul i64 {key}, 31")
    both = f.let(f"add i64 {mixed}, {other}")
    # The upper bits of this product depend on all bits. The addresses of objects differ in few of theirs.
    spread = f.let(f"mul i64 {both}, -7046029254386353131")
    index = f.let(f"lshr i64 {spread}, {64 - ENTRIES.bit_length() + 1}")
    scaled = f.let(f"mul i64 {index}, {ENTRY}")
    return f.place(table, f.let(f"add i64 {scaled}, {HEADER}"))


def lookup(f: Function, table: str, key: str, other: str, unknown: str) -> str:
    """The record for two keys. Goes to the label `unknown` if the table has none."""
    entry = _entry(f, table, key, other)
    f.require(f.same(f.load(entry, 0, "i64"), key, "i64"), unknown)
    f.require(f.same(f.load(entry, 8, "i64"), other, "i64"), unknown)
    return f.load(entry, 16)


def item(f: Function, record: str, position: int, kind: str = "ptr") -> str:
    return f.load(record, TUPLE_ITEMS + 8 * position, kind)


def word(f: Function, words: str, called: str, kind: str = "i64") -> str:
    return f.load(words, BYTES + 8 * WORDS.index(called), kind)


def functions() -> list[Function]:
    """`remember(record)` and `forget()`, whose self is that of a Table."""
    return [_remember(), _forget()]


def _remember() -> Function:
    f = Function("remember", "ptr %self, ptr %args, i64 %nargs")
    record = f.load("%args")
    key, other = item(f, record, KEY, "i64"), item(f, record, KEY + 1, "i64")
    entry = _entry(f, table_of_self(f), key, other)
    old = f.load(entry, 16)
    f.incref(record)
    f.store(entry, 0, key, "i64")
    f.store(entry, 8, other, "i64")
    f.store(entry, 16, record)
    f.decref(old)
    f.incref(record)
    f.ret(record)
    return f


def _forget() -> Function:
    f = Function("forget", "ptr %self, ptr %args, i64 %nargs")
    table = table_of_self(f)
    f.go("each")
    f.label("each")
    f.do("%i = phi i64 [0, %start], [%next, %each]")
    scaled = f.let(f"mul i64 %i, {ENTRY}")
    entry = f.place(table, f.let(f"add i64 {scaled}, {HEADER}"))
    old = f.load(entry, 16)
    f.store(entry, 0, "0", "i64")
    f.store(entry, 16, "null")
    f.decref(old)
    f.do("%next = add i64 %i, 1")
    f.branch(f.let(f"icmp slt i64 %next, {ENTRIES}"), "each", "done")
    f.label("done")
    f.incref("%self")
    f.ret("%self")
    return f
