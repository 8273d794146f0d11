"""Checks the tests: changes the code in one place at a time, and runs the tests that should notice it.

`make mutants` does all places; `python tests/mutants.py TEXT ...` those whose file or text contains one of the TEXTs.
The places are in tests/mutations/*.toml, one file for each folder of weft; docs/reliability.md says how to add one.

The working tree stays as it is: changes are made in a copy in a temporary folder. This process imports what the tests
import, but not weft, and is forked for each place. So a change costs the import of weft and its tests, and no more.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib
import os
import py_compile
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ROOT / "tests" / "mutations"
HEAVY = ("numpy", "scipy.linalg", "torch", "llvmlite.binding", "hypothesis", "pytest", "_pytest.doctest")
LIMIT = 240  # seconds for the tests of one place; tests that take longer hang, which counts as noticed
ENVIRONMENT = {"HYPOTHESIS_PROFILE": "unshrunk", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Mutant:
    """One change: `text`, which occurs once in `file`, becomes `replacement`; `tests` should fail then."""

    file: str  # below weft/
    text: str
    replacement: str
    tests: tuple[str, ...]  # files or node ids, as pytest takes them
    equivalent: str = ""  # why no test can notice the change, if none can

    @property
    def name(self) -> str:
        """The file, and the first changed line before and after."""
        pairs = zip(self.text.strip("\n").split("\n"), self.replacement.strip("\n").split("\n"), strict=False)
        before, after = next((pair for pair in pairs if pair[0] != pair[1]), (self.text.split("\n")[-1], ""))
        return f"{self.file}: {before.strip()!r} -> {after.strip()!r}"

    @property
    def folder(self) -> str:
        return self.file.rpartition("/")[0].partition("/")[0] or "(top)"

    def changed(self, source: str) -> str:
        """Raises: LookupError if the text is not in the source exactly once."""
        count = source.count(self.text)
        if count != 1:
            raise LookupError(
                f"weft/{self.file}: this text occurs {count} times, not once. Update tests/mutations:\n{self.text}"
            )
        return source.replace(self.text, self.replacement)


def mutants() -> list[Mutant]:
    """All places of tests/mutations."""
    found = []
    for path in sorted(PLACES.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            found.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}))
    return found


# ---- A copy of the project ------------------------------------------------------------------------------------------


class Slot:
    """A copy of the project, in which one changed weft at a time is tested."""

    def __init__(self, folder: Path, other: Slot | None = None):
        """A copy of the working tree, or of what another slot has compiled of it."""
        self.root = folder / "project"
        self.kernels = folder / "kernels"
        self.kernels.mkdir(mode=0o700, parents=True)
        if other is not None:
            shutil.copytree(other.root, self.root)
            return
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(".*", "__pycache__", "pictures"))
        # A change may keep the length of a file and come within the same second, so times do not tell.
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self.root / "weft", quiet=2, invalidation_mode=mode)

    def start(self, mutant: Mutant, kernels: Path) -> Run:
        """Change the code and start its tests, with kernels of the unchanged code at hand."""
        path = self.root / "weft" / mutant.file
        source = path.read_text()
        path.write_text(mutant.changed(source))
        copy_kernels(kernels, self.kernels)
        return Run(self, mutant, source, fork_tests(self.root, mutant.tests, self.kernels))


def copy_kernels(source: Path, target: Path) -> None:
    """Make a folder of kernels hold what another one holds.

    By links, because the cache replaces files and never writes into them: so little is to be done from place to place.
    """
    wanted = {entry.name: entry.inode() for entry in os.scandir(source)}
    for entry in os.scandir(target):
        if wanted.get(entry.name) == entry.inode():
            del wanted[entry.name]
        else:
            os.unlink(entry.path)
    for name in wanted:
        with contextlib.suppress(FileNotFoundError):  # the file of another process that was just writing it
            try:
                os.link(source / name, target / name)
            except OSError:  # another file system
                shutil.copyfile(source / name, target / name)


@dataclass
class Run:
    """Tests of one place, under way."""

    slot: Slot
    mutant: Mutant
    source: str
    pid: int
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = time.monotonic()

    def finish(self) -> str | None:
        """How the tests ended, "" if all passed; None while they run."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        late = time.monotonic() - self.started > LIMIT
        if not pid and not late:
            return None
        try:
            os.killpg(self.pid, signal.SIGKILL)  # with what the tests have started
        except ProcessLookupError:
            pass
        if not pid:
            os.waitpid(self.pid, 0)
        (self.slot.root / "weft" / self.mutant.file).write_text(self.source)
        if late:
            return "hangs"
        code = os.waitstatus_to_exitcode(status)
        return "" if code == 0 else "fails" if code > 0 else f"crashes ({signal.Signals(-code).name})"


def fork_tests(root: Path, tests: Sequence[str], kernels: Path) -> int:
    """Start pytest in a child of this process that belongs to a group of its own; returns its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        os.chdir(root)
        output = os.open(root.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(ENVIRONMENT, WEFT_CACHE_DIR=str(kernels), PYTHONPATH=str(root))
        sys.dont_write_bytecode = True
        sys.path[:] = [
            str(root),
            *(each for each in sys.path if Path(each).resolve() not in (ROOT, ROOT / "tests")),
        ]
        import pytest

        code = int(
            pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", *tests])
        )
    finally:
        os._exit(code)


# ---- The table ------------------------------------------------------------------------------------------------------


def outcomes(
    chosen: Sequence[Mutant], folder: Path, processes: int, check: bool
) -> Iterator[tuple[Mutant, str, float]]:
    """Each mutant with how its tests ended ("" if none failed) and the seconds they took."""
    # Kernels of the unchanged code, which other runs may have left.
    kernels = Path(os.environ.get("WEFT_CACHE_DIR", Path.home() / ".cache" / "weft" / "kernels"))
    kernels.mkdir(mode=0o700, parents=True, exist_ok=True)
    slots = [Slot(folder / "0")]
    slots += [Slot(folder / str(k), slots[0]) for k in range(1, processes)]
    if check:
        check_unchanged(slots[0], chosen, kernels)
    waiting, running = list(chosen), []
    while waiting or running:
        while waiting and slots:
            running.append(slots.pop().start(waiting.pop(0), kernels))
        for run in list(running):
            ended = run.finish()
            if ended is not None:
                running.remove(run)
                slots.append(run.slot)
                yield run.mutant, ended, time.monotonic() - run.started
        time.sleep(0.02)


def check_unchanged(slot: Slot, chosen: Sequence[Mutant], kernels: Path) -> None:
    """The tests must pass without any change; they leave their kernels for the runs that follow."""
    tests = list(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
    files = {test for test in tests if "::" not in test}
    tests = [test for test in tests if test in files or test.partition("::")[0] not in files]
    started = time.monotonic()
    _, status = os.waitpid(fork_tests(slot.root, tests, kernels), 0)
    if status:
        sys.exit(f"{(slot.root.parent / 'output.txt').read_text()}\nThese tests fail without any change.")
    print(
        f"{len(tests)} tests or files of tests pass without any change ({time.monotonic() - started:.0f} s)"
    )


def found_and_missing(chosen: Sequence[Mutant]) -> tuple[list[Mutant], dict[Mutant, str]]:
    """The mutants whose texts are in the code, and labels for the others, which it prints."""
    found, labels = [], {}
    for mutant in chosen:
        try:
            mutant.changed((ROOT / "weft" / mutant.file).read_text())
            found.append(mutant)
        except (LookupError, FileNotFoundError) as error:
            labels[mutant] = "NOT FOUND"
            print(f"NOT FOUND: {error}")
    return found, labels


def label(mutant: Mutant, ended: str) -> str:
    if mutant.equivalent:
        return "NOT EQUIVALENT" if ended else "equivalent"
    return ended or "NOT NOTICED"


def summary(labels: dict[Mutant, str]) -> str:
    """The counts by folder."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, text in labels.items():
        kind = text.lower() if text in ("NOT NOTICED", "NOT FOUND", "equivalent") else "noticed"
        rows[mutant.folder][kind] += 1
        rows["all"][kind] += 1
    kinds = ("noticed", "not noticed", "equivalent", "not found")
    lines = [f"{'folder':16}" + "".join(f"{kind:>13}" for kind in kinds)]
    lines += [f"{folder:16}" + "".join(f"{row[kind]:13}" for kind in kinds) for folder, row in rows.items()]
    total = rows["all"]
    share = total["noticed"] / max(total["noticed"] + total["not noticed"], 1)
    return "\n".join([*lines, f"{share:.1%} of the changes that are not equivalent were noticed."])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="*", help="only places whose file or text contains one of these")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--unchecked", action="store_true", help="take it that all tests pass without a change"
    )
    options = parser.parse_args()
    chosen = [
        each
        for each in mutants()
        if not options.texts
        or any(re.search(re.escape(text), f"{each.file} {each.text}") for text in options.texts)
    ]
    for module in HEAVY:
        importlib.import_module(module)
    started = time.monotonic()
    chosen, labels = found_and_missing(chosen)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for mutant, ended, seconds in outcomes(
            chosen, Path(folder), options.processes, not options.unchecked
        ):
            labels[mutant] = label(mutant, ended)
            print(f"{labels[mutant]:20} {seconds:5.1f} s  {mutant.name}", flush=True)
            if mutant.equivalent:
                print(f"{'':29}{mutant.equivalent}")
    print(f"\n{summary(labels)}\n{time.monotonic() - started:.0f} s")
    return int(any(text.isupper() for text in labels.values()))


if __name__ == "__main__":
    sys.exit(main())
