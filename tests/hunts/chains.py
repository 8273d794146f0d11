"""Random programs of 3 to 8 statements, run on weft and on PyTorch, and compared after each statement.

    python tests/hunts/chains.py --programs 20000 --workers 2
    python tests/hunts/chains.py --seed 123456        (one program, with its statements)

Program k of a run is made from seed k alone. Compared: values, dtypes, shapes, strides, storage offsets, aliasing,
versions, whether autograd follows a tensor, the types of exceptions, and gradients at the end. A failing program is
shrunk to the fewest statements and printed as a script that runs. `chain_accepted.py` lists the differences that are
accepted. The workers are processes: a crash or a hang is reported with the seed of its program.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":  # run as a script: the modules beside this one are found from the folder above
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from hunts.chain_accepted import accepted
from hunts.chain_comparison import difference, settle_order
from hunts.chain_statements import (
    DTYPES,
    LIBRARIES,
    SHAPES,
    Draw,
    Literal,
    Row,
    choose,
    dtype,
    literal,
    refs,
    resolved,
)

import weft

# ---- Programs --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Statement:
    row: Row
    arguments: list
    results: list[int] = field(default_factory=list)  # the numbers of the tensors that it makes
    no_grad: bool = False


@dataclass(slots=True)
class Program:
    inputs: dict[int, tuple[Literal, bool]] = field(
        default_factory=dict
    )  # by number; whether it requires grad
    statements: list[Statement] = field(default_factory=list)
    backward: bool = False


@dataclass(slots=True)
class Difference:
    kind: str  # what differs: "values", "strides", "raises", "gradient: values", ...
    text: str
    program: Program
    statement: Statement | None = None  # None: backward
    arguments: Sequence[Any] = ()  # PyTorch's
    theirs: Any = None  # the result, or the exception
    mine: Any = None

    @property
    def source(self) -> str:
        return "backward" if self.statement is None else self.statement.row.source

    @property
    def signature(self) -> tuple:
        """Programs with the same signature show the same defect, as a rule."""
        types = tuple(
            str(each.dtype).removeprefix("torch.")
            for each in self.arguments
            if isinstance(each, torch.Tensor)
        )
        errors = tuple(
            type(each).__name__ for each in (self.theirs, self.mine) if isinstance(each, Exception)
        )
        return self.kind, self.source, types[:2] if self.kind == "values" else (), errors


class Run:
    """One program in both libraries at once; as it is being made up, or again."""

    def __init__(self, program: Program):
        self.program = program
        self.tensors: dict[int, tuple] = {}  # number -> (PyTorch's, weft's)
        self.next = 0
        self.over = False  # nothing can be compared from here on
        self.storages: dict[int, int] = {}  # PyTorch's -> weft's
        self.versions: dict[int, tuple[int, int]] = {}  # number -> (PyTorch's, weft's)
        for number, (values, graded) in program.inputs.items():
            self.make_input(number, values, graded)

    def make_input(self, number: int, values: Literal, graded: bool) -> None:
        pair = tuple(each.clone() for each in values.both)
        if graded:
            for each in pair:
                each.requires_grad_()
        self._keep(number, *pair)

    def _keep(self, number: int, theirs: Any, mine: Any) -> str | None:
        """Name a pair of results. Says so if they do not share memory with the same tensors."""
        self.tensors[number] = (theirs, mine)
        self.versions[number] = theirs._version, mine._version
        self.next = max(self.next, number + 1)
        one, other = theirs.untyped_storage()._cdata, id(mine._storage)
        known = self.storages.setdefault(one, other)
        if known != other or len(set(self.storages.values())) != len(self.storages):
            return f"{_sharing(self, number, 1)} instead of {_sharing(self, number, 0)}"
        return None

    def step(self, statement: Statement) -> Difference | None:
        """Run a statement in both libraries and compare what it did."""
        try:
            theirs, mine = ([resolved(each, k, self.tensors) for each in statement.arguments] for k in (0, 1))
        except KeyError:  # a tensor that a failing statement did not make
            return None
        results = [_outcome(library, statement, given) for library, given in zip(LIBRARIES, (theirs, mine))]
        found = self._compare(statement, theirs, *results)
        if found is None:
            return None
        return Difference(*found, self.program, statement, theirs, *results)

    def _compare(self, statement: Statement, given: list, theirs: Any, mine: Any) -> tuple[str, str] | None:
        failed = isinstance(theirs, Exception), isinstance(mine, Exception)
        if any(failed):
            if all(failed) and isinstance(mine, type(theirs)):
                self.over = statement.row.writes  # either library may have written a part before it raised
                return None
            return "raises", f"{_said(mine)} instead of {_said(theirs)}"
        found = self._compare_results(statement, given, theirs, mine)
        if found is None and statement.row.writes:
            found = self._compare_all()
        return found

    def _compare_all(self) -> tuple[str, str] | None:
        for number, pair in self.tensors.items():
            found = difference(*pair) or self._compare_versions(number, *pair)
            if found is not None:
                return found[0], f"t{number}: {found[1]}"
        return None

    def _compare_versions(self, number: int, theirs: Any, mine: Any) -> tuple[str, str] | None:
        """Whether both libraries count a write; by how much is no matter."""
        before, now = self.versions[number], (theirs._version, mine._version)
        self.versions[number] = now
        if (before[0] != now[0]) is (before[1] != now[1]) or not theirs.numel():
            return None
        return "version", f"{before[1]} -> {now[1]} instead of {before[0]} -> {now[0]}"

    def _compare_results(
        self, statement: Statement, given: list, theirs: Any, mine: Any
    ) -> tuple[str, str] | None:
        if isinstance(theirs, torch.Tensor):
            pairs = [(theirs, mine)]
        elif isinstance(theirs, (tuple, list)) and theirs and isinstance(theirs[0], torch.Tensor):
            if not isinstance(mine, (tuple, list)) or len(mine) != len(theirs):
                return "result", f"{_said(mine)} instead of {_said(theirs)}"
            pairs = list(zip(theirs, mine))
        elif _plain_same(theirs, mine):
            return None
        else:
            return "result", f"{_said(mine)} instead of {_said(theirs)}"
        if statement.row.source.startswith("a.sort(") and len(pairs) == 2:
            arguments = dict(zip(statement.row.letters, given))
            settle_order(arguments["a"], arguments.get("d", -1), theirs, mine)
        fresh = not statement.results
        # What is written to out= was rounded to the dtype that the arguments have in common: float32 for integers. Composed
        # functions round to the dtype of an argument on the way.
        dtypes = [each.dtype for each in given if isinstance(each, torch.Tensor)]
        source = statement.row.source
        composed = "nn.functional" in source or "ldexp" in source
        computed_in = [torch.float32, *dtypes] if "out=" in source else dtypes if composed else ()
        for place, (one, other) in enumerate(pairs):
            if not isinstance(other, weft.Tensor):
                return "result", f"{_said(other)} instead of a tensor"
            found = difference(one, other, computed_in)
            if found is not None:
                return found
            known = [number for number, pair in self.tensors.items() if pair[0] is one]
            if known:
                if self.tensors[known[0]][1] is not other and one.numel():
                    return "identity", f"another object than t{known[0]}"
                number = known[0]
            else:
                number = self.next if fresh else statement.results[place]
                sharing = self._keep(number, one, other)
                if sharing is not None:
                    return "aliasing", sharing
            if fresh:
                statement.results.append(number)
        return None

    def backward(self) -> Difference | None:
        """Backward from the latest tensors; compare gradients."""
        roots = [
            pair for pair in self.tensors.values()
            if pair[0].requires_grad and pair[0].dtype.is_floating_point and not pair[0].is_leaf
        ][-3:]  # fmt: skip
        if not roots:
            return None
        results = [_backward(library, [pair[k] for pair in roots]) for k, library in enumerate(LIBRARIES)]
        found = self._compare_gradients(*results)
        if found is None:
            return None
        kind, text, *values = found
        return Difference(kind, text, self.program, None, [pair[0] for pair in roots], *(values or results))

    def _compare_gradients(self, theirs: Any, mine: Any) -> tuple | None:
        """(what differs, how, and the two gradients if it is their values)."""
        if theirs is not None or mine is not None:
            if theirs is not None and mine is not None and isinstance(mine, type(theirs)):
                return None
            return "gradient: raises", f"{_said(mine)} instead of {_said(theirs)}"
        for number, (one, other) in self.tensors.items():
            if not one.is_leaf or not one.requires_grad:
                continue
            expected, got = one.grad, other.grad
            if expected is None or got is None:
                if expected is not got:
                    return "gradient: none", f"t{number}.grad: {_said(got)} instead of {_said(expected)}"
                continue
            found = difference(expected, got, self._dtypes())
            if found is not None and found[0] != "offset":
                return f"gradient: {found[0]}", f"t{number}.grad: {found[1]}", expected, got
        return None

    def _dtypes(self) -> list:
        """The dtypes whose precision gradients may have: a step back may round to that of any tensor on its way."""
        given = [each for statement in self.program.statements for each in statement.arguments]
        literals = [each.both[0] for each in given if isinstance(each, Literal)]
        tensors = [pair[0] for pair in self.tensors.values()]
        return [each.dtype for each in (*literals, *tensors) if isinstance(each, torch.Tensor)]


def _outcome(library: Any, statement: Statement, arguments: list) -> Any:
    try:
        if statement.no_grad:
            with library.no_grad():
                return statement.row.run(library, *arguments)
        return statement.row.run(library, *arguments)
    except Exception as error:
        return error


def _backward(library: Any, roots: list) -> Exception | None:
    try:
        library.autograd.backward(roots, [_cotangent(library, root) for root in roots])
    except Exception as error:
        return error
    return None


def _cotangent(library: Any, root: Any) -> Any:
    """1, 2, 3, 1, 2, ... in the shape of a tensor."""
    values = np.arange(root.numel()) % 3 + 1.0
    return library.from_numpy(values).to(root.dtype).reshape(root.shape)


def _plain_same(theirs: Any, mine: Any) -> bool:
    """Whether results that are no tensors agree."""
    if isinstance(theirs, (list, tuple)):
        return (
            isinstance(mine, (list, tuple))
            and len(mine) == len(theirs)
            and all(map(_plain_same, theirs, mine))
        )
    if isinstance(theirs, (float, complex)):
        # As NumPy numbers: abs() of a Python complex with NaN can raise OverflowError, because
        # CPython then looks at an errno that an earlier call has left.
        return type(mine) is type(theirs) and bool(
            np.isclose(np.asarray(mine), np.asarray(theirs), rtol=1e-4, atol=1e-6, equal_nan=True)
        )
    return type(mine) is type(theirs) and mine == theirs


def _said(value: Any) -> str:
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {str(value).splitlines()[0] if str(value) else ''}"
    if value is None:
        return "None"
    return " ".join(repr(value).split())


def _sharing(run: Run, number: int, library: int) -> str:
    def storage(tensor: Any) -> int:
        return tensor._storage.ptr if library else tensor.untyped_storage().data_ptr()

    own = storage(run.tensors[number][library])
    shared = [f"t{k}" for k, pair in run.tensors.items() if k != number and storage(pair[library]) == own]
    return f"shares memory with {', '.join(shared) or 'none'}"


# ---- Making them up --------------------------------------------------------------------------------------------------


def generate(seed: int, narrow: bool = False) -> tuple[Difference | None, Program]:
    """Make up the program of a seed while running it, until something differs; `narrow`: of few dtypes."""
    rng = Random(seed)
    graded = rng.random() < 0.5
    program = Program(backward=graded)
    run = Run(program)
    for number in range(rng.choice((1, 2, 2, 3))):
        name = dtype(rng, narrow)
        if graded and not DTYPES[name].both[0].is_floating_point and rng.random() < 0.8:
            name = "float64"
        values = literal(rng, rng.choice(SHAPES), name)
        wanted = graded and values.both[0].dtype.is_floating_point and rng.random() < 0.8
        program.inputs[number] = values, wanted
        run.make_input(number, values, wanted)
    for _ in range(rng.randint(3, 8)):
        row = choose(rng)
        statement = Statement(
            row, Draw(rng, run.tensors, narrow)(row.letters), no_grad=graded and rng.random() < 0.04
        )
        program.statements.append(statement)
        found = run.step(statement)
        if found is not None or run.over:
            return found, program
    return (run.backward() if graded else None), program


# ---- Shrinking and printing ------------------------------------------------------------------------------------------


def rerun(program: Program) -> Difference | None:
    """The first difference of a program that was made up before."""
    run = Run(program)
    for statement in program.statements:
        found = run.step(statement)
        if found is not None or run.over:
            return found
    return run.backward() if program.backward else None


def shrink(found: Difference) -> Difference:
    """A program that differs in the same way with as few statements and inputs as possible."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _without_one(found.program):
            again = rerun(candidate)
            if again is not None and again.signature == found.signature:
                found, smaller = again, True
                break
    return found


def _without_one(program: Program):
    """The program without each of its statements and what depends on it, or without gradients."""
    for gone in reversed(range(len(program.statements))):
        yield _without(program, {gone}, set())
    for number in program.inputs:
        yield _without(program, set(), {number})
    if any(graded for _, graded in program.inputs.values()):
        for number, (values, graded) in program.inputs.items():
            if graded:
                yield Program(
                    {**program.inputs, number: (values, False)}, _copies(program.statements), program.backward
                )
    if program.backward:
        yield Program(program.inputs, _copies(program.statements), False)


def _copies(statements: Sequence[Statement]) -> list[Statement]:
    return [Statement(each.row, each.arguments, list(each.results), each.no_grad) for each in statements]


def _without(program: Program, gone: set[int], missing: set[int]) -> Program:
    kept = []
    for position, statement in enumerate(program.statements):
        if position in gone or refs(statement.arguments) & missing:
            missing = missing | set(statement.results)
        else:
            missing = missing - set(statement.results)
            kept.append(statement)
    inputs = {number: each for number, each in program.inputs.items() if number not in missing}
    return Program(inputs, _copies(kept), program.backward)


def script(program: Program) -> str:
    """The program as one that runs, with either library."""
    lines = ["import weft as L  # or: import torch as L", ""]
    for number, (values, graded) in program.inputs.items():
        lines.append(f"t{number} = {values.source()}{'.requires_grad_()' if graded else ''}")
    for statement in program.statements:
        text = statement.row.written(statement.arguments)
        if statement.row.category != "write" and statement.results:
            names = ", ".join(f"t{number}" for number in statement.results)
            text = (
                f"{names}{',' if len(statement.results) > 1 else ''} = {text}"
                if len(statement.results) > 1
                else f"{names} = {text}"
            )
        lines += ["with L.no_grad():", f"    {text}"] if statement.no_grad else [text]
    if program.backward:
        lines.append(
            "# then backward from the last three results that require grad, with cotangents 1, 2, 3, 1, ..."
        )
    return "\n".join(lines)


def report(seed: int, found: Difference) -> str:
    where = "backward" if found.statement is None else found.statement.row.written(found.statement.arguments)
    return f"--- seed {seed}: {found.kind}\n{where}\n{found.text}\n\n{script(found.program)}\n"


# ---- Workers ---------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What a range of seeds came to."""

    programs: int = 0
    statements: int = 0
    accepted: Counter = field(default_factory=Counter)
    failures: dict[tuple, tuple[int, str, int]] = field(
        default_factory=dict
    )  # signature -> (seed, report, count)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.statements += other.statements
        self.accepted += other.accepted
        for signature, (seed, text, count) in other.failures.items():
            first = self.failures.get(signature)
            self.failures[signature] = (
                (seed, text, count) if first is None else (*first[:2], first[2] + count)
            )


def hunt(seeds: range, narrow: bool = False, at: Any = None) -> Tally:
    """Run the programs of these seeds; `at.value` follows the seed."""
    tally = Tally()
    for seed in seeds:
        if at is not None:
            at.value = seed
        found, program = generate(seed, narrow)
        tally.programs += 1
        tally.statements += len(program.statements)
        if found is None:
            continue
        reason = accepted(found)
        if reason is not None:
            tally.accepted[reason] += 1
            continue
        signature = found.signature
        known = tally.failures.get(signature)
        if known is None:
            tally.failures[signature] = seed, report(seed, shrink(found)), 1
        else:
            tally.failures[signature] = (*known[:2], known[2] + 1)
    return tally


def prepare() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    gc.freeze()  # collections look through what programs make, not through PyTorch: 3.6 instead of 6.3 ms a program (AMD Zen 4)


def _work(tasks: Any, results: Any, at: Any, narrow: bool) -> None:
    prepare()
    for seeds in iter(tasks.get, None):
        results.put((seeds, hunt(seeds, narrow, at)))


class Worker:
    """A process that takes ranges of seeds."""

    def __init__(self, context: Any, results: Any, narrow: bool):
        self.context, self.results, self.narrow = context, results, narrow
        self.at = context.Value(ctypes.c_int64, -1, lock=False)
        self.seeds: range | None = None
        self._start()

    def _start(self) -> None:
        self.tasks = self.context.SimpleQueue()
        self.process = self.context.Process(
            target=_work, args=(self.tasks, self.results, self.at, self.narrow), daemon=True
        )
        self.process.start()

    def give(self, seeds: range) -> None:
        self.seeds, self.at.value, self.since, self.seen = seeds, -1, time.monotonic(), -1
        self.tasks.put(seeds)

    def trouble(self, limit: float) -> str | None:
        """Whether the process died, or has been at one program for more than `limit` seconds."""
        if self.at.value != self.seen:
            self.seen, self.since = self.at.value, time.monotonic()
        if not self.process.is_alive():
            return f"the process died (exit code {self.process.exitcode})"
        if self.seeds is not None and time.monotonic() - self.since > limit:
            self.process.kill()
            return f"no end after {limit:.0f} s"
        return None

    def restart(self) -> range:
        """A new process. Returns the seeds of the range that are left after the one it died at."""
        self.process.join()
        seeds, reached = self.seeds, self.at.value
        assert seeds is not None
        if reached < 0:
            raise RuntimeError(f"a worker died before its first program (exit code {self.process.exitcode})")
        self._start()
        return range(max(reached, seeds.start) + 1, seeds.stop)


def run_all(
    seeds: range, workers: int, narrow: bool = False, limit: float = 120.0, every: float = 60.0
) -> Tally:
    """Share a range of seeds among processes. A crash or a hang is a failure, and its worker goes on behind it."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    waiting = [range(k, min(k + 500, seeds.stop)) for k in range(seeds.start, seeds.stop, 500)][::-1]
    pool = [Worker(context, results, narrow) for _ in range(min(workers, len(waiting)))]
    tally, started, told = Tally(), time.monotonic(), time.monotonic()
    for worker in pool:
        worker.give(waiting.pop())
    while any(worker.seeds is not None for worker in pool):
        try:
            done, part = results.get(timeout=1.0)
        except Exception:  # queue.Empty
            done = None
        for worker in pool:
            if done is not None and worker.seeds == done:
                tally.add(part)
                worker.seeds = None
            elif worker.seeds is not None and (what := worker.trouble(limit)) is not None:
                seed = worker.at.value
                tally.failures["crash", seed] = seed, f"--- seed {seed}: {what}\n", 1
                waiting.append(worker.restart())
                worker.seeds = None
            if worker.seeds is None and waiting:
                worker.give(waiting.pop())
        if time.monotonic() - told > every:
            told = time.monotonic()
            print(summary(tally, told - started), flush=True)
    for worker in pool:
        worker.tasks.put(None)
        worker.process.join()
    return tally


def summary(tally: Tally, seconds: float) -> str:
    speed = tally.programs / max(seconds, 1e-9)
    return (
        f"{tally.programs} programs, {tally.statements} statements, {seconds:.0f} s, {speed:.0f} programs per second; "
        f"{len(tally.failures)} kinds of differences in {sum(count for _, _, count in tally.failures.values())} programs, "
        f"{sum(tally.accepted.values())} accepted"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--narrow", action="store_true", help="few dtypes, and so few kernels to compile")
    parser.add_argument("--seed", type=int, help="run one program and print it")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds until a program counts as hung")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        prepare()
        found, program = generate(options.seed, options.narrow)
        print(script(program))
        if found is not None:
            print(f"\naccepted: {accepted(found)}\n{report(options.seed, shrink(found))}")
        return int(found is not None and accepted(found) is None)
    started = time.monotonic()
    tally = run_all(
        range(options.start, options.start + options.programs), options.workers, options.narrow, options.limit
    )
    for _, text, count in sorted(tally.failures.values(), key=lambda each: -each[2]):
        print(f"{text}({count} programs)\n")
    for reason, count in tally.accepted.most_common():
        print(f"{count:7}  {reason}")
    print(summary(tally, time.monotonic() - started))
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
