"""Between the majors of sorted entries and the pointers to where the entries of each major begin, as LLVM IR."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import DType
from .kernel import Code, compile_loop
from .structured import Body, function


@functools.cache
def pointers_code(index: DType) -> Code:
    """A loop of one step: operands are pointers [size + 1] and sorted majors [entries]; meta: size, entries.

    A pointer is the number of entries before the first one whose major is not less.
    """

    def write(b: Body, pointers: str, majors: str, size: str, entries: str) -> None:
        place = b.variable("i64", "0")
        with b.loop(0, b.integer("add", size, 1)) as major:
            _advance(b, index, place, majors, entries, major)
            _store(b, index, pointers, major, b.get(place, "i64"))

    return _code(write)


@functools.cache
def majors_code(index: DType) -> Code:
    """A loop of one step: operands are majors [entries] and pointers [size + 1]; meta: size, entries.

    Pointers that do not rise, or lead beyond the entries, do no harm: no majors are written beyond the entries.
    """

    def write(b: Body, majors: str, pointers: str, size: str, entries: str) -> None:
        with b.loop(0, size) as major:
            first = b.maximum(_load(b, index, pointers, major), 0)
            stop = b.minimum(_load(b, index, pointers, b.integer("add", major, 1)), entries)
            with b.loop(first, stop) as entry:
                _store(b, index, majors, entry, major)

    return _code(write)


def _advance(b: Body, index: DType, place: str, majors: str, entries: str, major: str) -> None:
    """Move `place` to the first entry from there on whose major is not less than this one."""
    b.do("br label %scan\nscan:")
    at = b.get(place, "i64")
    b.do(f"br i1 {b.let(f'icmp slt i64 {at}, {entries}')}, label %look, label %found\nlook:")
    less = b.let(f"icmp slt i64 {_load(b, index, majors, at)}, {major}")
    b.do(f"br i1 {less}, label %step, label %found\nstep:")
    b.set(place, "i64", b.integer("add", at, 1))
    b.do("br label %scan\nfound:")


def _load(b: Body, index: DType, base: str, i: str) -> str:
    kind = f"i{8 * index.itemsize}"
    found = b.let(f"load {kind}, ptr {b.let(f'getelementptr {kind}, ptr {base}, i64 {i}')}")
    return found if kind == "i64" else b.let(f"sext {kind} {found} to i64")


def _store(b: Body, index: DType, base: str, i: str, value: str) -> None:
    kind = f"i{8 * index.itemsize}"
    value = value if kind == "i64" else b.let(f"trunc i64 {value} to {kind}")
    b.do(f"store {kind} {value}, ptr {b.let(f'getelementptr {kind}, ptr {base}, i64 {i}')}")


def _code(write: Callable) -> Code:
    def body(b: Body) -> None:
        first, second = (b.let(f"load ptr, ptr {b.at('%operands', 8 * k)}") for k in range(2))
        size, entries = (b.let(f"load i64, ptr {b.at('%meta', 8 * k)}") for k in range(2))
        with b.loop("%begin", "%end"):
            write(b, first, second, size, entries)

    declarations: set[str] = set()
    loop = function("loop", "ptr %operands, ptr %meta, i64 %begin, i64 %end", declarations, body)
    return compile_loop("\n".join([*sorted(declarations), loop]), 2, "", vectorize=False)
