"""Whether results of a deferred plan are usually read alone, before another operation is fused with theirs.

Then waiting saves nothing, and costs a promise. On 10^6 floats, whose loop displaces the interpreter's data from the caches, a
promise costs about 25 us of Python, and `-x` takes 45 us (AMD Zen 4). So after USUAL results in succession were read alone, the
next TURNS calls run at once, most of them in machine code (`families/map_calls.py`). The call after those is deferred again. If
its result is fused, the plan is as it was at the beginning.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from ..core.spec import Spec
from ..core.templates import add_atoms

USUAL = 16
TURNS = 64
# Bytes. The promise of a larger result costs less than 1 % of its loop, and a fused kernel saves more.
MOST_BYTES = 1 << 24


class Habit:
    """How the results of one plan were read."""

    __slots__ = ("alone", "turns")

    def __init__(self) -> None:
        self.alone = 0  # results in succession
        self.turns = ctypes.c_int64(0)  # calls that run at once; machine code reads and writes this word

    @property
    def address(self) -> int:
        """The address of `turns`."""
        return ctypes.addressof(self.turns)

    def take_turn(self) -> bool:
        """Whether this call runs at once."""
        left = self.turns.value
        if left:
            self.turns.value = left - 1
        return left > 0

    def was_alone(self) -> None:
        self.alone += 1
        if self.alone >= USUAL:
            self.turns.value = TURNS

    def was_fused(self) -> None:
        self.alone = self.turns.value = 0


add_atoms(Habit)


def habit_for(result: Spec) -> Habit | None:
    """The habit of a new plan; None if its results are always deferred."""
    return Habit() if result.nbytes <= MOST_BYTES else None


def note_alone(plan: Any) -> None:
    """Note that a result was read for which no other result had waited."""
    if plan.habit is not None:
        plan.habit.was_alone()


def note_fused(plans: Iterable[Any]) -> None:
    """Note that results of these plans were read together."""
    for each in plans:
        if each.habit is not None:
            each.habit.was_fused()
