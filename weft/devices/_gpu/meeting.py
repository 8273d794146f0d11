"""Writes by index whose elements may meet: those that meet are computed in their order, and others at the same time.

The indices do not depend on the parallel dims, so an element of the serial dims, a *turn*, has one target, of `count` elements. Of few turns
each group looks at all, and computes those whose target belongs to it. Many turns are sorted by their targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, int64, uint32, uint64
from ...engine.expr import Expr, postorder
from ...engine.kernel import IndexedLaunch
from ...engine.llvm import emit, value_type
from .displaced import Displaced, IndexedKernel
from .kernel import THREADS, place_of
from .sorting import BITS, sorted_rows
from .target import Target

AT_ONCE = 8  # elements of a target that are loaded before they are combined, to wait once for them


def by_target_ir(target: Target, kernel: IndexedKernel) -> str:
    """Return the module of a kernel whose groups compute the elements of their own targets."""
    return _ByTarget(target, kernel).ir()


class _ByTarget(Displaced):
    def write_all(self, bad: str) -> None:
        """Each group looks at all turns, and computes those whose displacement belongs to it, in their order."""
        thread, group, groups = self.thread(), self.group(), self.groups()
        marks, turns, moves = (self.shared(int64, THREADS) for _ in range(3))
        with self.loop(0, self.turns, THREADS) as start:
            turn = self.integer("add", start, thread)
            mine, displacement = self.variable("i64", "0"), self.variable("i64", "0")
            with self.when(self.let(f"icmp slt i64 {turn}, {self.turns}")):
                moved = self.displacement(["0"] * self.parallel + self.rest(turn), bad)
                self.set(displacement, "i64", moved)
                owner = self.integer("urem", self._mixed(moved), groups)
                self.set(mine, "i64", self.let(f"zext i1 {self.let(f'icmp eq i64 {owner}, {group}')} to i64"))
            place = self.sum_before(marks, thread, self.get(mine, "i64"))
            with self.when(self.let(f"icmp ne i64 {self.get(mine, 'i64')}, 0")):
                at = self.integer("sub", place, 1)
                self.put(turns, int64, at, turn)
                self.put(moves, int64, at, self.get(displacement, "i64"))
            self.barrier()
            with self.loop(0, self.take(marks, int64, str(THREADS - 1))) as k:
                turn, moved = self.take(turns, int64, k), self.take(moves, int64, k)
                rest = self.rest(turn)
                with self.loop(thread, self.count, THREADS) as i:
                    positions = self.unravel(i, self.sizes[: self.parallel], self.kernel.wide)
                    self.compute([*positions, *rest], moved)
            self.barrier()

    def _mixed(self, value: str) -> str:
        """A number whose remainders spread over the groups, whatever the step between targets is."""
        product = self.integer("mul", value, 0x9E3779B97F4A7C15 - (1 << 64))
        return self.integer("lshr", product, 32)


# ---- Sorted by target ------------------------------------------------------------------------------------------------------


class TargetsKernel(NamedTuple):
    """A kernel that stores the number of the target of each turn. The other address is that of these numbers."""

    map: IndexedKernel
    dtype: DType  # of the numbers
    apart: int  # the first dims, so many: turns at different positions along them have different targets


class RunsKernel(NamedTuple):
    """A kernel that computes turns in an order in which those of a target are neighbours.

    The other addresses are those of the order and of the targets in this order.
    """

    map: IndexedKernel
    dtype: DType  # of the targets


def targets_ir(target: Target, kernel: TargetsKernel) -> str:
    """Return the module of the kernel."""
    return _Targets(target, kernel).ir()


def runs_ir(target: Target, kernel: RunsKernel) -> str:
    """Return the module of the kernel."""
    return _Runs(target, kernel).ir()


class _Targets(Displaced):
    rooms = 1

    def __init__(self, target: Target, kernel: TargetsKernel):
        self.dtype, self.apart = kernel.dtype, kernel.apart
        super().__init__(target, kernel.map)

    def write_all(self, bad: str) -> None:
        first, step = self.first_and_step()
        with self.loop(first, self.turns, step) as turn:
            positions = ["0"] * self.parallel + self.rest(turn)
            indices = [*positions[: self.apart], *self.found(positions, bad)]
            number = "0"
            for index, size in zip(indices, [*self.sizes[: self.apart], *self.limits], strict=True):
                number = self.integer("add", self.integer("mul", number, size), index)
            if self.dtype.itemsize < 8:
                number = self.let(f"trunc i64 {number} to i32")
            self.write(self.place(self.others[0], [turn], [self.dtype.itemsize]), self.dtype, number)


class _Runs(Displaced):
    rooms = 2

    def __init__(self, target: Target, kernel: RunsKernel):
        self.dtype = kernel.dtype
        super().__init__(target, kernel.map)

    def write_all(self, bad: str) -> None:
        """Each group takes some turns, finds those with which it computes a target, and computes the elements of all these targets."""
        thread, groups = self.thread(), self.groups()
        marks, chosen = self.shared(int64, THREADS), self.shared(int64, THREADS)
        together = self.minimum(self.maximum(self.integer("udiv", self.turns, groups), 1), THREADS)
        # What combines begins with the first turn of a target; else only the last one is left.
        combines = len(self.kernel.displaced) > 1
        rounds = self.integer(
            "udiv", self.integer("add", self.turns, self.integer("sub", together, 1)), together
        )
        with self.loop(self.group(), rounds, groups) as round:
            at = self.integer("add", self.integer("mul", round, together), thread)
            mine = self.variable("i64", "0")
            within = self.let(f"icmp slt i64 {at}, {self.turns}")
            with self.when(self.let(f"and i1 {within}, {self.let(f'icmp slt i64 {thread}, {together}')}")):
                meets = self._meets(at, self.integer("add", at, -1 if combines else 1))
                self.set(mine, "i64", self.let(f"select i1 {meets}, i64 0, i64 1"))
            place = self.sum_before(marks, thread, self.get(mine, "i64"))
            with self.when(self.let(f"icmp ne i64 {self.get(mine, 'i64')}, 0")):
                self.put(chosen, int64, self.integer("sub", place, 1), at)
            self.barrier()
            found = self.take(marks, int64, str(THREADS - 1))
            with self.loop(thread, self.integer("mul", found, self.count), THREADS) as i:
                which, *positions = self.unravel(i, [found, *self.sizes[: self.parallel]], self.kernel.wide)
                self._compute_target(self.take(chosen, int64, which), positions, combines, bad)
            self.barrier()

    def _compute_target(self, at: str, positions: Sequence[str], combines: bool, bad: str) -> None:
        if combines:
            self._combine(at, positions, bad)
        else:
            place = [*positions, *self._turn(at)]
            self.compute(place, self.displacement(place, bad))

    def _meets(self, at: str, other: str) -> str:
        """Whether there is another turn, and it has the target of this one."""
        inside = self.let(f"icmp ult i64 {other}, {self.turns}")
        places = at, self.let(f"select i1 {inside}, i64 {other}, i64 {at}")
        keys = [
            self.read(self.place(self.others[1], [each], [self.dtype.itemsize]), self.dtype)
            for each in places
        ]
        same = self.let(f"icmp eq {value_type(self.dtype)} {keys[0]}, {keys[1]}")
        return self.let(f"and i1 {inside}, {same}")

    def _turn(self, at: str) -> list[str]:
        return self.rest(self.read(self.place(self.others[0], [at], [8]), int64))

    def _combine(self, first: str, positions: Sequence[str], bad: str) -> None:
        """Combine an element of a target with those of all turns, in a register."""
        start = [*positions, *self._turn(first)]
        places = self.places(start, self.displacement(start, bad))
        parts = self.parts()
        leaves = [leaf for leaf in postorder(tuple(parts)) if leaf.op == "load"]
        kinds, offsets = [value_type(part.dtype) for part in parts], [0, parts[0].dtype.itemsize]
        state = [
            self.variable(kind, self.read(places[self.outputs], part.dtype, offset))
            for kind, part, offset in zip(kinds, parts, offsets, strict=False)
        ]
        at = self.variable("i64", first)
        for many in (AT_ONCE, 1):
            with self.repeat() as go_on_if:
                now = self.get(at, "i64")
                go_on_if(self._meets(first, self.integer("add", now, many - 1)))
                values = [self._values(self.integer("add", now, k), positions, leaves) for k in range(many)]
                for names in values:
                    for leaf in leaves:
                        operand, offset = place_of(leaf)
                        if operand == 0:
                            part = offsets.index(offset)
                            names[leaf] = self.get(state[part], kinds[part])
                    for variable, kind, value in zip(state, kinds, emit(self, parts, names), strict=True):
                        self.set(variable, kind, value)
                self.set(at, "i64", self.integer("add", now, many))
        combined = [self.get(variable, kind) for variable, kind in zip(state, kinds, strict=True)]
        self.store(self.kernel.results, places[: self.outputs], combined)

    def _values(self, at: str, positions: Sequence[str], leaves: Sequence[Expr]) -> dict[Expr, str]:
        """Return what a turn combines its target with."""
        places = self.places([*positions, *self._turn(at)], "0")[self.outputs :]
        names = {}
        for leaf in leaves:
            operand, offset = place_of(leaf)
            if operand:
                names[leaf] = self.read(places[operand], leaf.dtype, offset)
        return names


def prepare_sorted(
    gpu: Any, kernel: IndexedKernel, count: int, turns: int, words: Sequence[int], targets: int, apart: int
) -> IndexedLaunch:
    """A launch that sorts turns by their targets, of which there are at most so many.

    kernel, count, turns and words are as those of a kernel that does not sort; apart: see `TargetsKernel`.
    """
    runtime, letters = gpu.runtime, "p" * (len(kernel.results) + len(kernel.operand_dtypes)) + "i"
    dtype = uint32 if targets <= 1 << 32 else uint64
    passes = 1
    while targets > 1 << BITS * passes:
        passes += 1
    sort: Any
    sort, nbytes = sorted_rows(gpu, 8 * dtype.itemsize, 1, turns, turns, passes, has_keys=True)
    numbers = runtime.load(targets_ir, TargetsKernel(kernel, dtype, apart))
    number = runtime.launch(numbers, gpu.groups(turns), letters + "p", words)
    runs = runtime.load(runs_ir, RunsKernel(kernel, dtype))
    compute = runtime.launch(runs, gpu.groups(turns * count), letters + "pp", words)
    order, keys = 8 * turns, -(-turns * dtype.itemsize // 8) * 8

    def entry(*arguments: Any) -> Any:
        storage = gpu.allocate(order + 2 * keys + nbytes)
        ordered, found = storage.ptr, storage.ptr + order
        number.entry(*arguments[:-2], found + keys, number.meta, number.count)
        sort.entry(ordered, found, found + keys, found + 2 * keys, sort.meta, sort.count)
        return compute.entry(*arguments[:-2], ordered, found, compute.meta, compute.count)

    return IndexedLaunch(entry, 0, 0, 0, (number, sort, compute))
