"""Measuring whole programs: importing, running the examples, and what an installation takes."""

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from functools import partial
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from bench.cases import NO_SLOWER
from bench.rounds import ROOT, Failed, Row, take_turns

# weft is to be imported in less than a quarter of a second, where PyTorch takes 1.3.
IMPORT_TARGET = 5.0


def rows(implementations: list[str], rounds: int) -> dict[str, Callable[[], Row]]:
    """How to measure each row, by its id."""
    found: dict[str, Callable[[], Row]] = {
        "program/import": partial(import_time, implementations, rounds),
        "program/install size": partial(install_size, implementations),
    }
    for script in sorted((ROOT / "examples").glob("*.py")):
        for cache in ("empty", "filled"):
            id = f"example/{script.stem}, {cache} cache"
            found[id] = partial(example, id, script, cache, implementations, rounds)
    return found


def run(command: list[str], **environment: str) -> str:
    """The output of a program; Failed with its last words if it fails."""
    environment = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return done.stdout


def import_time(implementations: list[str], rounds: int) -> Row:
    """The import alone, in a fresh interpreter."""
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"

    def turn(name: str) -> float:
        return float(run([sys.executable, "-c", code.format(name)]))

    turns = {name: partial(turn, name) for name in implementations}
    return take_turns(Row("program/import", "s", IMPORT_TARGET), turns, rounds)


def example(id: str, script: Path, cache: str, implementations: list[str], rounds: int) -> Row:
    """The wall time of a PyTorch script, with `python` and with `weft run`."""
    commands = {
        "torch": [sys.executable, str(script)],
        "weft": [sys.executable, "-m", "weft", "run", str(script)],
    }

    def turn(command: list[str]) -> float:
        with tempfile.TemporaryDirectory() as kernels:
            if cache == "filled":
                run(command, WEFT_CACHE_DIR=kernels)
            start = time.perf_counter()
            run(command, WEFT_CACHE_DIR=kernels)
            return time.perf_counter() - start

    turns = {name: partial(turn, command) for name, command in commands.items() if name in implementations}
    return take_turns(Row(id, "s", NO_SLOWER), turns, rounds)


def install_size(implementations: list[str]) -> Row:
    """The bytes of a distribution and of all that it requires, in this environment."""
    turns = {name: partial(size_of, name) for name in implementations}
    return take_turns(Row("program/install size", "bytes", NO_SLOWER), turns, rounds=1)


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
