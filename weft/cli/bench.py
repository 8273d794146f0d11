"""`weft bench`: how long the lines of a script take, and which kernels they run."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import shutil
import statistics
import sys
import tokenize
import types
from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

from ..engine import defer, fusion, tiers
from ..engine.work import Work
from ..utils.benchmark.utils.common import select_unit
from ..utils.counting import count
from ..viz.words import clip, of_bytes
from .lines import Lines

# Timed runs are repeated, because single runs vary: until all of them took so long, in seconds, or there are this many.
ENOUGH_SECONDS = 2.0
MOST_RUNS = 7

NOTE = """\
Time is that of a line itself, the median of {runs}: lines of functions of the script that it calls have their own. Kernels and bytes moved were
counted in a run before. Deferred work is charged to the line that needs its results; "for" names the lines that recorded it."""


class _LineCount(count):
    """Counts the kernels of each line. As its time, deferred work is charged to the line that needs the results."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(display=False)
        self.lines = lines
        self.kernels_of: dict[int, int] = defaultdict(int)
        self.work_of: dict[int, Work] = defaultdict(Work)

    def _places(self) -> set[Any]:
        return {self.lines.current}

    def _add(self, name: str, kind: str, work: Work, places: set[Any]) -> None:
        for line in places - {None}:
            self.kernels_of[line] += 1
            self.work_of[line] = self.work_of[line].plus(work)

    def promised(self, promise: Any) -> None:
        """Leave deferred work to the line that needs it."""


class _Deferred:
    """An observer of `engine/defer.py`: by the line that needed deferred work, the other lines that recorded a part of it."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.recorded: dict[int, int | None] = {}  # by the number of a promise
        self.sources: dict[int | None, set[int]] = defaultdict(set)

    def promised(self, promise: Any) -> None:
        self.recorded[promise.number] = self.lines.current

    def ran(
        self, chain: Sequence[Any], stored: Sequence[bool], end: Any, kernels: int, seconds: float
    ) -> None:
        line = self.lines.current
        recorded = {self.recorded.pop(each.promise.number, None) for each in chain}
        self.sources[line] |= {each for each in recorded if each not in (line, None)}  # type: ignore[misc]


class _Run(NamedTuple):
    seconds: float
    of_line: dict[int, float]


def main(arguments: Sequence[str]) -> int:
    """Run a script several times, print a table of its lines, and return the exit status of the script."""
    path, *own = arguments
    try:
        source = _read(path)
    except OSError as error:
        print(f"weft bench: can't open {path!r}: {error.strerror}", file=sys.stderr)
        return 2
    lines = Lines(source, path)
    sys.argv[:] = [path, *own]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    counted, deferred = _LineCount(lines), _Deferred(lines)
    _say("a first run, which counts kernels")
    with counted:
        status = _status(lines, path)
    if status:
        return status
    fusion.wait()
    tiers.finish()
    runs: list[_Run] = []
    defer.observers.append(deferred)
    try:
        while not runs or len(runs) < MOST_RUNS and sum(each.seconds for each in runs) < ENOUGH_SECONDS:
            lines.clear()
            _say(f"timed run {len(runs) + 1}, of at most {MOST_RUNS}")
            with contextlib.redirect_stdout(io.StringIO()):
                start = perf_counter()
                status = _status(lines, path)
                runs.append(_Run(perf_counter() - start, dict(lines.seconds)))
            if status:
                return status
    finally:
        defer.observers.remove(deferred)
    print(_table(lines, path, runs, counted, deferred))
    return 0


def _read(path: str) -> str:
    """The text of a file of Python, in the encoding that it declares."""
    with open(path, "rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    with open(path, encoding=encoding) as text:
        return text.read()


def _say(what: str) -> None:
    print(f"weft bench: {what} ...", file=sys.stderr, flush=True)


def _status(lines: Lines, path: str) -> int:
    """Run the script as `__main__`. Returns its exit status, 1 after an error, of which this prints the traceback."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        lines.run(vars(main))
        defer.keep_all()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception as error:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_code.co_filename != path:
            traceback = traceback.tb_next
        sys.excepthook(type(error), error, traceback)
        return 1
    finally:
        sys.modules["__main__"] = before
    return 0


def _table(lines: Lines, path: str, runs: Sequence[_Run], counted: _LineCount, deferred: _Deferred) -> str:
    total = statistics.median(each.seconds for each in runs)
    unit, scale = select_unit(total)
    head = ("Line", "Calls", f"Time [{unit}]", "Share", "Kernels", "Moved")
    rows = []
    for line in sorted(lines.calls):
        seconds = statistics.median(each.of_line.get(line, 0.0) for each in runs)
        kernels = counted.kernels_of.get(line, 0)
        moved = of_bytes(counted.work_of[line].moved) if kernels else ""
        cells = (str(line), str(lines.calls[line]), f"{seconds / scale:.3f}", f"{seconds / total:.1%}")
        text = linecache.getline(path, line).rstrip()
        if sources := sorted(deferred.sources.get(line, ())):
            text += f"  # for {', '.join(map(str, sources))}"
        rows.append(((*cells, str(kernels or ""), moved), text))
    widths = [max(len(head[k]), *(len(cells[k]) for cells, _ in rows), 0) for k in range(len(head))]
    room = max(40, shutil.get_terminal_size((140, 0)).columns - sum(widths) - 2 * len(widths))
    shown = [
        f"{os.path.basename(path)}: {total / scale:.3f} {unit}, {sum(counted.kernels_of.values())} kernels",
        "",
    ]
    for row, text in [(head, "Source"), *rows]:
        shown.append("  ".join([*(cell.rjust(w) for cell, w in zip(row, widths)), clip(text, room)]).rstrip())
    shown.insert(3, "  ".join("-" * width for width in (*widths, len("Source"))))
    ran = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
    return "\n".join([*shown, "", NOTE.format(runs=ran)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
