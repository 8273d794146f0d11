"""Several kernels planned together, for functions that would otherwise spend their time between them.

A program is described once per combination of specs: `describe(planner, *static)` names kernels and what they read, and
returns the operands that are results. A call then makes the results and the values on the way, and launches the kernels
one after the other. Programs are leaves: they compute, and what autograd records is the step around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from ..core.op import PlanCache
from ..core.spec import Spec
from ..core.tensor import Tensor, make
from .map import Map
from .reduce import Reduce


class Operand(NamedTuple):
    """What a kernel reads or writes: an address, or a number (then `spec` is float)."""

    kind: str  # "input", "made", "number" or "constant"
    number: int
    spec: Any


class Planner:
    """Collects the launches of a program."""

    def __init__(self, specs: Sequence[Spec | None], numbers: int):
        # An Operand each; None for what is missing.
        self.inputs: list[Any] = [
            None if each is None else Operand("input", k, each) for k, each in enumerate(specs)
        ]
        self.numbers = [Operand("number", k, float) for k in range(numbers)]
        self.made: list[tuple[Operand, Callable]] = []
        self.constants: list[Any] = []
        self.launches: list[tuple[Callable, list[Operand]]] = []
        self.plans: list[Any] = []  # they keep the kernels

    def map(self, op: Map, *operands: Operand | float) -> Operand:
        """The result of an elementwise op of operands and floats."""
        plan = op.plans[tuple([each.spec if isinstance(each, Operand) else float for each in operands])]
        result = self._new(plan.spec, plan.allocate)
        addresses = [each for each in operands if isinstance(each, Operand) and each.spec is not float]
        numbers = [
            each if isinstance(each, Operand) else self._constant(each)
            for each in operands
            if not isinstance(each, Operand) or each.spec is float
        ]
        self._launch(plan, [result, *addresses, *numbers])
        return result

    def reduce(
        self, op: Reduce, *inputs: Operand, dims: tuple[int, ...], numbers: Sequence[Operand | float] = ()
    ) -> list[Operand]:
        """The results of a reduction; the dims stay, with size 1."""
        plan = op.plans[tuple([each.spec for each in inputs]), dims, True, None, len(numbers)]
        results = [self._new(*each) for each in zip(plan.results, plan.allocators, strict=True)]
        if plan.results[0].numel:
            given = [each if isinstance(each, Operand) else self._constant(each) for each in numbers]
            self._launch(plan, [*results, *inputs, self._constant(plan.reduced), *given])
        return results

    def _new(self, spec: Spec, allocate: Callable) -> Operand:
        operand = Operand("made", len(self.made), spec)
        self.made.append((operand, allocate))
        return operand

    def _constant(self, value: Any) -> Operand:
        self.constants.append(value)
        return Operand("constant", len(self.constants) - 1, None)

    def _launch(self, plan: Any, arguments: list[Operand]) -> None:
        self.plans.append(plan)
        meta = [self._constant(plan.meta), self._constant(plan.count)]
        self.launches.append((plan.entry, [*arguments, *meta]))

    def finish(self, results: Sequence[Operand]) -> Plan:
        """Results are made first, so that what is made on the way is what is left over."""
        rest = [each for each, _ in self.made if each not in results]
        order = {each.number: place for place, each in enumerate([*results, *rest])}
        starts = {"input": 0, "made": len(self.inputs)}
        starts["number"] = starts["made"] + len(self.made)
        starts["constant"] = starts["number"] + len(self.numbers)

        def place(each: Operand) -> int:
            return starts[each.kind] + (order[each.number] if each.kind == "made" else each.number)

        launches = [(entry, itemgetter(*map(place, arguments))) for entry, arguments in self.launches]
        allocators = [self.made[index][1] for index in order]
        return Plan([each.spec for each in results], allocators, launches, self.constants, self.plans)


class Plan(NamedTuple):
    """A program for one combination of specs."""

    results: list[Spec]
    allocators: list[Callable]
    launches: list[tuple[Callable, itemgetter]]
    constants: list[Any]
    keep: list[Any]


class Program:
    """A function of tensors, static arguments and floats, made of kernels; see above."""

    def __init__(self, describe: Callable[..., Sequence[Operand]]):
        self.plans = PlanCache(self._plan)
        self.describe = describe

    def _plan(self, specs: tuple, static: tuple, numbers: int) -> Plan:
        planner = Planner(specs, numbers)
        return planner.finish(self.describe(planner, *static))

    def __call__(
        self, inputs: Sequence[Tensor | None], static: tuple = (), numbers: Sequence[float] = ()
    ) -> list[Tensor]:
        """The results; inputs that are missing are None."""
        specs = tuple([None if each is None else each.spec for each in inputs])
        plan = self.plans[specs, static, len(numbers)]
        values: list[Any] = [0 if each is None else each._storage.ptr + each._start for each in inputs]
        storages = [allocate() for allocate in plan.allocators]
        values += [each.ptr for each in storages]
        values += numbers
        values += plan.constants
        for entry, chosen in plan.launches:
            entry(*chosen(values))
        return [make(storage, 0, spec) for storage, spec in zip(storages, plan.results)]
