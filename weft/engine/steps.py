"""Launches that run one after the other on the sequences of a batch, such as the steps of a recurrent layer, as one launch.

Each launch computes the rows of some sequences, and reads only rows of the same sequences that launches before it made. So a thread
takes some sequences through all launches, and the threads need not wait for each other in between.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK
from .kernel import Code, Launch, Stage, compile_loop, shared
from .structured import Body, function

# Of one launch.
MOST_OPERANDS = 32

# The words of meta: the number of launches, then for each launch these, and for each operand which address it is and an offset (bytes).
_LAUNCH = ("loop", "meta", "row", "sequences", "rows", "operands")


class Step(NamedTuple):
    """A launch of one step."""

    launch: Launch  # whose outermost dim counts the sequences, or rows of them
    sequences: int  # the first ones, which reach this step
    operands: Sequence[tuple[int, int]]  # for each operand: which address, and the offset from it (bytes)


def one_by_one(steps: Sequence[Step]) -> Launch:
    """All steps as `entry(*addresses, meta, count)`, run by Python."""

    def entry(*addresses: int) -> None:
        for (run, meta, count, _), _, operands in steps:
            assert run is not None
            run(*[addresses[which] + offset for which, offset in operands], meta, count)

    return Launch(entry, 0, 0, None)


def as_one(steps: Sequence[Step], addresses: int, grain: int, work: int) -> Launch:
    """All steps as `entry(*addresses, meta, count)`, run by machine code and shared.

    addresses: their number. grain: threads get multiples of so many sequences. work: multiplications.
    """
    words = [len(steps)]
    for launch, sequences, operands in steps:
        stage = launch.keepalive
        assert type(stage) is Stage and len(operands) <= MOST_OPERANDS
        words += [stage.loop, launch.meta, stage.row, sequences, stage.length // sequences, len(operands)]
        words += [word for which, offset in operands for word in (8 * which, offset)]
    meta = np.array(words, np.int64)
    code = _code(addresses)
    entry = code.entry if work < SHARED_WORK else shared(code, work >= ALWAYS_SHARED_WORK, grain)
    return Launch(entry, meta.ctypes.data, max(each.sequences for each in steps), (meta, steps))


@functools.cache
def _code(addresses: int) -> Code:
    declarations: set[str] = set()

    def loop(b: Body) -> None:
        count = b.let("load i64, ptr %meta")
        next_launch = b.variable("ptr", b.at("%meta", 8))
        room = b.room(8 * (1 + MOST_OPERANDS))
        given = b.at(room, 8)
        with b.loop(0, count):
            place = b.get(next_launch, "ptr")
            words = {name: b.let(f"load i64, ptr {b.at(place, 8 * k)}") for k, name in enumerate(_LAUNCH)}
            table = b.at(place, 8 * len(_LAUNCH))
            b.set(next_launch, "ptr", b.at(table, b.integer("mul", words["operands"], 16)))
            end = b.minimum("%end", words["sequences"])
            with b.when(b.let(f"icmp slt i64 %begin, {end}")):
                b.do(f"store i64 {words['row']}, ptr {room}")
                with b.loop(0, words["operands"]) as k:
                    source = b.at(table, b.integer("mul", k, 16))
                    address = b.let(f"load i64, ptr {b.at('%operands', b.let(f'load i64, ptr {source}'))}")
                    offset = b.let(f"load i64, ptr {b.at(source, 8)}")
                    target = b.at(given, b.integer("mul", k, 8))
                    b.do(f"store i64 {b.integer('add', address, offset)}, ptr {target}")
                own, inner = (b.let(f"inttoptr i64 {words[name]} to ptr") for name in ("loop", "meta"))
                first, last = (b.integer("mul", each, words["rows"]) for each in ("%begin", end))
                b.do(f"call void {own}(ptr {given}, ptr {inner}, i64 {first}, i64 {last})")

    text = function("loop", "ptr %operands, ptr %meta, i64 %begin, i64 %end", declarations, loop)
    return compile_loop("\n".join([*sorted(declarations), text]), addresses, "")
