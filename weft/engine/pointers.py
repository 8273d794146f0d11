"""Between the majors of sorted entries and the pointers to where the entries of each major begin, as LLVM IR."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import DType
from .kernel import Code, loop_code
from .structured import Body
from .vectors import broadcast

LANES = 8  # majors that are written at once


@functools.cache
def pointers_code(index: DType) -> Code:
    """A loop of one step: operands are pointers [size + 1], zero at first, and sorted majors [entries]; meta: size, entries.

    A pointer is the number of entries before the first one whose major is not less. Majors out of range count as the last one.
    """

    def write(b: Body, pointers: str, majors: str, size: str, entries: str) -> None:
        b.declarations.add("declare i64 @llvm.umin.i64(i64, i64)")
        last = b.integer("sub", size, 1)
        # Writing where each entry ends, though only the last one of a major counts, avoids a branch that cannot be predicted.
        with b.loop(0, entries) as entry:
            major = b.let(f"call i64 @llvm.umin.i64(i64 {_load(b, index, majors, entry)}, i64 {last})")
            _store(b, index, pointers, b.integer("add", major, 1), b.integer("add", entry, 1))
        reached = b.variable("i64", "0")
        with b.loop(1, b.integer("add", size, 1)) as major:
            b.set(reached, "i64", b.maximum(b.get(reached, "i64"), _load(b, index, pointers, major)))
            _store(b, index, pointers, major, b.get(reached, "i64"))

    return _code(write)


@functools.cache
def majors_code(index: DType) -> Code:
    """A loop of one step: operands are majors [entries] and pointers [size + 1]; meta: size, entries.

    Pointers that do not rise, or lead beyond the entries, do no harm: no majors are written beyond the entries.
    """

    def write(b: Body, majors: str, pointers: str, size: str, entries: str) -> None:
        bits = 8 * index.itemsize
        end_of_vectors = b.integer("sub", entries, LANES - 1)
        with b.loop(0, size) as major:
            first = b.maximum(_load(b, index, pointers, major), 0)
            stop = b.minimum(_load(b, index, pointers, b.integer("add", major, 1)), entries)
            value = major if bits == 64 else b.let(f"trunc i64 {major} to i{bits}")
            vector = broadcast(b, f"i{bits}", LANES, value)
            with b.loop(first, b.minimum(stop, end_of_vectors), LANES) as entry:
                # The entries behind `stop` belong to later majors, which write there later.
                place = b.let(f"getelementptr i{bits}, ptr {majors}, i64 {entry}")
                b.do(f"store <{LANES} x i{bits}> {vector}, ptr {place}, align {index.itemsize}")
            with b.loop(b.maximum(first, end_of_vectors), stop) as entry:
                _store(b, index, majors, entry, major)

    return _code(write)


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
        first, second = b.operands(2)
        size, entries = b.meta(2)
        with b.loop("%begin", "%end"):
            write(b, first, second, size, entries)

    return loop_code(body, 2, vectorize=False)
