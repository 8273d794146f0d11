"""What the two managers of passes share: a list of passes, and constraints on their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class PassList:
    """Passes, and constraints `(a, b) -> whether a may come before b`."""

    passes: list[Callable]
    constraints: list[Callable[[Callable, Callable], bool]]
    _validated: bool = False

    def __init__(self, passes: Any = None, constraints: Any = None) -> None:
        self.passes = passes or []
        self.constraints = constraints or []

    def add_pass(self, _pass: Callable) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """Add a constraint `(a, b) -> whether a may come before b`."""
        self.constraints.append(constraint)
        self._validated = False

    def _check_order(self) -> None:
        """Raises: RuntimeError if the order of the passes breaks a constraint."""
        if self._validated:
            return
        for constraint in self.constraints:
            check_order(constraint, self.passes)
        self._validated = True


def check_order(constraint: Callable[[Callable, Callable], bool], passes: list[Callable]) -> None:
    """Raises: RuntimeError if a pass comes before another one, although the constraint forbids it."""
    for place, first in enumerate(passes):
        for second in passes[place + 1 :]:
            if not constraint(first, second):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {first} before {second} but found {first} at index "
                    f"{passes.index(first)} and {second} at index{passes.index(second)} in pass list."
                )
