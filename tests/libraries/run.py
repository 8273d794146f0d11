"""Runs the scripts of this folder and compares their numbers with PyTorch's; `make libraries` does the set-up.

    python tests/libraries/run.py                      every script under `weft run`; prints the table of docs/libraries.md
    python tests/libraries/run.py gpytorch einops      these scripts only
    python tests/libraries/run.py gpytorch.exact_gp    one check, with the traceback of its error
    python tests/libraries/run.py --record gpytorch    write expected/gpytorch.json, where PyTorch is installed

Whoever records needs an environment with PyTorch and the same versions of the libraries.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
EXPECTED = HERE / "expected"
LIMIT = 600  # seconds a script may take

# Two float32 programs of the same formulas differ by rounding, and a few steps of training enlarge that. A number may
# differ by RELATIVE of itself plus ABSOLUTE of the largest number of its tensor. Integers, strings, shapes and dtypes
# are equal, so generated tokens and predicted classes are.
RELATIVE, ABSOLUTE = 1e-3, 1e-4

# Checks that cannot pass yet, and what they wait for. `make libraries` fails if one of them passes, too: then it goes.
KNOWN: dict[str, str] = {}


def names() -> list[str]:
    """The names of all scripts."""
    return sorted(path.stem.removeprefix("use_") for path in SCRIPTS.glob("use_*.py"))


def run(name: str, only: list[str], command: list[str]) -> dict:
    """Run the script `name` with `command` in front of it, and return its report."""
    with tempfile.TemporaryDirectory(prefix="libraries-") as folder:
        report = Path(folder, "report.json")
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",  # PyTorch's numbers depend on the number of threads
            "PYTHONWARNINGS": "ignore",
            "MPLBACKEND": "agg",
        }
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, str(SCRIPTS / f"use_{name}.py"), str(report), *only],
                cwd=folder, env=environment, timeout=LIMIT, capture_output=True, text=True,
            )  # fmt: skip
            problem = done.stderr
        except subprocess.TimeoutExpired:
            problem = f"it took more than {LIMIT} s"
        seconds = time.perf_counter() - start
        if report.exists():
            result = json.loads(report.read_text(encoding="utf-8"))
        else:  # the script ended before its first check, nearly always in an import
            result = {"torch": "", "versions": {}, "checks": {}, "errors": {"import": problem}, "seconds": {}}
    result["total seconds"] = round(seconds, 1)
    return result


def compare(expected: dict, got: dict, only: list[str]) -> tuple[int, int, list[str]]:
    """How many checks agree, how many there are, and what is wrong with the others, in the order of the script."""
    passed, total, failures = 0, 0, []
    if "import" in got["errors"]:
        failures.append(_last_line(got["errors"]["import"]))
    for name, entries in expected["checks"].items():
        if only and name not in only:
            continue
        total += len(entries)
        if name in got["errors"]:
            failures.append(f"{name}: {_last_line(got['errors'][name])}")
        for key, value in entries.items():
            if name not in got["checks"]:
                continue
            problem = (
                difference(value, got["checks"][name][key])
                if key in got["checks"][name]
                else f"there is no number {key!r}"
            )
            passed += problem is None
            if problem is not None:
                failures.append(f"{name}.{key}: {problem}")
    return passed, total, failures


def difference(expected, got, scale: float = 0.0) -> str | None:
    """Say how `got` differs from `expected` beyond the tolerance, or return None.

    Numbers may differ by a part of `scale`, or of the largest number beside them if that is larger.
    """
    if isinstance(expected, dict):
        if not isinstance(got, dict) or list(expected) != list(got):
            if isinstance(got, dict) and sorted(expected) == sorted(got):
                return f"its parts are {list(got)}, in PyTorch's order {list(expected)}"
            return f"{_short(got)} where PyTorch has {_short(expected)}"
        scale = max(scale, _shared_scale(expected))
        for key, value in expected.items():
            problem = difference(value, got[key], scale)
            if problem is not None:
                return f"{key}: {problem}"
        return None
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{len(got)} entries where PyTorch has {len(expected)}"
    else:
        expected, got = [expected], [got]
    scale = max(scale, _largest(expected))
    for place, (want, have) in enumerate(zip(expected, got)):
        if isinstance(want, list | dict):
            problem = difference(want, have, scale)
            if problem is not None:
                return problem
        elif isinstance(want, float) and isinstance(have, float) and math.isfinite(want):
            if not abs(have - want) <= RELATIVE * abs(want) + ABSOLUTE * scale:
                return f"{have:.7g} where PyTorch has {want:.7g} (entry {place} of {len(expected)})"
        elif type(want) is not type(have) or not (want == have or (want != want and have != have)):
            return f"{_short(have)} where PyTorch has {_short(want)}"
    return None


def _largest(numbers: list) -> float:
    return max((abs(x) for x in numbers if isinstance(x, float) and math.isfinite(x)), default=0.0)


def _shared_scale(parts: dict) -> float:
    """The scale of what belongs together: the parameters of a model, and what is written of a tensor.

    The gradient of a parameter may be zero but for rounding: the bias of the keys of an attention has no effect.
    """
    if "mean magnitude" in parts:
        return parts["mean magnitude"]
    if parts and all(isinstance(x, list) and len(x) == 2 for x in parts.values()):
        return max(map(_largest, parts.values()))
    return 0.0


def _last_line(problem: str) -> str:
    """The line of a traceback that says what happened, and where a library called for it."""
    # Hints may follow the message, so the line of the exception is the last that names one.
    lines = [line for line in problem.strip().splitlines() if line.strip()]
    named = [
        line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b", line)
    ]
    return (named or lines or ["it ended without a report"])[-1][:300]


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def row(name: str, result: dict, passed: int, total: int, failures: list[str]) -> str:
    """One row of the table."""
    versions = ", ".join(f"{library} {version}" for library, version in result["versions"].items())
    first = failures[0].replace("|", "\\|") if failures else ""
    return f"| {name} | {versions} | {passed} / {total} | {result['total seconds']:.0f} | {first} |"


def record(name: str) -> str:
    """Write expected/`name`.json from this interpreter's PyTorch."""
    result = run(name, [], [sys.executable])
    if result["errors"]:
        return f"{name} fails with PyTorch:\n" + "\n".join(result["errors"].values())
    kept = {key: result[key] for key in ("torch", "versions", "checks")}
    text = json.dumps(kept, indent=1)
    # One line for each list of numbers.
    text = re.sub(
        r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text
    )
    (EXPECTED / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    count = sum(map(len, result["checks"].values()))
    return f"{name}: {count} numbers from PyTorch {result['torch']} in {result['total seconds']} s"


def check(name: str, only: list[str], verbose: bool) -> tuple[str, bool]:
    """Run `name` under weft; returns its row of the table, with all failures if `verbose`, and if it passed but for KNOWN."""
    expected = json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))
    result = run(name, only, [sys.executable, "-m", "weft", "run"])
    passed, total, failures = compare(expected, result, only)
    if not result["versions"]:
        result["versions"] = expected["versions"]
    lines = [row(name, result, passed, total, failures)]
    if verbose:
        lines += [*result["errors"].values(), *failures]
        lines += [f"{result['seconds']}"]
    failing = {failure.partition(":")[0].partition(".")[0] for failure in failures}
    known = {each.partition(".")[2] for each in KNOWN if each.startswith(f"{name}.")}
    return "\n".join(lines), failing == (known & set(only) if only else known)


def main() -> int:
    """Returns the exit status: 1 if a number differs that is not KNOWN to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", metavar="script or script.check")
    parser.add_argument("--record", action="store_true", help="write the expected numbers, with PyTorch")
    parser.add_argument("--verbose", action="store_true", help="show every failure")
    parser.add_argument("--jobs", type=int, default=2, help="scripts that run at the same time")
    options = parser.parse_args()
    wanted: dict[str, list[str]] = {}
    for script in options.scripts or names():
        name, _, only = script.partition(".")
        wanted.setdefault(name, []).extend([only] if only else [])
    verbose = options.verbose or any(wanted.values())
    # Threads that wait for processes; the rows come in the order of the names.
    with ThreadPoolExecutor(options.jobs) as pool:
        if options.record:
            for line in pool.map(record, wanted):
                print(line, flush=True)
            return 0
        print(
            "| script | libraries | numbers that agree | seconds | first failure |\n|---|---|---|---|---|",
            flush=True,
        )
        start, fine = time.perf_counter(), True
        for text, passed in pool.map(lambda name: check(name, wanted[name], verbose), wanted):
            print(text, flush=True)
            fine = fine and passed
        print(f"\n{time.perf_counter() - start:.0f} seconds.")
        if KNOWN:
            print("These wait for what weft does not have yet:")
            print("\n".join(f"- {check}: {reason}" for check, reason in KNOWN.items()))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
