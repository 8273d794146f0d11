"""Measuring whole programs: the first use of operations, importing, running examples, and what an installation takes."""

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from bench.cases import Section
from bench.first_use import OPERATIONS
from bench.rounds import ROOT, Effort, Failed, Row, take_turns

# Scripts of `examples/`, from start to end.
EXAMPLES = ("tensor_tour", "heat_equation", "train_regression")
IMPORT_SECONDS = 0.17  # what `import weft` may take
FIRST_USE_SECONDS = 1.5  # what an empty kernel cache may add to the operations of `first_use.py`
FIRST_USE = Section("first use", "first use", implementations=("torch", "weft"), counted=False)
WHOLE = Section(
    "program", "whole programs", implementations=("torch", "weft", "numpy"), floor=1.0, counted=False
)

Rows = dict[str, Callable[[], Row]]


def sections(implementations: Sequence[str], effort: Effort) -> list[tuple[Section, Rows]]:
    """How to measure each row, by its name."""
    first = first_use(implementations, effort.fewest)
    whole: Rows = {
        "import": partial(import_time, implementations, effort.rounds),
        "installed size": partial(install_size, implementations),
    }
    for name in EXAMPLES:
        row = f"example {name}, filled kernel cache"
        whole[row] = partial(example, row, ROOT / "examples" / f"{name}.py", implementations, effort.fewest)
    return [(FIRST_USE, first), (WHOLE, whole)]


def first_use(implementations: Sequence[str], rounds: int) -> Rows:
    """The import and every operation of `first_use.py` once, in a fresh process, with a filled and an empty kernel cache."""
    measured: dict[str, Row] = {}

    def measure(cache: str) -> Row:
        with tempfile.TemporaryDirectory() as kernels:

            def turn(name: str) -> float:
                command = [sys.executable, "-m", "bench.first_use", name]
                if cache == "filled":
                    return float(run(command, WEFT_CACHE_DIR=kernels))
                with tempfile.TemporaryDirectory() as empty:
                    return float(run(command, WEFT_CACHE_DIR=empty))

            names = [name for name in FIRST_USE.implementations if name in implementations]
            if cache == "filled" and "weft" in names:
                turn("weft")
            row = Row(FIRST_USE.key, f"import and {len(OPERATIONS)} operations, {cache} kernel cache", "s")
            measured[cache] = take_turns(row, {name: partial(turn, name) for name in names}, rounds)
        if cache == "empty" and (filled := measured.get("filled")) and "weft" in filled.values:
            row.most = filled.values["weft"] + FIRST_USE_SECONDS
        return row

    return {f"{cache} kernel cache": partial(measure, cache) for cache in ("filled", "empty")}


def run(command: list[str], **environment: str) -> str:
    """The output of a program; Failed with its last words if it fails.

    The program may keep the bytecode of weft's source tree, because installed packages have theirs.
    """
    environment = {**os.environ, **environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return done.stdout


def import_time(implementations: Sequence[str], rounds: int) -> Row:
    """The import alone, in a fresh interpreter."""
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"

    def turn(name: str) -> float:
        return float(run([sys.executable, "-c", code.format(name)]))

    turns = {name: partial(turn, name) for name in WHOLE.implementations if name in implementations}
    for warm_up in turns.values():
        warm_up()
    return take_turns(Row(WHOLE.key, "import", "s", most=IMPORT_SECONDS), turns, rounds)


def example(name: str, script: Path, implementations: Sequence[str], rounds: int) -> Row:
    """The wall time of a PyTorch script, with `python` and with `weft run`."""
    commands = {
        "torch": [sys.executable, str(script)],
        "weft": [sys.executable, "-m", "weft", "run", str(script)],
    }
    with tempfile.TemporaryDirectory() as kernels:

        def turn(command: list[str]) -> float:
            start = time.perf_counter()
            run(command, WEFT_CACHE_DIR=kernels)
            return time.perf_counter() - start

        if "weft" in implementations:
            turn(commands["weft"])  # fills the cache
        turns = {
            each: partial(turn, command) for each, command in commands.items() if each in implementations
        }
        return take_turns(Row(WHOLE.key, name, "s", WHOLE.floor), turns, rounds)


def install_size(implementations: Sequence[str]) -> Row:
    """The bytes of a distribution and of all that it requires, in this environment."""
    turns = {name: partial(size_of, name) for name in WHOLE.implementations if name in implementations}
    return take_turns(Row(WHOLE.key, "installed size", "bytes", WHOLE.floor), turns, rounds=1)


def size_of(name: str) -> int:
    """The bytes of an implementation and its requirements; weft's own are those of the source tree."""
    if name == "weft":
        total = sum(path.stat().st_size for path in (ROOT / "weft").rglob("*.py"))
        pending = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    else:
        total, pending = 0, [name]
    seen = set()
    while pending:
        wanted = requirement_name(pending.pop())
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = distribution(wanted)
        except PackageNotFoundError:
            raise Failed(f"{wanted} is not installed") from None
        total += file_sizes(found)
        # Requirements under a condition (an extra, another platform) do not count.
        pending += (r for r in found.requires or () if ";" not in r)
    return total


def file_sizes(found: Distribution) -> int:
    """Bytes of the files that a distribution installs; compiled Python is the interpreter's own affair."""
    paths = (Path(str(found.locate_file(file))) for file in found.files or () if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.exists())


def requirement_name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()
