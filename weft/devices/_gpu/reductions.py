"""Reductions: threads combine elements, then groups combine the states of their threads in a fixed tree.

The order in which states are combined depends on the sizes and strides only. So a result has the same bits each time, with any number of groups.
A reduction with few results and many elements takes two kernels: the first combines parts of the elements, the second the states of the parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.kernel import ReduceLaunch, param_letters
from ...engine.monoid import Monoid
from .kernel import THREADS
from .states import StateKernel
from .target import Target


class ReduceKernel(NamedTuple):
    """Everything that the code of a reduction depends on.

    Arguments: the addresses of results and inputs, the scalars, `kept` and `reduced` elements, how many elements each part has, how many
    parts there are, the address of states (of the parts), the kept sizes, the reduced sizes, the kept strides of each operand, and the
    reduced strides of each input.
    """

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]
    params: int
    kept_dims: int
    reduced_dims: int
    threads: int  # that work on one result: a power of 2, at most THREADS
    columns: bool  # neighbouring threads work on neighbouring results, not on neighbouring elements
    step: str  # WHOLE, PARTS or STATES
    wide: bool  # positions need 64 bits


WHOLE = "whole"  # elements to results
PARTS = "parts"  # parts of the elements to states
STATES = "states"  # states to results


def state_bytes(monoid: Monoid) -> int:
    """The bytes that a stored state takes."""
    return 8 * len(monoid.identity)


def reduce_ir(target: Target, kernel: ReduceKernel) -> str:
    """The module of the kernel."""
    return _Reduction(target, kernel).ir()


class _Reduction(StateKernel):
    def __init__(self, target: Target, kernel: ReduceKernel):
        super().__init__(target, kernel.monoid, kernel.operand_dtypes)
        self.kernel = kernel
        operands, inputs = len(self.addresses), len(kernel.operand_dtypes)
        self.parameter("unused")  # the place of a table, which the host's loops read
        self.numbers = self.words("x", kernel.params)
        self.kept, self.reduced = self.parameter("kept"), self.parameter("reduced")
        self.part, self.parts = self.parameter("part"), self.parameter("parts")
        self.states = self.parameter("states")
        self.kept_sizes = self.words("k", kernel.kept_dims)
        self.reduced_sizes = self.words("r", kernel.reduced_dims)
        self.kept_strides = [self.words(f"s{k}_", kernel.kept_dims) for k in range(operands)]
        self.reduced_strides = [self.words(f"t{k}_", kernel.reduced_dims) for k in range(inputs)]
        self._write()

    def _write(self) -> None:
        threads = self.kernel.threads
        thread = self.thread()
        together = THREADS // threads  # results that a group works on
        if self.kernel.columns:
            column, lane = self.integer("urem", thread, together), self.integer("udiv", thread, together)
        else:
            column, lane = self.integer("udiv", thread, threads), self.integer("urem", thread, threads)
        rooms = self.new_rooms() if threads > 1 else []
        blocks = self.integer("udiv", self.integer("add", self.kept, together - 1), together)
        work = self.integer("mul", blocks, self.parts)
        # All threads of a group take the same turns, because they meet at barriers.
        with self.loop(self.group(), work, self.groups()) as turn:
            block, part = self.integer("udiv", turn, self.parts), self.integer("urem", turn, self.parts)
            result = self.integer("add", self.integer("mul", block, together), column)
            within = self.let(f"icmp slt i64 {result}, {self.kept}")
            variables = self.new_state()
            with self.when(within):
                self._fold(variables, result, part, lane)
            if threads > 1:
                self._tree(variables, rooms, thread, lane)
            first = self.let(f"icmp eq i64 {lane}, 0")
            with self.when(self.let(f"and i1 {within}, {first}")):
                self._finish(variables, result, part)

    def _fold(self, variables: list[str], result: str, part: str, lane: str) -> None:
        """Combine this thread's elements of a part in their order."""
        start = self.integer("mul", part, self.part)
        end = self.minimum(self.integer("add", start, self.part), self.reduced)
        positions = self.unravel(result, self.kept_sizes, self.kernel.wide)
        starts = [
            self.place(address, positions, strides)
            for address, strides in zip(
                self.addresses[self.outputs :], self.kept_strides[self.outputs :], strict=True
            )
        ]
        with self.loop(self.integer("add", start, lane), end, self.kernel.threads) as i:
            if self.kernel.step == STATES:
                element = self._state(result, i)
            else:
                at = self.unravel(i, self.reduced_sizes, self.kernel.wide)
                element = self.lifted(starts, at, self.reduced_strides, i)
            self.assign(variables, self.combined(self.values(variables), element))

    def _slot(self, result: str, part: str) -> str:
        position = self.integer("add", self.integer("mul", result, self.parts_of_states()), part)
        return self.place(self.states, [position], [state_bytes(self.monoid)])

    def parts_of_states(self) -> str:
        """How many states each result has."""
        return self.reduced if self.kernel.step == STATES else self.parts

    def _state(self, result: str, part: str) -> list[str]:
        address = self._slot(result, part)
        return [self.read(address, each.dtype, 8 * k) for k, each in enumerate(self.monoid.identity)]

    def _tree(self, variables: list[str], rooms: list[str], thread: str, lane: str) -> None:
        """Combine the states of the threads that work on one result: halves, until one is left."""
        self.barrier()  # the states of the turn before have been read
        apart = THREADS // self.kernel.threads if self.kernel.columns else 1
        self.share(rooms, thread, self.values(variables))
        half = self.kernel.threads // 2
        while half:
            self.barrier()
            lower = self.let(f"icmp slt i64 {lane}, {half}")
            with self.when(lower):
                right = self.state_of(rooms, self.integer("add", thread, half * apart))
                after = self.combined(self.values(variables), right)
                self.assign(variables, after)
                self.share(rooms, thread, after)
            half //= 2

    def _finish(self, variables: list[str], result: str, part: str) -> None:
        state = self.values(variables)
        if self.kernel.step == PARTS:
            address = self._slot(result, part)
            for k, (each, value) in enumerate(zip(self.monoid.identity, state, strict=True)):
                self.write(address, each.dtype, value, 8 * k)
            return
        positions = self.unravel(result, self.kept_sizes, self.kernel.wide)
        places = [
            self.place(address, positions, strides)
            for address, strides in zip(
                self.addresses[: self.outputs], self.kept_strides[: self.outputs], strict=True
            )
        ]
        self.finished(state, places, self.numbers)


# ---- Launches --------------------------------------------------------------------------------------------------------------

SERIAL = 32  # elements that a thread combines by itself, before more threads work on a result
NEIGHBOURS = 32  # results that neighbouring threads work on, if these lie side by side in memory
BUSY = 1 << 18  # threads that keep a large GPU busy

Dims = tuple[Sequence[int], Sequence[Sequence[int]]]  # sizes, and the strides of each operand


def prepare_reduction(
    gpu: Any,
    monoid: Monoid,
    operand_dtypes: Sequence[DType],
    params: Sequence[DType],
    kept: Dims,
    reduced: Dims,
    outer: bool,
) -> ReduceLaunch:
    """See `devices/base.py`. Into how many parts the elements are divided depends on the sizes only."""
    results, count = math.prod(kept[0]), math.prod(reduced[0])
    threads = 1
    while threads < (THREADS // NEIGHBOURS if outer else THREADS) and threads * SERIAL < count:
        threads *= 2
    parts = max(1, min(count // (threads * SERIAL), BUSY // max(1, results * threads)))
    part = -(-count // parts)
    parts = max(1, -(-count // max(1, part)))
    whole = ReduceKernel(
        monoid,
        tuple(operand_dtypes),
        len(params),
        len(kept[0]),
        len(reduced[0]),
        threads,
        outer,
        WHOLE,
        max(results, count) >= 1 << 31,
    )
    launch = _Launches(gpu, "p" * len(kept[1]) + "i" + param_letters(params), kept, reduced)
    if parts == 1:
        return launch(whole, results, count, count, 1, 0)
    states = gpu.scratch(results * parts * state_bytes(monoid))
    first = launch(whole._replace(step=PARTS), results, count, part, parts, states.ptr)
    finishing = whole._replace(
        step=STATES, threads=min(THREADS, 1 << (parts - 1).bit_length()), columns=False
    )
    second = launch(finishing, results, parts, parts, 1, states.ptr)

    def entry(*arguments: Any) -> Any:
        first.entry(*arguments[:-2], first.meta, first.count)
        return second.entry(*arguments[:-2], second.meta, second.count)

    return ReduceLaunch(entry, 0, 0, 0, (first, second, states))


class _Launches:
    """Makes the launches of one reduction."""

    def __init__(self, gpu: Any, letters: str, kept: Dims, reduced: Dims):
        self.gpu, self.letters = gpu, letters
        self.kept, self.reduced = kept, reduced

    def __call__(
        self, kernel: ReduceKernel, results: int, count: int, part: int, parts: int, states: int
    ) -> ReduceLaunch:
        runtime = self.gpu.runtime
        loaded = runtime.load(reduce_ir(runtime.target, kernel))
        words = [results, count, part, parts, states, *self.kept[0], *self.reduced[0]]
        words += [stride for dims in (self.kept, self.reduced) for row in dims[1] for stride in row]
        groups = self.gpu.groups(results * kernel.threads * parts)
        launch = runtime.launch(loaded, groups, self.letters, words)
        return ReduceLaunch(launch.entry, 0, launch.meta, launch.count, launch.keepalive)
