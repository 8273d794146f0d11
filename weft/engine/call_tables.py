"""Tables in which machine code finds what it knows of a call: from the call's key to a record.

A key is a sequence of words, most of them addresses: of the operands' specs and types, of an op. A record is a tuple whose first item is its
key, as bytes. What follows is the business of those who add it: `families/native_calls.py` describes plans, `autograd/replays.py` calls
that are replayed. A record owns the objects whose addresses are in its key, and the table owns the record. So an address in a key cannot
become that of another object.

A table is direct-mapped: the hash of a key says where its record may stand, and a new record takes the place of the old one.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .host import builtin, keepalive
from .objects import BYTES, SIZE, Function, Text, name

# A table in memory is HEADER bytes for the objects that the call functions of its op need (FIELDS), then the entries. An entry is the
# address of a record, and a word for `is_usual`.
ENTRY = 16  # bytes
HEADER = 64
ENTRIES, ENTRIES_OF_ALL_OPS = 256, 1024  # powers of two

# What a table's header holds. `python` is the function for calls that machine code does not take, `reflected` that of the
# reflected operator, and `learn` adds a record for a call. `owner` is the first word of keys in the table of all shortcuts. `mask` is the
# number of entries, less one.
FIELDS = ("python", "reflected", "learn", "owner", "mask")

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
# The items of the record of a plan: `words` are bytes with what the kernel's loop gets (WORDS), None where machine code cannot run the
# plan. `allocation` is the self of `plan.allocate`. `recorder` is None until a call of the plan was recorded.
KEY, KERNEL, SPEC, ALLOCATION, RECORDER = range(5)

# Learning to replay a call (`autograd/replays.py`) takes as long as 20 to 100 calls of the Python function. A busy process learns a
# call that it has made so often; one that asks for machine code learns it the second time.
PATIENCE = 16
patience = keepalive(ctypes.c_int64(1))


class Table:
    """The table of one function, which lasts as long as the process. `bound` is what builtins get as their self."""

    # The addresses of the functions that `functions` makes; empty until they are compiled. Until then tables are empty.
    code: ClassVar[dict[str, int]] = {}
    tables: ClassVar[list[Table]] = []

    def __init__(self, entries: int = ENTRIES, **objects: Any):
        self._memory = keepalive((ctypes.c_size_t * ((HEADER + entries * ENTRY) // 8))())
        self.address = ctypes.addressof(self._memory)
        self.bound = struct.pack("q", self.address)
        self._memory[FIELDS.index("mask")] = entries - 1
        for field, value in objects.items():
            self.set(field, value)
        if entries:
            Table.tables.append(self)

    def set(self, field: str, value: Any) -> None:
        """Let a field of the header name this object."""
        self._memory[FIELDS.index(field)] = id(keepalive(value))

    def function(self, called: str, **options: Any) -> Callable[..., Any]:
        """A function of machine code whose self is this table."""
        return builtin(self.code[called], called, self.bound, **options)

    @functools.cached_property
    def add(self) -> Callable[[tuple], None]:
        """Add a record."""
        return self.function("remember")

    @functools.cached_property
    def forget(self) -> Callable[[], None]:
        """Drop all records."""
        return self.function("forget")


def key_of_objects(objects: Sequence[Any]) -> bytes:
    """Return the key of the addresses of these objects."""
    return struct.pack(f"{len(objects)}Q", *map(id, objects))


def forget_records() -> None:
    """Drop the records of all tables."""
    for table in Table.tables if Table.code else ():
        table.forget()


# ---- IR ------------------------------------------------------------------------------------------------------------------


def table_of_self(f: Function) -> str:
    """Return the table of a builtin."""
    return f.load("%self", BYTES)


def field(f: Function, table: str, called: str, kind: str = "ptr") -> str:
    return f.load(table, 8 * FIELDS.index(called), kind)


def word(f: Function, words: str, called: str, kind: str = "i64") -> str:
    return f.load(words, BYTES + 8 * WORDS.index(called), kind)


def mix(f: Function, hashed: str, word: str) -> str:
    """Return the hash of a key with one more word."""
    mixed = f.let(f"xor i64 {hashed}, {word}")
    # The upper bits of the product depend on all bits; those come to the lower ones, which choose the entry.
    product = f.let(f"mul i64 {mixed}, -7046029254386353131")
    upper = f.let(f"lshr i64 {product}, 32")
    return f.let(f"xor i64 {product}, {upper}")


def entry(f: Function, table: str, hashed: str) -> str:
    """Return the address of the entry for keys with this hash."""
    index = f.let(f"and i64 {hashed}, {field(f, table, 'mask', 'i64')}")
    scaled = f.let(f"mul i64 {index}, {ENTRY}")
    return f.place(table, f.let(f"add i64 {scaled}, {HEADER}"))


def lookup(f: Function, table: str, *key: str) -> str:
    """The record for the words of a key. Goes on at `unusual` if there is none, at `unknown` if it is time to make one.

    All keys of the table have as many words.
    """
    hashed = "0"
    for each in key:
        hashed = mix(f, hashed, each)
    record = f.load(entry(f, table, hashed))
    f.require(f.differ(record, "null"), "missing")
    words = f.tuple_item(record, KEY)
    for k, each in enumerate(key):
        f.require(f.same(f.load(words, BYTES + 8 * k, "i64"), each, "i64"), "missing")
    _missing(f, table, hashed)
    return record


def lookup_words(f: Function, table: str, hashed: str, words: str, count: str) -> str:
    """Look up as `lookup`, for `count` (i64) words at an address."""
    record = find(f, table, hashed, words, count)
    f.require(f.differ(record, "null"), "missing")
    _missing(f, table, hashed)
    return record


def find(f: Function, table: str, hashed: str, words: str, count: str) -> str:
    """The record for `count` (i64) words at an address; null if there is none."""
    return f.let(f"call ptr @find(ptr {table}, i64 {hashed}, ptr {words}, i64 {count})")


def _missing(f: Function, table: str, hashed: str) -> None:
    """A record costs as much as two calls of the Python function. Programs whose sizes always change must not pay for it."""
    f.go("looked_up")
    f.label("missing")
    f.branch(f.let(f"call i1 @is_usual(ptr {table}, i64 {hashed}, i64 1)"), "unknown", "unusual")
    f.label("looked_up")


def functions() -> list[Function]:
    """What the functions above call, and `remember(record)` and `forget()`, whose self is that of a Table."""
    return [_find(), _is_usual(), _remember(), _forget()]


def _find() -> Function:
    """The record for a key; null if there is none."""
    f = Text("find", "ptr %table, i64 %hashed, ptr %words, i64 %count")
    record = f.load(entry(f, "%table", "%hashed"))
    f.require(f.differ(record, "null"), "none")
    key = f.tuple_item(record, KEY)
    f.require(f.same(f.load(key, SIZE, "i64"), f.let("shl i64 %count, 3"), "i64"), "none")
    with f.each("%count") as k:
        f.require(f.same(f.word(f.place(key, BYTES), k), f.word("%words", k), "i64"), "none")
    f.ret(record)
    f.label("none")
    f.ret("null")
    return f


_CALLS = 32  # a power of two above `patience`


def _is_usual() -> Function:
    """Counts the calls with a key that has no record; whether there were more than `%patience` in a row in its entry."""
    f = Text("is_usual", "ptr %table, i64 %hashed, i64 %patience", "i1")
    place = entry(f, "%table", "%hashed")
    key = f.let(f"and i64 %hashed, {-_CALLS}")
    before = f.load(place, 8, "i64")
    is_same = f.same(f.let(f"and i64 {before}, {-_CALLS}"), key, "i64")
    calls = f.add(f.let(f"select i1 {is_same}, i64 {before}, i64 {key}"), "1")
    is_usual = f.let(f"icmp ugt i64 {f.let(f'and i64 {calls}, {_CALLS - 1}')}, %patience")
    f.store(place, 8, f.let(f"select i1 {is_usual}, i64 0, i64 {calls}"), "i64")
    f.ret(is_usual)
    return f


def _remember() -> Function:
    f = Text("remember", "ptr %self, ptr %args, i64 %nargs", linkage="")
    record, hashed = f.load("%args"), f.room(1)
    key = f.tuple_item(record, KEY)
    f.store(hashed, 0, "0", "i64")
    with f.each(f.let(f"lshr i64 {f.load(key, SIZE, 'i64')}, 3")) as k:
        f.store(hashed, 0, mix(f, f.load(hashed, 0, "i64"), f.word(f.place(key, BYTES), k)), "i64")
    place = entry(f, table_of_self(f), f.load(hashed, 0, "i64"))
    f.incref(record)
    _put(f, place, record)
    _ret_none(f)
    return f


def _forget() -> Function:
    f = Text("forget", "ptr %self, ptr %args, i64 %nargs", linkage="")
    table = table_of_self(f)
    with f.each(f.add(field(f, table, "mask", "i64"), "1")) as k:
        _put(f, f.place(table, f.add(f.let(f"mul i64 {k}, {ENTRY}"), str(HEADER))), "null")
    _ret_none(f)
    return f


def _put(f: Function, place: str, record: str) -> None:
    """Put a record into an entry, which owns it from then on."""
    old = f.load(place)
    f.store(place, 0, record)
    f.decref(old)


def _ret_none(f: Function) -> None:
    f.incref(name("none"))
    f.ret(name("none"))
