"""The other end of the pipe: a process with one implementation in it, which measures when it is told to.

Implementations are torch, weft, numpy, jax, compiled (torch with torch.compile) and limit (`limit.py`).
`python -m bench.worker torch` reads one request per line and answers each with one line, both JSON:

    {"prepare": <case>, "seconds": s}     -> {"runs": r, "turn": t}  runs that take s seconds, and what they may take
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
import time
import timeit
from pathlib import Path
from typing import Any

from bench.limit import Limit

SMALL_SIZE = 16
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # parameters of mallopt, from glibc's malloc.h
WARM_UP = 0.1  # seconds at least: weft may compile kernels of deferred work on another thread meanwhile
ARRAYS = ("numpy", "jax")  # these run the NumPy statement of a case


class Prepared:
    """A case, set up and ready to run."""

    def __init__(self, implementation: str, case: dict[str, Any]) -> None:
        self.names = namespace(implementation)
        self.warm_up = WARM_UP if implementation == "weft" else 0.0
        self.names["n"] = case["n"]
        exec(case["setup"], self.names)
        stmt = case["numpy"] if implementation in ARRAYS else case["stmt"]
        match implementation:
            case "weft" if case["deferrable"]:
                self.names["look"](None)
                stmt = looked_at(stmt)
            case "compiled":
                self._compile(case["compiled"])
            case "jax":
                stmt = self._jit(stmt)
        self.timer = timeit.Timer(stmt, globals=self.names)

    def _compile(self, name: str) -> None:
        """Replace a function or a module of the setup by PyTorch's compiled one."""
        torch = self.names["torch"]
        torch.compiler.reset()
        self.names[name] = torch.compile(self.names[name], dynamic=False)

    def _jit(self, stmt: str) -> str:
        """The statement as a function of the arrays that it names: those that it closed over would be constants."""
        import jax

        arrays = [
            name for name in compile(stmt, "", "eval").co_names if isinstance(self.names.get(name), jax.Array)
        ]
        self.names["jitted"] = jax.jit(eval(f"lambda {', '.join(arrays)}: {stmt}", self.names))
        self.names["wait"] = jax.block_until_ready
        return f"wait(jitted({', '.join(arrays)}))"

    def runs_in(self, seconds: float) -> int:
        """How many runs fill `seconds`; the first ones, which compile and load, do not count."""
        start, runs = time.perf_counter(), 0
        while runs < 2 or time.perf_counter() - start < self.warm_up:
            self.timer.timeit(1)
            runs += 1
        runs = 1
        while (taken := self.timer.timeit(runs)) < seconds / 4:
            runs *= 4
        return max(1, round(runs * seconds / taken))

    def time(self, runs: int) -> float:
        # The others have had the caches meanwhile, and this one's threads have gone to sleep.
        if runs > 1:
            self.timer.timeit(max(1, runs // 10))
        return self.timer.timeit(runs) / runs


def namespace(implementation: str) -> dict[str, Any]:
    """What the code of a case sees."""
    if implementation in ARRAYS:
        return array_namespace(implementation)
    torch = importlib.import_module("weft" if implementation == "weft" else "torch")
    torch.manual_seed(0)
    names = {
        "torch": torch,
        "rand": torch.rand,
        "integers": lambda high, *shape: torch.randint(0, high, shape),
    }
    if implementation == "weft":
        # PyTorch's CPU operations are done when they return; weft's may be promises.
        names["look"] = lambda value: torch.synchronize()
    return names


def array_namespace(implementation: str) -> dict[str, Any]:
    """What a NumPy statement sees, with NumPy's functions or with JAX's of the same names."""
    import numpy as np

    random = np.random.default_rng(0)
    if implementation == "jax":
        import jax.numpy as module
        from jax.scipy import special

        place = module.asarray
    else:
        from scipy import special

        module, place = np, np.asarray
    return {
        "np": module,
        "special": special,
        "rand": lambda *shape: place(random.random(shape, dtype=np.float32)),
        "integers": lambda high, *shape: place(random.integers(0, high, shape)),
    }


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


def keep_freed_memory() -> None:
    """Let the C library keep freed blocks, as weft does.

    By default it gives large ones back to the system, or not, depending on what the process freed before, and then
    each run pays for fresh pages.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda parameter, value: None)  # musl has none
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)


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
    prepared: Prepared | Limit | None = None
    answer: dict[str, Any]
    for line in sys.stdin:
        try:
            match json.loads(line):
                case {"prepare": case, "seconds": seconds}:
                    keep_freed_memory()
                    prepared = None  # frees the arrays of the case before
                    prepared = (
                        Limit(*case["traffic"])
                        if implementation == "limit"
                        else Prepared(implementation, case)
                    )
                    runs = prepared.runs_in(seconds)
                    answer = {"runs": runs, "turn": prepared.time(1) * runs}
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
