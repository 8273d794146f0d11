"""Launches that run one after the other on the sequences of a batch, such as the steps of a recurrent layer, as one launch.

Each launch computes the rows of some sequences, and reads only rows of the same sequences that launches before it made. So a thread
takes some sequences through all launches, and the threads need not wait for each other in between.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK
from .kernel import Code, Launch, Stage, block, loop_code, shared
from .structured import Body

# Of one launch.
MOST_OPERANDS = 32

# The words of meta: these, then for each stage these and for each operand these.
_META = ("steps", "stages", "first_step")
_STAGE = ("operands",)
_OPERAND = ("address", "row", "offset")
# Then for each step these, and for each of its stages these.
_STEP = ("start", "sequences", "stages")
_LAUNCH = ("loop", "meta", "row", "rows")


class Operand(NamedTuple):
    """Where an operand of a stage lies: at `start * row + offset` bytes behind an address, in the step whose rows begin at `start`."""

    address: int  # which one
    row: int = 0
    offset: int = 0


class Steps(NamedTuple):
    """Describes what runs: at each step all stages, the last ones of the last step excepted.

    A stage has a launch for each number of sequences, whose outermost dim counts the sequences, or rows of them.
    """

    sequences: Sequence[int]  # of each step: the first ones, which reach it
    starts: Sequence[int]  # of each step
    stages: Sequence[tuple[Mapping[int, Launch], Sequence[Operand]]]
    left_out: int = 0  # stages of the last step

    def one_by_one(self) -> Launch:
        """Run all steps as `entry(*addresses, meta, count)` by Python."""

        def entry(*addresses: int) -> None:
            last = len(self.sequences) - 1
            for k, (sequences, start) in enumerate(zip(self.sequences, self.starts)):
                for launches, operands in self.stages[: len(self.stages) - self.left_out * (k == last)]:
                    run, meta, count, _ = launches[sequences]
                    assert run is not None
                    run(
                        *[addresses[which] + start * row + offset for which, row, offset in operands],
                        meta,
                        count,
                    )

        return Launch(entry, 0, 0, None)

    def as_one(self, addresses: int, grain: int, work: int) -> Launch:
        """Run all steps as `entry(*addresses, meta, count)` by machine code, shared.

        addresses: their number. grain: threads get multiples of so many sequences. work: multiplications.
        """
        words = [len(self.sequences), len(self.stages), 0]
        for _, operands in self.stages:
            assert len(operands) <= MOST_OPERANDS
            words.append(len(operands))
            for which, row, offset in operands:
                words += (8 * which, row, offset)
        words[2] = 8 * len(words)
        launches = {
            count: [word for found, _ in self.stages for word in _words_of(found[count], count)]
            for count in set(self.sequences)
        }
        n_stages = len(self.stages)
        for start, count in zip(self.starts, self.sequences):
            words += (start, count, n_stages)
            words += launches[count]
        words[-1 - n_stages * len(_LAUNCH)] -= self.left_out
        meta, code = block(words), _code(addresses)
        entry = code.entry if work < SHARED_WORK else shared(code, work >= ALWAYS_SHARED_WORK, grain)
        return Launch(entry, meta.address, max(self.sequences), (meta, self.stages))


def _words_of(launch: Launch, sequences: int) -> tuple[int, ...]:
    stage = launch.keepalive
    assert type(stage) is Stage
    return stage.loop, launch.meta, stage.row, stage.length // sequences


@functools.cache
def _code(addresses: int) -> Code:
    def loop(b: Body) -> None:
        given = b.fields("%meta", _META)
        step = b.variable("ptr", b.at("%meta", given["first_step"]))
        stage = b.variable("ptr", "null")
        room = b.room(8 * (1 + MOST_OPERANDS))
        operands = b.at(room, 8)
        with b.loop(0, given["steps"]):
            own = b.fields(b.get(step, "ptr"), _STEP)
            launches = b.at(b.get(step, "ptr"), 8 * len(_STEP))
            b.set(step, "ptr", b.place(launches, (given["stages"], 8 * len(_LAUNCH))))
            b.set(stage, "ptr", b.at("%meta", 8 * len(_META)))
            end = b.minimum("%end", own["sequences"])
            with b.when(b.let(f"icmp slt i64 %begin, {end}")), b.loop(0, own["stages"]) as k:
                launch = b.fields(b.place(launches, (k, 8 * len(_LAUNCH))), _LAUNCH)
                count = b.fields(b.get(stage, "ptr"), _STAGE)["operands"]
                table = b.at(b.get(stage, "ptr"), 8 * len(_STAGE))
                b.set(stage, "ptr", b.place(table, (count, 8 * len(_OPERAND))))
                b.do(f"store i64 {launch['row']}, ptr {room}")
                with b.loop(0, count) as i:
                    operand = b.fields(b.place(table, (i, 8 * len(_OPERAND))), _OPERAND)
                    address = b.load("i64", b.at("%operands", operand["address"]))
                    offset = b.integer(
                        "add", b.integer("mul", own["start"], operand["row"]), operand["offset"]
                    )
                    target = b.place(operands, (i, 8))
                    b.do(f"store i64 {b.integer('add', address, offset)}, ptr {target}")
                code, inner = (b.pointer(launch[name]) for name in ("loop", "meta"))
                first, last = (b.integer("mul", each, launch["rows"]) for each in ("%begin", end))
                b.do(f"call void {code}(ptr {operands}, ptr {inner}, i64 {first}, i64 {last})")

    return loop_code(loop, addresses)
