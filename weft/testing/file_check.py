"""`FileCheck`: what a text, such as the code of a graph, must contain, and in which order."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_LINE = re.compile(
    r"^[ \t]*#[ \t]*(CHECK(?:-(?:NEXT|SAME|NOT|DAG|REGEX|SOURCE-HIGHLIGHTED|COUNT-(?:EXACTLY-)?\d+))?):[ \t]*(.*?)[ \t]*$", re.MULTILINE
)  # fmt: skip


class _Check(NamedTuple):
    kind: str  # "CHECK", "CHECK-NEXT" and so on, as in the files that contain checks
    text: str
    times: int = 1

    def __str__(self) -> str:
        kind = f"{self.kind}-{self.times}" if self.kind == "CHECK-COUNT" else self.kind
        return f"{kind}: {self.text}"


class FileCheck:
    """Checks of a text: each `check` must be found behind the one before it. `run` raises RuntimeError for the first that fails.

    >>> from weft.testing import FileCheck
    >>> FileCheck().check("x = ").check_not("z").check_next("y = ").run("x = 1\\ny = 2")
    >>> FileCheck().check("y").check("x = ").run("x = 1\\ny = 2")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: Expected to find "x = " but did not find it
    ...
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, kind: str, text: str, times: int = 1) -> FileCheck:
        self._checks.append(_Check(kind, text, times))
        return self

    def check(self, text: str, /) -> FileCheck:
        """The text comes behind what was checked before."""
        return self._add("CHECK", text)

    def check_not(self, text: str, /) -> FileCheck:
        """The text does not come between the checks before and behind this one."""
        return self._add("CHECK-NOT", text)

    def check_same(self, text: str, /) -> FileCheck:
        """The text comes in the same line."""
        return self._add("CHECK-SAME", text)

    def check_next(self, text: str, /) -> FileCheck:
        """The text comes in the next line."""
        return self._add("CHECK-NEXT", text)

    def check_dag(self, text: str, /) -> FileCheck:
        """The texts of neighbouring checks of this kind come in any order."""
        return self._add("CHECK-DAG", text)

    def check_regex(self, text: str, /) -> FileCheck:
        """A match of the regular expression comes behind what was checked before."""
        return self._add("CHECK-REGEX", text)

    def check_source_highlighted(self, text: str, /) -> FileCheck:
        """The text comes, and the line below has the character ~ under all of it."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes `count` times; with `exactly`, not once more before the next check."""
        if not count and not exactly:
            raise RuntimeError("FileCheck.check_count: a count of 0 checks nothing without exactly=True")
        if count:
            self._add("CHECK-COUNT", str, count)
        return self.check_not(str) if exactly else self

    def run(self, *given: Any) -> None:
        """`run(text)`, or `run(checks, text)` with lines such as "# CHECK-NEXT: y" in `checks`.

        Raises: RuntimeError if a check fails, or if there are no checks.
        """
        if len(given) not in (1, 2) or not all(isinstance(each, str) for each in given):
            raise TypeError(
                f"run(): incompatible function arguments: expected (text: str) or (checks: str, text: str), got {given}"
            )
        for kind, text in _LINE.findall(given[0]) if len(given) == 2 else ():
            self._add_line(kind, text)
        if not self._checks:
            raise RuntimeError(
                "No checks have been added to this instance of FileCheck! Check for bad input."
            )
        _run(self._checks, given[-1])

    def _add_line(self, kind: str, text: str) -> None:
        if "COUNT" not in kind:
            self._add(kind, text)
            return
        self.check_count(text, int(kind.rpartition("-")[2]), "EXACTLY" in kind)


def _run(checks: list[_Check], text: str) -> None:
    place = start = 0  # `start` is where the group of CHECK-DAG begins
    absent: list[_Check] = []
    before = ""
    for check in checks:
        if check.kind == "CHECK-NOT":
            absent.append(check)
        else:
            is_grouped = check.kind == before == "CHECK-DAG" and not absent
            start = start if is_grouped else place
            first, last = _find(check, text, start)
            for each in absent:
                _refuse(each, each.text, text, place, first)
            absent = []
            place = max(place, last)
        before = check.kind
    for each in absent:
        _refuse(each, each.text, text, place, len(text))


def _find(check: _Check, text: str, start: int) -> tuple[int, int]:
    """Where the check is met first, from `start` on."""
    if check.kind == "CHECK-SOURCE-HIGHLIGHTED":
        return _highlighted(check, text, start)
    if check.kind == "CHECK-NEXT":
        start = text.find("\n", start) + 1
        if not start:
            raise _not_found(check, "\n", text)
    first, last = _search(check, text, start)
    for _ in range(check.times - 1):
        last = _search(check, text, last)[1]
    if check.kind in ("CHECK-NEXT", "CHECK-SAME"):
        _refuse(check, "\n", text, start, first)
    return first, last


def _search(check: _Check, text: str, start: int) -> tuple[int, int]:
    pattern = check.text if check.kind == "CHECK-REGEX" else re.escape(check.text)
    match = re.compile(pattern).search(text, start)
    if match is None:
        raise _not_found(check, check.text, text[start:])
    return match.span()


def _highlighted(check: _Check, text: str, start: int) -> tuple[int, int]:
    first = -1
    for match in re.finditer(re.escape(check.text), text[start:]):
        first, last = start + match.start(), start + match.end()
        end = text.find("\n", last)
        column = first - (text.rfind("\n", 0, first) + 1)
        below = text[end + 1 :].partition("\n")[0] if end >= 0 else ""
        if below[column : column + last - first] == "~" * (last - first):
            return first, last
    if first < 0:
        raise _not_found(check, check.text, text[start:])
    raise RuntimeError(f'Expected to find "{check.text}"highlighted but it is not.\n{text}')


def _not_found(check: _Check, wanted: str, searched: str) -> RuntimeError:
    name = "regex " if check.kind == "CHECK-REGEX" else ""
    shown = wanted.replace("\n", "\\n")
    return RuntimeError(
        f'Expected to find {name}"{shown}" but did not find it\nSearched string:\n{searched}\nFrom {check}\n'
    )


def _refuse(check: _Check, unwanted: str, text: str, start: int, end: int) -> None:
    """Raise RuntimeError if `unwanted` comes within a part of the text."""
    place = text.find(unwanted, start, end)
    if place >= 0:
        line = text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0]
        mark = " " * (place - text.rfind("\n", 0, place) - 1) + "~" * len(unwanted)
        shown = unwanted.replace("\n", "\\n")
        raise RuntimeError(
            f'Expected to not find "{shown}" but found it\n{line}\n{mark} <--- HERE\nFrom {check}\n'
        )
