"""Reductions: threads combine elements, then groups combine the states of their threads in a fixed tree.

The order in which states are combined depends on the sizes and strides only. So a result has the same bits each time, with any number of groups.
A reduction with few results and many elements takes two kernels: the first combines parts of the elements, the second the states of the parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.expr import Expr, postorder
from ...engine.kernel import ReduceLaunch, param_letters
from ...engine.llvm import emit, memory_type
from ...engine.monoid import Monoid, index
from .kernel import THREADS, Kernel, is_wide
from .maps import VECTOR_BYTES
from .stages import GpuStage, cut
from .states import StateLoop
from .target import Target


class ReduceKernel(NamedTuple):
    """Everything that the code of a reduction depends on.

    Arguments: the addresses of results and inputs, the scalars, the address of states (of the parts), `kept` and `reduced` elements, how many
    elements each part has, how many parts there are, the kept sizes, the reduced sizes, the kept strides of each operand, and the
    reduced strides of each input.
    """

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]
    params: int
    kept_dims: int
    reduced_dims: int
    threads: int  # that work on one result: a power of 2, at most THREADS
    columns: bool  # neighbouring threads work on neighbouring results, not on neighbouring elements
    lanes: int  # neighbouring elements that a thread loads at once; 1 if the elements of a result are no run, or are small numbers of them
    step: str  # WHOLE, PARTS or STATES
    wide: bool  # positions need 64 bits


WHOLE = "whole"  # elements to results
PARTS = "parts"  # parts of the elements to states
STATES = "states"  # states to results


def state_bytes(monoid: Monoid) -> int:
    """The bytes that a stored state takes."""
    return 8 * len(monoid.identity)


def reduce_ir(target: Target, kernel: ReduceKernel) -> str:
    """Write the module of the kernel."""
    body = Kernel(target)
    ReduceLoop(body, kernel).write_all()
    return body.ir()


class ReduceLoop(StateLoop):
    """Writes the loop of a reduction, for a body."""

    def __init__(self, body: Kernel, kernel: ReduceKernel):
        super().__init__(body, kernel.monoid, kernel.operand_dtypes)
        self.kernel = kernel
        operands, inputs = len(self.addresses), len(kernel.operand_dtypes)
        self.body.parameter("unused")  # the place of a table, which the host's loops read
        self.numbers = self.body.words("x", kernel.params)
        self.states = self.body.parameter("states")
        self.kept, self.reduced = self.body.parameter("kept"), self.body.parameter("reduced")
        self.part, self.parts = self.body.parameter("part"), self.body.parameter("parts")
        self.kept_sizes = self.body.words("k", kernel.kept_dims)
        self.reduced_sizes = self.body.words("r", kernel.reduced_dims)
        self.kept_strides = [self.body.words(f"s{k}", kernel.kept_dims) for k in range(operands)]
        self.reduced_strides = [self.body.words(f"t{k}", kernel.reduced_dims) for k in range(inputs)]
        self.rooms = self.new_rooms() if kernel.threads > 1 else []
        self.together = THREADS // kernel.threads  # results that a group works on
        thread = self.thread = body.thread()
        by, threads = (self.together, kernel.threads)
        if kernel.columns:
            self.column, self.lane = body.integer("urem", thread, by), body.integer("udiv", thread, by)
        else:
            self.column, self.lane = (
                body.integer("udiv", thread, threads),
                body.integer("urem", thread, threads),
            )

    def write_all(self) -> None:
        """Write all results and parts, shared among the groups."""
        body = self.body
        blocks = body.integer("udiv", body.integer("add", self.kept, self.together - 1), self.together)
        # All threads of a group take the same turns, because they meet at barriers.
        with body.loop(body.group(), body.integer("mul", blocks, self.parts), body.groups()) as turn:
            block, part = body.integer("udiv", turn, self.parts), body.integer("urem", turn, self.parts)
            first = body.integer("mul", block, self.together)
            self._results(first, self.kept, part)

    def write(self, begin: str, end: str) -> None:
        """The results from `begin` on, before `end`, by this group."""
        with self.body.loop(begin, end, self.together) as first:
            self._results(first, end, "0")

    def _results(self, first: str, end: str, part: str) -> None:
        """As many results as the group works on at once."""
        body = self.body
        result = body.integer("add", first, self.column)
        within = body.let(f"icmp slt i64 {result}, {end}")
        variables = self.new_state()
        with body.when(within):
            self._fold(variables, result, part)
        if self.rooms:
            self._tree(variables)
        stores = body.let(f"and i1 {within}, {body.let(f'icmp eq i64 {self.lane}, 0')}")
        with body.when(stores):
            self._finish(variables, result, part)

    def _fold(self, variables: list[str], result: str, part: str) -> None:
        """Combine this thread's elements of a part in their order. Several are loaded before they are combined, to wait once for them."""
        body, threads = self.body, self.kernel.threads
        start = body.integer("mul", part, self.part)
        end = body.minimum(body.integer("add", start, self.part), self.reduced)
        positions = body.unravel(result, self.kept_sizes, self.kernel.wide)
        starts = [
            body.place(address, positions, strides)
            for address, strides in zip(
                self.addresses[self.outputs :], self.kept_strides[self.outputs :], strict=True
            )
        ]
        if self.kernel.lanes > 1 and self.kernel.step != STATES:
            start = self._fold_vectors(variables, starts, start, end)
            self._fold_each(variables, starts, result, (body.integer("add", start, self.lane), end), 1)
            return
        first = body.integer("add", start, self.lane)
        steps = body.integer(
            "sdiv", body.integer("sub", body.integer("add", end, threads - 1), first), threads
        )
        many = body.integer("mul", body.integer("sdiv", steps, AT_ONCE), AT_ONCE * threads)
        middle = body.integer("add", first, body.maximum(many, 0))
        self._fold_each(variables, starts, result, (first, middle), AT_ONCE)
        self._fold_each(variables, starts, result, (middle, end), 1)

    def _fold_each(
        self, variables: list[str], starts: Sequence[str], result: str, bounds: tuple[str, str], at_once: int
    ) -> None:
        """Combine every element of this thread between two bounds, so many at once."""
        body, threads = self.body, self.kernel.threads
        with body.loop(*bounds, at_once * threads) as i:
            elements = [
                self._element(starts, result, body.integer("add", i, threads * k)) for k in range(at_once)
            ]
            for element in elements:
                self._add(variables, element)

    def _fold_vectors(self, variables: list[str], starts: Sequence[str], start: str, end: str) -> str:
        """Combine whole vectors of neighbouring elements. Returns the first element that is left.

        Where memory is not aligned for vectors, the same elements are loaded one by one, so that the order is the same.
        """
        body, lanes = self.body, self.kernel.lanes
        vectors = body.integer("sdiv", body.integer("sub", end, start), lanes)
        together = "0"
        for address, dtype in zip(starts, self.kernel.operand_dtypes, strict=True):
            place = body.place(address, [start], [dtype.itemsize])
            together = body.integer("or", together, body.integer("and", place, dtype.itemsize * lanes - 1))
        aligned = body.let(f"icmp eq i64 {together}, 0")
        whole = body.let(f"select i1 {aligned}, i64 {vectors}, i64 0")
        with body.loop(self.lane, whole, self.kernel.threads) as vector:
            for element in self._load_vector(
                starts, body.integer("add", start, body.integer("mul", vector, lanes))
            ):
                self._add(variables, element)
        apart = body.let(f"select i1 {aligned}, i64 0, i64 {vectors}")
        with body.loop(self.lane, apart, self.kernel.threads) as vector:
            first = body.integer("add", start, body.integer("mul", vector, lanes))
            with body.loop(first, body.integer("add", first, lanes)) as i:
                element = self.lifted(starts, [i], self.reduced_strides, i)
                self._add(variables, element)
        return body.integer("add", start, body.integer("mul", vectors, lanes))

    def _add(self, variables: list[str], element: list[str]) -> None:
        """Combine with an element that is behind those of this thread, or with the state of a part."""
        combine = self.combined if self.kernel.step == STATES else self.appended
        self.assign(variables, combine(self.values(variables), element))

    def _load_vector(self, starts: Sequence[str], i: str) -> list[list[str]]:
        """Return the states of a vector of elements."""
        body, lanes = self.body, self.kernel.lanes
        loaded: dict[Expr, str] = {}
        for leaf in postorder(self.monoid.to_state):
            if leaf.op == "load" and leaf is not index():
                place = body.place(starts[leaf.value], [i], [leaf.dtype.itemsize])
                kind, size = memory_type(leaf.dtype), leaf.dtype.itemsize * lanes
                pointer = body.pointer(place)
                loaded[leaf] = body.let(f"load <{lanes} x {kind}>, ptr addrspace(1) {pointer}, align {size}")
        found = []
        for lane in range(lanes):
            names = {leaf: body.lane_of(vector, leaf.dtype, lane, lanes) for leaf, vector in loaded.items()}
            names[index()] = body.integer("add", i, lane)
            found.append(emit(body, self.monoid.to_state, names))
        return found

    def _element(self, starts: Sequence[str], result: str, i: str) -> list[str]:
        if self.kernel.step == STATES:
            return self._state(result, i)
        at = self.body.unravel(i, self.reduced_sizes, self.kernel.wide)
        return self.lifted(starts, at, self.reduced_strides, i)

    def _slot(self, result: str, part: str) -> str:
        position = self.body.integer("add", self.body.integer("mul", result, self.parts_of_states()), part)
        return self.body.place(self.states, [position], [state_bytes(self.monoid)])

    def parts_of_states(self) -> str:
        """How many states each result has."""
        return self.reduced if self.kernel.step == STATES else self.parts

    def _state(self, result: str, part: str) -> list[str]:
        address = self._slot(result, part)
        return [self.body.read(address, each.dtype, 8 * k) for k, each in enumerate(self.monoid.identity)]

    def _tree(self, variables: list[str]) -> None:
        """Combine the states of the threads that work on one result: halves, until one is left."""
        body = self.body
        body.barrier()  # the states of the turn before have been read
        apart = self.together if self.kernel.columns else 1
        self.share(self.rooms, self.thread, self.values(variables))
        half = self.kernel.threads // 2
        while half:
            body.barrier()
            lower = body.let(f"icmp slt i64 {self.lane}, {half}")
            with body.when(lower):
                right = self.state_of(self.rooms, body.integer("add", self.thread, half * apart))
                after = self.combined(self.values(variables), right)
                self.assign(variables, after)
                self.share(self.rooms, self.thread, after)
            half //= 2

    def _finish(self, variables: list[str], result: str, part: str) -> None:
        state = self.values(variables)
        if self.kernel.step == PARTS:
            address = self._slot(result, part)
            for k, (each, value) in enumerate(zip(self.monoid.identity, state, strict=True)):
                self.body.write(address, each.dtype, value, 8 * k)
            return
        positions = self.body.unravel(result, self.kept_sizes, self.kernel.wide)
        places = [
            self.body.place(address, positions, strides)
            for address, strides in zip(
                self.addresses[: self.outputs], self.kept_strides[: self.outputs], strict=True
            )
        ]
        self.finished(state, places, self.numbers)


# ---- Launches --------------------------------------------------------------------------------------------------------------

FEWEST_VECTORS = 2  # for each thread, before it loads vectors
AT_ONCE = 4  # elements that a thread loads before it combines them
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
        _lanes(monoid, operand_dtypes, reduced, count // parts, threads),
        WHOLE,
        is_wide(max(results, count)),
    )
    launch = _Launches(gpu, "p" * len(kept[1]) + "i" + param_letters(params), kept, reduced)
    if parts == 1:
        return launch(whole, results, count, count, 1)
    allocate = gpu.allocator(results * parts * state_bytes(monoid))
    first = launch(whole._replace(step=PARTS), results, count, part, parts)
    finishing = whole._replace(
        step=STATES, threads=min(THREADS, 1 << (parts - 1).bit_length()), columns=False
    )
    second = launch(finishing, results, parts, parts, 1)

    def entry(*arguments: Any) -> Any:
        states = allocate()
        first.entry(*arguments[:-2], states.ptr, first.meta, first.count)
        return second.entry(*arguments[:-2], states.ptr, second.meta, second.count)

    return ReduceLaunch(entry, 0, 0, 0, (first, second))


def _lanes(monoid: Monoid, operand_dtypes: Sequence[DType], reduced: Dims, count: int, threads: int) -> int:
    """Return how many neighbouring elements a thread loads at once."""
    leaves = [leaf for leaf in postorder(monoid.to_state) if leaf.op == "load" and leaf is not index()]
    runs = len(reduced[0]) == 1 and all(
        row[0] == dtype.itemsize for row, dtype in zip(reduced[1], operand_dtypes, strict=True)
    )
    if not runs or any(isinstance(leaf.value, tuple) for leaf in leaves):
        return 1
    lanes = VECTOR_BYTES // max(dtype.itemsize for dtype in operand_dtypes)
    return lanes if lanes > 1 and count >= FEWEST_VECTORS * lanes * threads else 1


class _Launches:
    """Makes the launches of one reduction."""

    def __init__(self, gpu: Any, letters: str, kept: Dims, reduced: Dims):
        self.gpu, self.letters = gpu, letters
        self.kept, self.reduced = kept, reduced

    def __call__(self, kernel: ReduceKernel, results: int, count: int, part: int, parts: int) -> ReduceLaunch:
        runtime = self.gpu.runtime
        loaded = runtime.load(reduce_ir, kernel)
        words = [results, count, part, parts, *self.kept[0], *self.reduced[0]]
        words += [stride for dims in (self.kept, self.reduced) for row in dims[1] for stride in row]
        groups = self.gpu.groups(results * kernel.threads * parts)
        if kernel.step != WHOLE:
            launch = runtime.launch(loaded, groups, self.letters + "p", words)
            return ReduceLaunch(launch.entry, 0, launch.meta, launch.count, launch.keepalive)
        words = [0, *words]  # there are no states in memory
        launch = runtime.launch(loaded, groups, self.letters, words)
        geometry = cut(self.letters, len(kernel.monoid.finish), *self.kept, results * count, self.reduced)
        keepalive = GpuStage(kernel, self.letters, tuple(words), geometry, launch)
        return ReduceLaunch(launch.entry, 0, launch.meta, launch.count, keepalive)
