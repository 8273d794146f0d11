"""Which errors of PyTorch a test expects.

A typo in a test raises the same exception in both libraries. So helpers that compare them ask `judge`, which fails where
PyTorch raises and the test does not say that it expects so, or the other way round. A test says so

- with `raises=True`, or `check_raises(...)`, for one call;
- with a comment at the end of an expression: `torch.ones(2).view(3)  # raises`;
- with `@pytest.mark.refuses(...)`: "all" of its calls, so many of them, those of some parameters (a list of their ids), or
  so many for each id (a dict);
- with `@pytest.mark.may_raise(least=0.5)` if it draws its arguments: then both are fine, but of all draws at least this
  part must succeed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_COMMENT = "# raises"


class _Tally:
    """How many calls of a test have succeeded, and how many PyTorch refused."""

    def __init__(self) -> None:
        self.good = self.bad = 0
        self.last: Any = "nothing"

    def count(self, failed: bool, what: Any) -> None:
        self.good, self.bad = self.good + (not failed), self.bad + failed
        self.last = what if failed else self.last


_open: list[_Tally] = []


@contextlib.contextmanager
def marked(node: Any) -> Iterator[None]:
    """Within this context calls are counted if the test has one of the marks; at its end the counts must fit the mark."""
    refuses, draws = node.get_closest_marker("refuses"), node.get_closest_marker("may_raise")
    if refuses is None and draws is None:
        yield
        return
    tally = _Tally()
    _open.append(tally)
    try:
        yield
    finally:
        _open.pop()
    total = tally.good + tally.bad
    if draws is not None:
        problem = "too many" if tally.good < draws.kwargs["least"] * total else ""
    else:
        wanted = _wanted(refuses.args[0], getattr(node, "callspec", None))
        problem = "" if tally.bad == (total if wanted == "all" else wanted) else f"not {wanted}"
    if problem:
        raise AssertionError(
            f"PyTorch refuses {tally.bad} of {total} calls, {problem}; the last one: {tally.last}"
        )


def _wanted(mark: Any, parameters: Any) -> Any:
    """How many calls the test says are refused: a number or "all"."""
    if isinstance(mark, (int, str)):
        return mark
    if isinstance(mark, dict):
        return mark.get(parameters.id, 0)
    return "all" if parameters.id in mark else 0


def is_raising(expression: Any) -> bool:
    """Whether an expression has the comment."""
    return isinstance(expression, str) and expression.rstrip().endswith(_COMMENT)


def judge(theirs: Any, expected: bool, what: Any = "") -> None:
    """Raises: AssertionError if PyTorch's outcome is an exception and the test expects none, or the other way round."""
    kind = theirs if isinstance(theirs, type) else type(theirs)
    failed = issubclass(kind, BaseException)
    if _open and not expected:
        _open[-1].count(failed, f"{what}: {theirs!r}" if failed else None)
    elif failed and not expected:
        raise AssertionError(f"PyTorch raises, which the test does not say it expects: {what}: {theirs!r}")
    elif expected and not failed:
        raise AssertionError(f"PyTorch does not raise, which the test says it expects: {what}: {theirs!r}")
