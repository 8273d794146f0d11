"""Loops that compute one element turn by turn until a condition holds, as expressions: rejection samplers, series and continued fractions.

Such a description belongs to no device. The host (`rejection.py`) and GPUs write loops of it, each with random words of its own generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ..core.dtype import bool_, float64, uint64
from .distributions import u53
from .expr import Expr, const, load, param
from .structured import Structured

NEVER, ALWAYS = const(False, bool_), const(True, bool_)
NAN = "0x7FF8000000000000"


class Emit(Protocol):
    """`llvm.emit`, or such a function that knows more primitives."""

    def __call__(self, block: Any, roots: tuple[Expr, ...], leaves: dict[Expr, str], /) -> list[str]: ...


class Turn(NamedTuple):
    """One turn of an iteration."""

    done: Expr  # tested first
    value: Expr  # the result, if this turn is the last
    accept: Expr = NEVER  # tested, and computed, only if not done
    carried: tuple[Expr, ...] = ()  # what the next turn starts from


class Iteration(NamedTuple):
    """`turn(*constants, *uniforms, *carried)`, repeated; `constants(a, b)` are computed once for each element. All numbers are float64."""

    constants: Callable[[Expr, Expr], tuple[Expr, ...]]
    turn: Callable[..., Turn]
    draws: int = 0  # uniform numbers in [0, 1) that a turn draws
    start: tuple[float, ...] = ()  # what the first turn starts from

    def write(
        self, b: Structured, emit: Emit, draw: Callable[[int], list[str]], x: str = "%a", y: str = "%b"
    ) -> str:
        """Write the loop for one element, and return its result. draw: returns so many random uint64."""
        first, second = load(0, float64), load(1, float64)
        leaves = {first: x, second: y}
        constants = self.constants(first, second)
        leaves |= dict(zip(constants, emit(b, constants, leaves), strict=True))
        words = [load(2 + k, uint64) for k in range(self.draws)]
        carried = [param(k, float64) for k in range(len(self.start))]
        first_turn = emit(b, tuple([const(value, float64) for value in self.start]), {})
        variables = [b.variable("double", value) for value in first_turn]
        result = b.variable("double", NAN)
        turn = self.turn(*constants, *map(u53, words), *carried)
        with b.repeat() as go_on_if:
            if words:
                leaves |= dict(zip(words, draw(self.draws), strict=True))
            leaves |= {leaf: b.get(place, "double") for leaf, place in zip(carried, variables, strict=True)}
            done, value = emit(b, (turn.done, turn.value), leaves)
            b.set(result, "double", value)
            go_on_if(b.let(f"xor i1 {done}, true"))
            later = (turn.accept, *turn.carried)
            accept, *following = emit(b, later, leaves | {turn.done: done, turn.value: value})
            for place, start in zip(variables, following, strict=True):
                b.set(place, "double", start)
            go_on_if(b.let(f"xor i1 {accept}, true"))
        return b.get(result, "double")


class Case(NamedTuple):
    """An iteration, the condition under which it is used, and the two parameters that it gets."""

    condition: Expr
    iteration: Iteration
    parameters: tuple[Expr, Expr]


class Cases(NamedTuple):
    """An element by the iteration whose condition holds. At most one does; `result` makes the element of what it found, else of NaN."""

    cases: Callable[[Expr, Expr], tuple[Case, ...]]
    result: Callable[[Expr, Expr, Expr], Expr] = lambda found, a, b: found

    def of_parameters(self) -> tuple[Case, ...]:
        """The cases for the parameters `load(0)` and `load(1)`."""
        return self.cases(load(0, float64), load(1, float64))

    def write(self, b: Structured, emit: Emit, run: Callable[[int, str, str], str], x: str, y: str) -> str:
        """Write one element of the parameters x and y, and return it. run: writes the iteration of this number."""
        first, second, result = (load(k, float64) for k in range(3))
        leaves = {first: x, second: y}
        found = b.variable("double", NAN)
        for k, case in enumerate(self.of_parameters()):
            (holds,) = emit(b, (case.condition,), leaves)
            with b.when(holds):
                b.set(found, "double", run(k, *emit(b, case.parameters, leaves)))
        leaves[result] = b.get(found, "double")
        return emit(b, (self.result(result, first, second),), leaves)[0]
