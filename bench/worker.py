"""The other end of the pipe: a process with one implementation in it, which measures when it is told to.

`python -m bench.worker torch` reads one request per line and answers each with one line, both JSON:

    {"prepare": <case>, "seconds": s}     -> {"runs": r}         how many runs of the statement take s seconds
    {"time": r}                           -> {"value": seconds per run}
    {"memory": <case>}                    -> {"value": bytes}    in a fresh worker

or {"error": text}. Between requests it blocks in a read.
"""

import ast
import ctypes
import gc
import importlib
import json
import os
import resource
import sys
import timeit
from pathlib import Path
from typing import Any

SMALL_SIZE = 16


class Prepared:
    """A case, set up and ready to run."""

    def __init__(self, implementation: str, case: dict[str, Any]) -> None:
        self.names = namespace(implementation)
        self.names["n"] = case["n"]
        exec(case["setup"], self.names)
        self.names["look"](None)
        stmt = case["numpy"] if implementation == "numpy" else case["stmt"]
        if implementation == "weft" and case["deferrable"]:
            stmt = looked_at(stmt)
        self.timer = timeit.Timer(stmt, globals=self.names)

    def runs_in(self, seconds: float) -> int:
        """How many runs fill `seconds`; the first ones, which compile and load, do not count."""
        self.timer.timeit(2)
        runs = 1
        while (taken := self.timer.timeit(runs)) < seconds / 4:
            runs *= 4
        return max(1, round(runs * seconds / taken))

    def time(self, runs: int) -> float:
        # The others have had the caches meanwhile, and this one's threads have gone to sleep.
        self.timer.timeit(max(1, runs // 10))
        return self.timer.timeit(runs) / runs


def namespace(implementation: str) -> dict[str, Any]:
    """What the code of a case sees."""
    if implementation == "numpy":
        import ml_dtypes
        import numpy as np
        from scipy import special

        random = np.random.default_rng(0)
        return {
            "np": np,
            "special": special,
            "bfloat16": ml_dtypes.bfloat16,
            "rand": lambda *shape: random.random(shape, dtype=np.float32),
            "look": lambda value: None,
        }
    torch = importlib.import_module(implementation)
    torch.manual_seed(0)
    # PyTorch's CPU operations are done when they return; weft's may be promises.
    look = (lambda value: torch.synchronize()) if implementation == "weft" else (lambda value: None)
    return {"torch": torch, "rand": torch.rand, "look": look}


def looked_at(stmt: str) -> str:
    """The statement, with the value of the expression it ends with handed to `look` while it is still held."""
    tree = ast.parse(stmt)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr), f"this case does not end with an expression: {stmt}"
    last.value = ast.Call(ast.Name("look", ast.Load()), [last.value], [])
    return ast.unparse(ast.fix_missing_locations(tree))


def peak_growth(implementation: str, case: dict[str, Any]) -> int:
    """By how many bytes one run of the statement raises this process's peak of resident memory."""
    # A small run first: code that is loaded or compiled for any size is not the statement's memory.
    Prepared(implementation, {**case, "n": SMALL_SIZE}).timer.timeit(1)
    prepared = Prepared(implementation, case)
    gc.collect()
    give_back(implementation)
    reset_peak()
    before = peak()
    prepared.timer.timeit(1)
    return peak() - before


def give_back(implementation: str) -> None:
    """Let the system have what was freed and is kept for later, or what the small run needed would not count."""
    if implementation == "weft":
        importlib.import_module("weft.engine.memory").release_cached(0)
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> None:
    """Let the peak start from now; without /proc it stays where the setup took it."""
    if os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The highest resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, which has no /proc


def main(implementation: str) -> None:
    # Only answers go down the pipe: whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepared: Prepared | None = None
    answer: dict[str, Any]
    for line in sys.stdin:
        try:
            match json.loads(line):
                case {"prepare": case, "seconds": seconds}:
                    prepared = None  # frees the arrays of the case before
                    prepared = Prepared(implementation, case)
                    answer = {"runs": prepared.runs_in(seconds)}
                case {"time": runs} if prepared is not None:
                    answer = {"value": prepared.time(runs)}
                case {"memory": case}:
                    answer = {"value": peak_growth(implementation, case)}
                case request:
                    answer = {"error": f"this is no request: {request}"}
        except Exception as error:  # a case that fails is a cell of the table, not the end of the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
