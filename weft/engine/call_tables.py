"""The table in front of an op's plans that machine code looks into: from the operands' specs to the record of a plan.

A table is direct-mapped, so that a lookup is a hash of two addresses and two comparisons. It owns a reference to each of its
records, and a record owns the specs that are its keys. So an address in a key cannot become that of another object.

A record is a tuple `(words, spec, allocation, recorder, plan, key, other key, ...)`. `words` are bytes with what the kernel's loop
gets (WORDS), None where machine code cannot run the plan. `allocation` is the self of `plan.allocate`. `recorder` is None until
a call of the plan was recorded.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from .host import builtin, keepalive
from .objects import BYTES, SIZE, TUPLE_ITEMS, Function

# A table in memory is HEADER bytes for the objects that the call functions of its op need (FIELDS), then the entries.
ENTRY = 32  # bytes: key, other key, record, and the mixed keys of the last call that was not found here
HEADER = 64
OF_ONE_OP, OF_ALL_OPS = 256, 1024  # entries; powers of two

# What a table's header holds. `python` is the function for calls that machine code does not take, `reflected` that of the
# reflected operator, and `learn(*operands)` adds a record after the first call with new specs. `owner` is the first key of
# records in the table of all functions. `entries` is the number of entries.
FIELDS = ("python", "reflected", "learn", "owner", "entries")

# What a kernel gets. `number`: as what it reads numbers. `limited`: numbers must fit a dtype. `operands`: how many tensors there
# are, with the result. `share`: the address of the function that shares the loop among the workers, which gets `pool`, `grain` and
# `always`; 0 if the loop runs in the calling thread. `loop`: the address of the shared loop. `turns`: the address of `Habit.turns` (`habits.py`); 0 if the plan is not
# deferred. `flat`: there is one dimension, whose strides follow.
STRIDES = 5
WORDS = (
    "row",
    "meta",
    "count",
    "number",
    "limited",
    "operands",
    *("share", "pool", "grain", "always", "loop"),
    "turns",
    "flat",
    *(f"stride{k}" for k in range(STRIDES)),
)
SPEC, ALLOCATION, RECORDER, KEY = 1, 2, 3, 5  # the items of a record after its words


# Learning to replay a call (`autograd/replays.py`) takes as long as 20 to 100 calls of the Python function. A busy process learns a
# call that it has made so often; one that asks for machine code learns it the second time.
PATIENCE = 16
patience = keepalive(ctypes.c_int64(1))


class Table:
    """The table of one op's call functions, which lasts as long as the process. `bound` is what builtins get as their self."""

    # The addresses of the functions that `functions` makes; empty until they are compiled. Until then tables are empty.
    code: ClassVar[dict[str, int]] = {}

    def __init__(self, remember: str = "remember", entries: int = OF_ONE_OP, **objects: Any):
        self._function = remember
        self._memory = keepalive((ctypes.c_size_t * ((HEADER + entries * ENTRY) // 8))())
        self._memory[FIELDS.index("entries")] = entries
        self.address = ctypes.addressof(self._memory)
        for key, value in objects.items():
            self._memory[FIELDS.index(key)] = id(keepalive(value))
        self.bound = struct.pack("q", self.address)

    @functools.cached_property
    def _remember(self) -> Callable[[tuple], Any]:
        return builtin(self.code[self._function], self._function, self.bound)

    @functools.cached_property
    def forget(self) -> Callable[[], Any]:
        """Drop all records."""
        return builtin(self.code["forget"], "forget", self.bound)

    def add(self, *record: Any) -> None:
        """Add a record with these items."""
        self._remember(record)


# ---- IR ------------------------------------------------------------------------------------------------------------------


def table_of_self(f: Function) -> str:
    """The table of a builtin."""
    return f.load("%self", BYTES)


def field(f: Function, table: str, called: str) -> str:
    return f.load(table, 8 * FIELDS.index(called))


def mix(f: Function, key: str, other: str) -> str:
    """A number that depends on two keys, which are i64."""
    mixed = f.let(f"mul i64 {key}, 31")
    return f.let(f"add i64 {mixed}, {other}")


def entry(f: Function, table: str, mixed: str, entries: int) -> str:
    """The address of the entry for mixed keys."""
    # The upper bits of this product depend on all bits. The addresses of objects differ in few of theirs.
    spread = f.let(f"mul i64 {mixed}, -7046029254386353131")
    index = f.let(f"lshr i64 {spread}, {64 - entries.bit_length() + 1}")
    scaled = f.let(f"mul i64 {index}, {ENTRY}")
    return f.place(table, f.let(f"add i64 {scaled}, {HEADER}"))


def lookup(f: Function, table: str, key: str, other: str) -> str:
    """The record for two keys. Goes on as `missing` says if the table has none."""
    mixed = mix(f, key, other)
    place = entry(f, table, mixed, OF_ONE_OP)
    missing(f, place, mixed)
    f.require(f.same(f.load(place, 0, "i64"), key, "i64"), "missing")
    f.require(f.same(f.load(place, 8, "i64"), other, "i64"), "missing")
    return f.load(place, 16)


def missing(f: Function, place: str, mixed: str) -> None:
    """The label `missing`: goes on at `unusual` for a call that is missing for the first time, and then at `unknown`.

    A record costs as much as two calls of the Python function. Programs whose sizes always change must not pay for it.
    """
    f.go("looked_up")
    f.label("missing")
    f.require(f.differ(f.load(place, 24, "i64"), mixed, "i64"), "unknown")
    f.store(place, 24, mixed, "i64")
    f.go("unusual")
    f.label("looked_up")


def item(f: Function, record: str, position: int, kind: str = "ptr") -> str:
    return f.load(record, TUPLE_ITEMS + 8 * position, kind)


def word(f: Function, words: str, called: str, kind: str = "i64") -> str:
    return f.load(words, BYTES + 8 * WORDS.index(called), kind)


def lookup_all(f: Function, table: str, keys: str, count: str) -> str:
    """As `lookup`, for `count` keys (i64), of which %mixed is the mixture, in a table of all ops."""
    place = entry(f, table, "%mixed", OF_ALL_OPS)
    missing(f, place, "%mixed")
    f.require(f.same(f.load(place, 0, "i64"), "%mixed", "i64"), "missing")
    record = f.load(place, 16)
    f.require(f.differ(record, "null"), "missing")
    size = f.let(f"add i64 {count}, {KEY}")
    f.require(f.same(f.load(record, SIZE, "i64"), size, "i64"), "missing")
    first = f.place(record, TUPLE_ITEMS + 8 * KEY)
    f.go("before_keys")
    f.label("before_keys")
    f.go("each_key")
    f.label("each_key")
    f.do("%j = phi i64 [0, %before_keys], [%next_j, %next_key]")
    mine, theirs = (f.load(f.let(f"getelementptr i64, ptr {p}, i64 %j"), 0, "i64") for p in (keys, first))
    f.branch(f.same(mine, theirs, "i64"), "next_key", "missing")
    f.label("next_key")
    f.do("%next_j = add i64 %j, 1")
    f.branch(f.let(f"icmp slt i64 %next_j, {count}"), "each_key", "known_keys")
    f.label("known_keys")
    return record


def functions() -> list[Function]:
    """`remember(record)`, `remember_all(record)` for a table of all ops, and `forget()`; their self is that of a Table."""
    return [_remember(), _remember_all(), _forget()]


def _remember() -> Function:
    f = Function("remember", "ptr %self, ptr %args, i64 %nargs")
    record = f.load("%args")
    key, other = item(f, record, KEY, "i64"), item(f, record, KEY + 1, "i64")
    place = entry(f, table_of_self(f), mix(f, key, other), OF_ONE_OP)
    _put(f, place, record, key, other)
    return f


def _remember_all() -> Function:
    f = Function("remember_all", "ptr %self, ptr %args, i64 %nargs")
    record = f.load("%args")
    size = f.load(record, SIZE, "i64")
    f.go("before")
    f.label("before")
    f.go("each")
    f.label("each")
    f.do(f"%k = phi i64 [{KEY}, %before], [%next, %each]")
    f.do("%mixed = phi i64 [0, %before], [%more, %each]")
    key = f.load(f.let(f"getelementptr i64, ptr {f.place(record, TUPLE_ITEMS)}, i64 %k"), 0, "i64")
    f.do(f"%more = add i64 {mix(f, '%mixed', key)}, 0")
    f.do("%next = add i64 %k, 1")
    f.branch(f.let(f"icmp slt i64 %next, {size}"), "each", "done")
    f.label("done")
    _put(f, entry(f, table_of_self(f), "%more", OF_ALL_OPS), record, "%more", "0")
    return f


def _put(f: Function, place: str, record: str, key: str, other: str) -> None:
    """Put a record into an entry, and return it."""
    old = f.load(place, 16)
    f.incref(record)
    f.store(place, 0, key, "i64")
    f.store(place, 8, other, "i64")
    f.store(place, 16, record)
    f.decref(old)
    f.incref(record)
    f.ret(record)


def _forget() -> Function:
    f = Function("forget", "ptr %self, ptr %args, i64 %nargs")
    table = table_of_self(f)
    entries = f.load(table, 8 * FIELDS.index("entries"), "i64")
    f.go("before")
    f.label("before")
    f.go("each")
    f.label("each")
    f.do("%i = phi i64 [0, %before], [%next, %each]")
    scaled = f.let(f"mul i64 %i, {ENTRY}")
    place = f.place(table, f.let(f"add i64 {scaled}, {HEADER}"))
    old = f.load(place, 16)
    f.store(place, 0, "0", "i64")
    f.store(place, 16, "null")
    f.decref(old)
    f.do("%next = add i64 %i, 1")
    f.branch(f.let(f"icmp slt i64 %next, {entries}"), "each", "done")
    f.label("done")
    f.incref("%self")
    f.ret("%self")
    return f
