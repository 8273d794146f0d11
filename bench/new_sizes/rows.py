"""The sections on new sizes: each program in fresh processes of PyTorch and weft, which take turns."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

from bench import programs
from bench.cases import Section
from bench.new_sizes.calls import AGAIN, CALLS, FIRST
from bench.new_sizes.setting import MEASURED, OTHER
from bench.rounds import FULL, MEMORY_NOISE, Effort, Failed, Row, take_turns

# A counted section would enter the mean of all rows, of which the calls would be a fifth.
make_section = partial(Section, mean=1.0, implementations=("torch", "weft"), counted=False)
CALLED = {
    FIRST: make_section("new sizes calls", "calls whose sizes are new"),
    AGAIN: make_section("new sizes again", "calls with these sizes, the second to the tenth time"),
}
WHOLE = make_section("new sizes programs", "programs whose sizes change")
MEMORY = make_section("new sizes memory", "memory that new sizes take")

# fmt: off
WHOLE_ROWS = {  # name                                                  program
    "training step, a new batch size each":                           "training",
    "token of a transformer with key-value cache":                    "generation",
    "LSTM, training with a batch of 16 sentences":                    "lstm",
    "LSTM, sentences sorted by length":                               "lstm sorted",
    "transformer encoder, training with a batch of 16 sentences":     "transformer",
    "transformer encoder, sentences sorted by length":                "transformer sorted",
    "graph network, training with one graph":                         "graphs",
    "boxes of an image, non-maximum suppression":                     "boxes",
}
# fmt: on
VARIED_ROW = "2,900 varied calls, {} kernel cache"
MEMORY_ROW = "10^6 shapes"

Numbers = dict[str, Any]  # a `Measured`, as JSON gives it


def sections(implementations: Sequence[str], effort: Effort) -> list[tuple[Section, programs.Rows]]:
    """How to measure each row, by its name."""
    names = [name for name in WHOLE.implementations if name in implementations]
    runs = cache(partial(runs_of_calls, names, effort))
    found: list[tuple[Section, programs.Rows]] = [
        (section, {name: partial(call_row, runs, section, f"{key}/{name}") for name, *_ in CALLS})
        for key, section in CALLED.items()
    ]
    whole: programs.Rows = {
        row: partial(program_row, row, program, names, effort) for row, program in WHOLE_ROWS.items()
    }
    for kernels in ("empty", "filled"):
        whole[VARIED_ROW.format(kernels)] = partial(varied_row, kernels, names, effort)
    found.append((WHOLE, whole))
    found.append((MEMORY, {MEMORY_ROW: partial(memory_row, names, effort)}))
    return found


def runs_of_calls(implementations: Sequence[str], effort: Effort) -> list[dict[str, Numbers]]:
    """All calls in one process of each implementation, and again in each round."""
    with tempfile.TemporaryDirectory() as kernels:
        fill(kernels, "calls", OTHER, implementations, effort)
        return [
            {name: attempted("calls", kernels, effort, name) for name in implementations}
            for _ in range(effort.rounds)
        ]


def attempted(program: str, kernels: str, effort: Effort, implementation: str) -> Numbers:
    """The numbers of a run, or none and the reason why."""
    try:
        return fresh(program, kernels, effort, implementation)
    except Failed as failure:
        return {"values": {}, "errors": {}, "failure": str(failure)}


def call_row(runs: Callable[[], list[dict[str, Numbers]]], section: Section, value: str) -> Row:
    """The medians of one value over the runs, which the first of these rows starts."""
    turns = {
        name: partial(next, map(partial(value_of, name=value), [run[name] for run in runs()]))
        for name in runs()[0]
    }
    return take_turns(Row(section.key, value.partition("/")[2], "s"), turns, len(runs()))


def value_of(numbers: Numbers, name: str) -> float:
    """A value of a run; Failed where there is none."""
    if name in numbers["values"]:
        return float(numbers["values"][name])
    raise Failed(numbers["errors"].get(name) or numbers["failure"])


def program_row(row: str, program: str, implementations: Sequence[str], effort: Effort) -> Row:
    """A program with new sizes, and a kernel cache that is filled by the same program with others."""
    with tempfile.TemporaryDirectory() as kernels:
        fill(kernels, program, OTHER, implementations, effort)
        turns = {name: partial(single, program, kernels, effort, name) for name in implementations}
        return take_turns(Row(WHOLE.key, row, "s"), turns, effort.fewest)


def varied_row(cache: str, implementations: Sequence[str], effort: Effort) -> Row:
    """The program of varied calls, with an empty kernel cache or with one that the same calls have filled."""
    with tempfile.TemporaryDirectory() as kernels:
        if cache == "filled":
            fill(kernels, "varied", MEASURED, implementations, effort)
        turns = {name: partial(single, "varied", kernels, effort, name) for name in implementations}
        return take_turns(Row(WHOLE.key, VARIED_ROW.format(cache), "s"), turns, effort.fewest)


def memory_row(implementations: Sequence[str], effort: Effort) -> Row:
    def growth(name: str) -> float:
        return max(single("memory", kernels, effort, name), MEMORY_NOISE)

    with tempfile.TemporaryDirectory() as kernels:
        fill(kernels, "memory", OTHER, implementations, effort)
        turns = {name: partial(growth, name) for name in implementations}
        return take_turns(Row(MEMORY.key, MEMORY_ROW, "bytes"), turns, rounds=1)


def single(program: str, kernels: str, effort: Effort, implementation: str) -> float:
    """The value of a program that has one."""
    return float(fresh(program, kernels, effort, implementation)["values"][""])


def fill(kernels: str, program: str, part: int, implementations: Sequence[str], effort: Effort) -> None:
    """Let weft fill a kernel cache, as `weft warm` does. A program that fails will fail once more when it is measured.

    A program that ends drops the kernels that wait for optimized code. The fill would leave most of them so, as it runs once.
    """
    if "weft" in implementations:
        with suppress(Failed):
            start("weft", program, part, effort, kernels, WEFT_WARM="1")


def fresh(program: str, kernels: str, effort: Effort, implementation: str) -> Numbers:
    """The numbers of a program in a fresh process, which has its own copy of the kernel cache."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kernels, folder, dirs_exist_ok=True)
        return start(implementation, program, MEASURED, effort, folder)


def start(
    implementation: str, program: str, part: int, effort: Effort, kernels: str, **environment: str
) -> Numbers:
    share = effort.seconds / FULL.seconds  # of the items of a full run
    command = [sys.executable, "-m", "bench.new_sizes", implementation, program, str(part), str(share)]
    numbers: Numbers = json.loads(programs.run(command, WEFT_CACHE_DIR=kernels, **environment))
    return numbers
