"""Kernels over states of a monoid: reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.dtype import DType
from ...engine.expr import Expr, postorder
from ...engine.llvm import constant, emit, value_type
from ...engine.monoid import Monoid, index
from .kernel import THREADS, Kernel, place_of


class StateLoop:
    """A loop that combines states, for a body. A state is a list of values, or of variables."""

    def __init__(self, body: Kernel, monoid: Monoid, inputs: Sequence[DType]):
        self.body, self.monoid = body, monoid
        self.outputs = len(monoid.finish)
        self.addresses = self.body.words("p", self.outputs + len(inputs))
        self.kinds = [value_type(each.dtype) for each in monoid.identity]

    def new_state(self) -> list[str]:
        """Variables with the state of no elements."""
        return [
            self.body.variable(kind, constant(each.dtype, each.value))
            for kind, each in zip(self.kinds, self.monoid.identity, strict=True)
        ]

    def values(self, variables: Sequence[str]) -> list[str]:
        return [self.body.get(variable, kind) for variable, kind in zip(variables, self.kinds, strict=True)]

    def assign(self, variables: Sequence[str], values: Sequence[str]) -> None:
        for variable, kind, value in zip(variables, self.kinds, values, strict=True):
            self.body.set(variable, kind, value)

    def combined(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        names = dict(zip(self.monoid.left, left, strict=True))
        return emit(self.body, self.monoid.combine, names | dict(zip(self.monoid.right, right, strict=True)))

    def appended(self, state: Sequence[str], element: Sequence[str]) -> list[str]:
        """The state with that of one element, which is behind those of the state."""
        names = dict(zip(self.monoid.left, state, strict=True))
        return emit(self.body, self.monoid.append, names | dict(zip(self.monoid.right, element, strict=True)))

    def lifted(
        self, starts: Sequence[str], positions: Sequence[str], strides: Sequence[Sequence[str]], position: str
    ) -> list[str]:
        """The state of an element: inputs at `starts`, moved by positions times strides. `position`: its number along the reduced dims."""
        names: dict[Expr, str] = {}
        for leaf in postorder(self.monoid.to_state):
            if leaf is index():
                names[leaf] = position
            elif leaf.op == "load":
                operand, offset = place_of(leaf)
                address = self.body.place(starts[operand], positions, strides[operand])
                names[leaf] = self.body.read(address, leaf.dtype, offset)
        return emit(self.body, self.monoid.to_state, names)

    def finished(self, state: Sequence[str], places: Sequence[str], numbers: Sequence[str] = ()) -> None:
        """Store the results of a state. numbers: the scalar arguments."""
        names: dict[Expr, str] = dict(zip(self.monoid.left, state, strict=True))
        exprs = [part for each in self.monoid.finish for part in each.parts]
        for leaf in postorder(tuple(exprs)):
            if leaf.op == "param":
                names[leaf] = self.body.number(numbers[leaf.value], leaf.dtype)
        self.body.store(self.monoid.finish, places, emit(self.body, exprs, names))

    # ---- Memory of the group -----------------------------------------------------------------------------------------------

    def new_rooms(self) -> list[str]:
        """Return memory of the group for a state of each thread."""
        return [self.body.shared(each.dtype, THREADS) for each in self.monoid.identity]

    def share(self, rooms: Sequence[str], thread: str, state: Sequence[str]) -> None:
        """Store the state of a thread in memory of the group."""
        for room, each, value in zip(rooms, self.monoid.identity, state, strict=True):
            self.body.put(room, each.dtype, thread, value)

    def state_of(self, rooms: Sequence[str], thread: str) -> list[str]:
        """The state that a thread has stored there."""
        return [
            self.body.take(room, each.dtype, thread)
            for room, each in zip(rooms, self.monoid.identity, strict=True)
        ]
