"""Words in memory that kernels read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.symbols import per_plan
from ..core.templates import add_atoms
from .host import builtin
from .objects import BYTES, SIZE, TUPLE_ITEMS, Text, compile_functions, offset


class Block:
    """Words in memory that a kernel reads. `block()` makes one."""

    __slots__ = ("address", "memory")

    address: int
    memory: Any  # bytes or an array


add_atoms(Block)


def _make() -> Text:
    """`make(words, kind)`: the words of a sequence as bytes, and a Block of this class with their address."""
    f = Text("make", "ptr %self, ptr %args, i64 %nargs", linkage="")
    words = f.call("PySequence_Tuple", f.load("%args"))
    f.require(f.differ(words, "null"), "failed")
    count = f.load(words, SIZE, "i64")
    memory = f.call("PyBytes_FromStringAndSize", "null", f.let(f"mul i64 {count}, 8"))
    f.require(f.differ(memory, "null"), "drop_words")
    first, items = f.place(memory, BYTES), f.place(words, TUPLE_ITEMS)
    with f.each(count) as k:
        value = f.call("PyLong_AsLongLong", f.word(items, k, "ptr"))
        f.require(f.differ(value, "-1", "i64"), "maybe")
        f.go("known")
        f.label("maybe")  # -1 is a word or an error
        f.require(f.same(f.call("PyErr_Occurred"), "null"), "drop_memory")
        f.go("known")
        f.label("known")
        f.set_word(first, k, value)
    made = f.call("PyType_GenericAlloc", f.load("%args", 8), "0")
    f.require(f.differ(made, "null"), "drop_memory")
    f.store(made, offset(Block, "memory"), memory)
    address = f.call("PyLong_FromVoidPtr", first)
    f.require(f.differ(address, "null"), "drop_made")
    f.store(made, offset(Block, "address"), address)
    f.decref(words)
    f.ret(made)
    f.label("drop_made")  # which owns the memory
    f.decref(made)
    f.go("drop_words")
    f.label("drop_memory")
    f.decref(memory)
    f.go("drop_words")
    f.label("drop_words")
    f.decref(words)
    f.go("failed")
    f.label("failed")
    f.ret("null")
    return f


@functools.cache
def _maker() -> Callable[[Sequence[int], type], Any]:
    (make,) = compile_functions([_make()], "make")
    return builtin(make, "block")


def block_of(words: Sequence[int], kind: type) -> Any:
    """A Block of a class with these int64 words. Its other slots are not set."""
    return _maker()(words, kind)


@per_plan
def block(words: Sequence[int]) -> Block:
    """Return a Block with these int64 words."""
    return _maker()(words, Block)
