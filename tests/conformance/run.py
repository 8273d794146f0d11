"""Runs test files of PyTorch's on weft and on PyTorch, and says what weft passes of that which PyTorch passes.

    python tests/conformance/run.py FILES...                 all tests of these files
    python tests/conformance/run.py --tests test_view FILES  those whose names contain the pattern
    python tests/conformance/run.py --again FILES            on weft anew; PyTorch's outcomes are kept in the folder --logs

docs/conformance.md says where the files are from, and what was reached.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT = 60  # seconds a test may take
START = 300  # seconds until the first test has begun


def outcomes(library, path, log, limit, pattern):
    """The last line of the log for each test of a file. The process is started again behind a test that ended it."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT) if library == "weft" else "",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "2",
        "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
    }
    command = [sys.executable, str(HERE / "child.py"), library, str(path), str(log), str(limit), pattern]
    while True:
        before = log.stat().st_size if log.exists() else 0
        code = _watch(command, environment, log, limit)
        lines = read(log)
        crashed = [name for name, line in lines.items() if line["outcome"] == "started"]
        for name in crashed:
            reason = "the test hangs" if code is None else f"the process ended with {code}"
            _append(log, {"test": name, "outcome": "crashed", "reason": reason, "trace": "", "seconds": 0})
        if not crashed and (code == 0 or log.stat().st_size == before):
            return read(log)


def _watch(command, environment, log, limit):
    """The exit code of the process; None if it was ended because no test has begun or ended for too long."""
    process = subprocess.Popen(
        command, env=environment, cwd=log.parent, stdin=subprocess.DEVNULL,
        stdout=log.with_suffix(".out").open("a"), stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    size, since = -1, time.monotonic()
    while True:
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            pass
        now = log.stat().st_size if log.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        allowed = max(START, limit) if not size else limit + 60
        if time.monotonic() - since > max(allowed, START if size == 0 else 0):
            os.killpg(process.pid, 9)
            process.wait()
            return None


def read(log):
    """The last line for each test."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return {line["test"]: line for line in lines}


def _append(log, line):
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def compare(ours, theirs):
    """One line for the table, and the failures grouped by what they say."""
    expected = [name for name, line in theirs.items() if line["outcome"] == "passed"]
    missing = {"outcome": "missing", "reason": ours.get("import", {}).get("reason", "there is no such test")}
    failed = {name: ours.get(name, missing) for name in expected}
    failed = {name: line for name, line in failed.items() if line["outcome"] != "passed"}
    groups = defaultdict(list)
    for name, line in failed.items():
        groups[f"{line['outcome']}: {general(line['reason'])}"].append(name)
    return len(expected) - len(failed), len(expected), groups


def general(reason):
    """A message without the numbers and names by which failures of one kind differ."""
    reason = re.sub(r"0x[0-9a-f]+|-?\d+(\.\d+)?(e[+-]?\d+)?", "#", reason)
    return reason[:160]


def run_file(path, options):
    """Run one file on both libraries."""
    folder = Path(options.logs)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{path.parent.name}-{path.stem}" + (
        f"-{re.sub(r'[^a-z0-9_]', '', options.tests)}" if options.tests else ""
    )
    logs = {library: folder / f"{name}.{library}.jsonl" for library in ("weft", "pytorch")}
    if options.again:
        logs["weft"].unlink(missing_ok=True)
    found = {
        library: outcomes(library, path, log, options.limit, options.tests) for library, log in logs.items()
    }
    if not any(line["outcome"] == "passed" for line in found["pytorch"].values()):
        print(f"{path}: PyTorch passes nothing: {found['pytorch'].get('import', {}).get('reason', '')}")
    return compare(found["weft"], found["pytorch"])


def main(arguments):
    """Print the groups of failures of each file, and a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--tests", default="", help="a regular expression for names of tests")
    parser.add_argument("--again", action="store_true", help="forget what weft did before")
    parser.add_argument("--logs", default="/tmp/conformance", help="a folder for outcomes")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds a test may take")
    parser.add_argument("--jobs", type=int, default=1, help="files at once")
    options = parser.parse_args(arguments)
    rows, total = [], Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        for path, result in zip(
            options.files, pool.map(lambda each: run_file(each.resolve(), options), options.files)
        ):
            passed, expected, groups = result
            rows.append(
                f"| {path.parent.name}/{path.name} | {passed} | {expected} | {passed / max(expected, 1):.1%} |"
            )
            total.update(passed=passed, expected=expected)
            print(f"\n{path.name}: {passed} of {expected} that PyTorch passes")
            for reason, tests in sorted(groups.items(), key=lambda each: -len(each[1])):
                more = f" and {len(tests) - 3} more" if len(tests) > 3 else ""
                print(f"{len(tests):5}  {reason}\n       {', '.join(tests[:3])}{more}", flush=True)
    print("\n| file | weft passes | PyTorch passes | share |\n|---|--:|--:|--:|")
    print("\n".join(rows))
    print(
        f"| together | {total['passed']} | {total['expected']} | {total['passed'] / max(total['expected'], 1):.1%} |"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
