"""Wrong arguments for every operation: `python tests/hunts/arguments.py --help`.

A right call of each operation is taken from PyTorch's operator database and from `wrong_calls/more.py`; one or two of its
arguments are replaced: integers by floats, None, negative and huge numbers, tensors by ones without dimensions, without
elements, of other sizes, dtypes and strides, indices by ones out of range. PyTorch and weft carry out the call in
processes of their own. weft must raise PyTorch's kind of exception or give PyTorch's answer, and must neither crash nor
hang nor raise an exception that no check has raised. `--fence` runs weft with memory whose ends cannot be crossed.
"""

from __future__ import annotations

import argparse
import collections
import os
import pickle
import random
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from wrong_calls.calls import Call, Outcome  # noqa: E402
from wrong_calls.mutation import mutant  # noqa: E402
from wrong_calls.verdict import Finding, judge  # noqa: E402

CALL_SECONDS = 20.0  # a call that takes longer hangs
START_SECONDS = 300.0  # for the imports of a worker, on a busy machine


class Worker:
    """A process that runs one library; it is started again when it dies."""

    def __init__(self, library: str, environment: dict[str, str] | None = None):
        self.library = library
        self.environment = environment or {}
        self.process: subprocess.Popen | None = None
        self.starts = 0

    def ask(self, request) -> object:
        """The answer to a request; for a call that kills or blocks the process, an Outcome that says so."""
        fresh = self.process is None
        process = self.process or self._start()
        try:
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(request))
            process.stdin.flush()
            return self._answer(
                process, START_SECONDS if fresh or isinstance(request, tuple) else CALL_SECONDS
            )
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = process.wait()
            self.process = None
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Outcome("crashed", message=name)
        except TimeoutError:
            self.close()
            return Outcome("hung", message=f"no answer after {CALL_SECONDS} s")

    def _answer(self, process: subprocess.Popen, seconds: float) -> object:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise TimeoutError
        return pickle.load(process.stdout)

    def _start(self) -> subprocess.Popen:
        self.starts += 1
        paths = [str(HERE.parents[1]), str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, **self.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wrong_calls.worker", self.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        return self.process

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Tally:
    """What a hunt has done so far."""

    def __init__(self) -> None:
        self.mutants = self.same_error = self.same_value = self.accepted = self.torch_failed = 0
        self.findings: list[Finding] = []

    def note(self, call: Call, wanted: Outcome, got: Outcome) -> Finding | None:
        self.mutants += 1
        finding = judge(call, wanted, got)
        if finding is not None:
            self.findings.append(finding)
        elif wanted.kind in ("crashed", "hung"):
            self.torch_failed += 1
        elif wanted.kind == got.kind == "value":
            self.same_value += 1
        elif wanted.kind != "value" and got.kind != "value":
            self.same_error += 1
        else:
            self.accepted += 1
        return finding

    def __str__(self) -> str:
        kinds = collections.Counter(each.kind for each in self.findings)
        found = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "nothing"
        return (
            f"{self.mutants} mutants: {self.same_error} same exception, {self.same_value} same value, "
            f"{self.accepted} accepted, {self.torch_failed} on which PyTorch crashed or hung; found: {found}"
        )


def hunt(options: argparse.Namespace, tally: Tally) -> None:
    """Run mutants until there were enough, or time is up."""
    torch = Worker("torch")
    weft = Worker("weft", {"WEFT_FENCE": options.fence} if options.fence else None)
    try:
        names = torch.ask(("names",))
        assert isinstance(names, list), names
        for name, seed in _rounds(names, options):
            for call in _calls(torch, name, seed, options):
                answers = _both(torch, weft, call)
                finding = tally.note(call, *answers)
                if finding is not None:
                    print(
                        f"{finding.kind} [{name} seed {seed}] {call.change}\n    {call}\n    {finding.text}",
                        flush=True,
                    )
                if options.out:
                    _log(options.out, name, seed, call, answers, finding)
                if tally.mutants >= options.mutants:
                    return
    finally:
        torch.close()
        weft.close()


def _rounds(names: list[str], options: argparse.Namespace):
    """(name, seed) of what comes next; each round has every name once."""
    chosen = [
        each for each in names if not options.only or any(part in each for part in options.only.split(","))
    ]
    deadline = time.monotonic() + options.seconds
    for turn in range(10**6):
        seed = options.seed + turn
        for name in random.Random(seed).sample(chosen, len(chosen)):
            if time.monotonic() > deadline:
                return
            yield name, seed


def _calls(torch: Worker, name: str, seed: int, options: argparse.Namespace):
    """Mutants of right calls that PyTorch carries out."""
    calls = torch.ask(("calls_of", name, seed, options.samples))
    source = random.Random(f"{name} {seed}")
    for call in calls if isinstance(calls, list) else ():
        for _ in range(options.changes):
            found = mutant(call, source)
            if found is not None:
                yield found


def _both(torch: Worker, weft: Worker, call: Call) -> tuple[Outcome, Outcome]:
    answers: dict[str, object] = {}
    thread = threading.Thread(target=lambda: answers.update(torch=torch.ask(call)))
    thread.start()
    answers["weft"] = weft.ask(call)
    thread.join()
    return answers["torch"], answers["weft"]  # type: ignore[return-value]


def _log(path: str, name: str, seed: int, call: Call, answers: tuple, finding: Finding | None) -> None:
    if finding is not None:
        with open(path, "ab") as file:
            pickle.dump((finding.kind, name, seed, call, *answers, finding.text), file)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=10**9, help="how many calls to run")
    parser.add_argument("--seconds", type=float, default=1e9, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--samples", type=int, default=3, help="right calls of each name in a round")
    parser.add_argument("--changes", type=int, default=3, help="mutants of each right call in a round")
    parser.add_argument("--fence", choices=("after", "before"), help="which end of weft's blocks is guarded")
    parser.add_argument("--only", help="parts of names, with commas between them")
    parser.add_argument("--out", help="a file to which findings are added as pickles")
    return parser.parse_args(arguments)


def main() -> None:
    options = parsed()
    tally = Tally()
    try:
        hunt(options, tally)
    except KeyboardInterrupt:
        pass
    print(tally)
    sys.exit(bool(tally.findings))


if __name__ == "__main__":
    main()
