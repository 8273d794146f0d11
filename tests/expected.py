"""Which errors of PyTorch a test expects.

A typo in a test raises the same exception in both libraries. So helpers that compare them ask `judge`, which fails where
PyTorch raises and the test does not say so, or the other way round. A test says so

- with `raises=True` or `check_raises(...)` for one call, where the helper has it;
- with a comment at the end of an expression: `torch.ones(2).view(3)  # raises`;
- with `raises(program)` or `@raises` for a function that is run in both libraries;
- with `@pytest.mark.may_raise(least=0.5)` if it draws its arguments: then both are fine, but of all draws at least this
  part must succeed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

_COMMENT = "# raises"


class _Draws:
    """How many calls of a test that draws its arguments have succeeded, and how many PyTorch refused."""

    def __init__(self, least: float):
        self.least = least
        self.good = self.bad = 0
        self.last: Any = None

    def check(self) -> None:
        if self.good < self.least * (self.good + self.bad):
            raise AssertionError(
                f"PyTorch refuses {self.bad} of {self.good + self.bad} draws, more than 1 - {self.least}. "
                f"The last one: {self.last!r}"
            )


_open: list[_Draws] = []


@contextlib.contextmanager
def draws(least: float) -> Iterator[None]:
    """Within this context PyTorch may raise; at its end, at least this part of all calls must have succeeded."""
    _open.append(_Draws(least))
    try:
        yield
        _open[-1].check()
    finally:
        _open.pop()


def raises(program: Callable) -> Callable:
    """Mark a function: PyTorch raises when it is run."""
    program.raises = True  # type: ignore[attr-defined]
    return program


def is_raising(program: Any) -> bool:
    """Whether an expression has the comment, or a function the mark."""
    if isinstance(program, str):
        return program.rstrip().endswith(_COMMENT)
    return getattr(program, "raises", False)


def judge(theirs: Any, expected: bool, what: Any = "") -> None:
    """Raises: AssertionError if PyTorch's outcome is an exception and the test expects none, or the other way round."""
    failed = (
        isinstance(theirs, BaseException) or isinstance(theirs, type) and issubclass(theirs, BaseException)
    )
    if _open and not expected:
        draws = _open[-1]
        draws.good, draws.bad = draws.good + (not failed), draws.bad + failed
        draws.last = (what, theirs) if failed else draws.last
        return
    if failed and not expected:
        raise AssertionError(f"PyTorch raises, which the test does not say it expects: {what}: {theirs!r}")
    if expected and not failed:
        raise AssertionError(f"PyTorch does not raise, which the test says it expects: {what}: {theirs!r}")
