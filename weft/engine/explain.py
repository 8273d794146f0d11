"""`weft.explain`: which kernels a function ran for deferred work, what each fused, and who asked for the bytes."""

from __future__ import annotations

import linecache
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import defer, fusion, tiers
from .work import touched_by

MOST_RUNS = 8  # of the function, until it has all of its kernels
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Line(NamedTuple):
    """A line of the user's program, and the function of weft that it calls."""

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.number).strip()
        return f"{os.path.basename(self.file)}:{self.number}  {text}".rstrip()


class Run(NamedTuple):
    """Work that was done at once: one kernel, or one for each of `names`."""

    names: Sequence[str]
    lines: Sequence[Line | None]
    end: str | None  # the reduction that the kernel ends with
    kernels: int
    stored: int  # results that were written to memory
    moved: int  # bytes
    least: int  # bytes that one kernel for all of it moves
    seconds: float
    asked: Line | None


class Observer:
    """Collects in `runs` how deferred work is done while it is one of `defer.observers`."""

    def __init__(self) -> None:
        self.lines: dict[int, Line | None] = {}
        self.alive: list[Any] = []
        self.runs: list[Run] = []

    def promised(self, promise: Any) -> None:
        self.lines[id(promise)] = user_line()
        self.alive.append(promise)  # so that the id is of this promise

    def ran(
        self, chain: Sequence[Any], stored: Sequence[bool], end: Any, kernels: int, seconds: float
    ) -> None:
        operands = {
            (id(source), offset, spec): touched_by(spec)
            for each in chain
            for source, offset, spec in zip(
                each.sources, each.offsets, each.plan.deferred.operands, strict=True
            )
            if type(source) is not defer.Promise
        }
        results = [each.plan.spec.nbytes for each in chain]
        least = sum(operands.values()) + sum(n for n, kept in zip(results, stored, strict=True) if kept)
        single = sum(results) + sum(
            touched_by(spec) for each in chain for spec in each.plan.deferred.operands
        )
        self.runs.append(
            Run(
                [each.plan.deferred.name for each in chain],
                [self.lines.get(id(each.promise)) for each in chain],
                end,
                kernels,
                sum(stored),
                least if kernels == 1 else single,
                least,
                seconds,
                user_line(),
            )
        )


def user_line() -> Line | None:
    """Return the innermost frame outside of weft."""
    frame = sys._getframe(1)
    inner = frame
    while frame is not None and is_ours(frame.f_code.co_filename):
        inner, frame = frame, frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    called = inner.f_locals.get("called", inner.f_code.co_name)  # `called` is the name in `core/entry.py`
    return Line(frame.f_code.co_filename, frame.f_lineno, called)


def is_ours(file: str) -> bool:
    """Whether code is weft's own; the sources of functions that weft generates have names such as <recorder>."""
    return (
        file.startswith(_HERE)
        or file.startswith("<")
        and not file.startswith(("<stdin>", "<string>", "<ipython", "<cell"))
    )


def explain(function: Callable, *args: Any, **kwargs: Any) -> None:
    """Run `function(*args, **kwargs)` and print how its deferred work was done.

    For each kernel: the operations in it with their lines, how many results it wrote to memory, the bytes that it moved and the
    least number possible, its time, and the line that asked for the bytes. The function runs several times before, so that
    its kernels are compiled. Operations that are not deferred do not appear.

    >>> import weft as torch
    >>> def gelu(x):
    ...     return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))
    >>> torch.explain(gelu, torch.randn(1000, 1000))  # doctest: +SKIP
    1. 5 operations in one kernel, 1 result stored, 8.0 MB moved (least 8.0), 0.36 ms
         <stdin>:2
             mul, mul, erf, add, mul
       asked for at the end of the function
    """
    if not callable(function):
        raise TypeError(
            f"explain(): argument 'function' (position 1) must be callable, not {type(function).__name__}"
        )
    run_until_compiled(function, args, kwargs)
    observer = Observer()
    asked = observe(observer, function, args, kwargs)
    for number, run in enumerate(observer.runs):
        print(_described(number + 1, run, number >= asked))
    if not observer.runs:
        print("nothing was deferred: the operations are small, or need bytes at once")


def run_until_compiled(function: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
    """Run the function several times, until it has all of its kernels."""
    before, unchanged = None, 0
    for _ in range(MOST_RUNS):
        result = function(*args, **kwargs)
        defer.keep_all()
        del result
        fusion.wait()
        tiers.finish()
        known = fusion.known_chains()
        # Two runs: in the run in which machine code learns a call (`autograd/replays.py`), the chains may differ from the usual ones.
        unchanged = unchanged + 1 if known == before else 0
        if unchanged == 2:
            break
        before = known


def observe(observer: Observer, function: Callable, args: tuple, kwargs: dict[str, Any]) -> int:
    """Run the function once. Returns how many of the runs of the observer the function asked for itself."""
    defer.observers.append(observer)
    try:
        result = function(*args, **kwargs)
        asked = len(observer.runs)
        defer.keep_all()
        del result
    finally:
        defer.observers.remove(observer)
    return asked


def _described(number: int, run: Run, at_end: bool) -> str:
    operations = "1 operation" if len(run.names) == 1 else f"{len(run.names)} operations"
    ended = f" and {run.end}" if run.end else ""
    kernels = "one kernel" if run.kernels == 1 else f"{run.kernels} kernels"
    stored = f"{run.stored} result{'' if run.stored == 1 else 's'} stored"
    lines = [
        f"{number}. {operations}{ended} in {kernels}, {stored}, "
        f"{run.moved / 1e6:.1f} MB moved (least {run.least / 1e6:.1f}), {run.seconds * 1e3:.2f} ms"
    ]
    for line, names in _grouped(run):
        lines.append(f"     {line or 'unknown'}")
        lines.append(textwrap.fill(", ".join(names), 100, initial_indent=" " * 9, subsequent_indent=" " * 9))
    if at_end or run.asked is None:
        lines.append("   asked for at the end of the function")
    else:
        lines.append(f"   asked for by {run.end or run.asked.function}: {run.asked}")
    return "\n".join(lines)


def _grouped(run: Run) -> list[tuple[Line | None, list[str]]]:
    """The lines in the order of the calls, and the names of the operations of each."""
    groups: list[tuple[Line | None, list[str]]] = []
    for line, name in zip(run.lines, run.names, strict=True):
        if groups and _place(groups[-1][0]) == _place(line):
            groups[-1][1].append(name)
        else:
            groups.append((line, [name]))
    return groups


def _place(line: Line | None) -> tuple | None:
    return line and line[:2]
