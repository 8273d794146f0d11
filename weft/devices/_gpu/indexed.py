"""Gathers, scatters and packs by a mask."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import DType, int16, int32, int64, uint8
from ...core.qscheme import AcceleratorError
from ...engine.kernel import IndexedLaunch, Indexing
from ...engine.loops import Result
from .kernel import THREADS, Kernel, is_wide
from .runtime import Runtime
from .target import Target


class Faults(Sequence):
    """How many launches met an index out of range.

    A kernel sets a word in memory of the host. The host looks at it when it waits for the device anyway, and raises the error then, as PyTorch
    does: waiting after each launch would take longer than most launches. With CUDA_LAUNCH_BLOCKING=1 it waits, so that the call itself raises.
    """

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._waits = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"
        self._count = 0

    @functools.cached_property
    def word(self) -> ctypes.c_int64:
        """Return what kernels set."""
        return self._runtime.host_word()

    @property
    def address(self) -> int:
        return ctypes.addressof(self.word)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, position: Any) -> Any:
        if self._waits:
            self._runtime.synchronize()
            self._count += self._take()
        return self._count

    def _take(self) -> bool:
        """Whether the word is set; it is not afterwards."""
        if "word" not in vars(self) or not self.word.value:
            return False
        self.word.value = 0
        return True

    def check(self) -> None:
        """Look at the word, after the launches are done.

        Raises: AcceleratorError if it is set.
        """
        if not self._waits and self._take():
            raise AcceleratorError(
                "CUDA error: device-side assert triggered: an index of an earlier operation was out of range, and was taken as 0. "
                "With the environment variable CUDA_LAUNCH_BLOCKING=1 that operation raises the error itself."
            )


FEWEST_TURNS = 64  # elements that may meet, before groups look for their own


class IndexedKernel(NamedTuple):
    """Everything that the code of a map whose operands follow indices depends on.

    Arguments: the addresses, a word that is not used, the address of the word for faults, the number of elements, the sizes, the strides of
    each operand, then for each index the size of the dim that it counts along and its step in bytes.
    """

    results: tuple[Result, ...]
    operand_dtypes: tuple[DType, ...]  # of the inputs; the indices come last
    dims: int
    serial: int  # the last dims, whose elements one thread computes in their order
    indices: int
    displaced: tuple[int, ...]
    wrap: bool
    wide: bool
    by_target: bool = False  # each group computes the elements of its own targets, see `_Indexed._by_target`


def indexed_ir(target: Target, kernel: IndexedKernel) -> str:
    """Write the module of the kernel."""
    return _Indexed(target, kernel).ir()


class _Indexed(Kernel):
    def __init__(self, target: Target, kernel: IndexedKernel):
        super().__init__(target)
        self.kernel = kernel
        self.outputs = len(kernel.results)
        operands = self.outputs + len(kernel.operand_dtypes)
        self.addresses = self.words("p", operands)
        self.parameter("unused")  # the place of a table, which the host's loops read
        self.faults = self.parameter("faults")
        self.count, self.turns = self.parameter("n"), self.parameter("turns")
        self.sizes = self.words("d", kernel.dims)
        self.strides = [self.words(f"s{k}", kernel.dims) for k in range(operands)]
        self.limits = self.words("limit", kernel.indices)
        self.steps = self.words("step", kernel.indices)
        self._write()

    def _write(self) -> None:
        bad = self.variable("i64", "0")
        if self.kernel.by_target:
            self._by_target(bad)
        else:
            self._by_position(bad)
        met = self.let(f"icmp ne i64 {self.get(bad, 'i64')}, 0")
        with self.when(met):
            self.write(self.faults, int64, "1")

    def _by_position(self, bad: str) -> None:
        """Each thread computes elements that meet no others; along the serial dims it takes them in their order."""
        first, step = self.first_and_step()
        parallel = self.kernel.dims - self.kernel.serial
        with self.loop(first, self.count, step) as i:
            positions = self.unravel(i, self.sizes[:parallel], self.kernel.wide)
            if not self.kernel.serial:
                self._element(positions, bad)
            else:
                with self.loop(0, self.turns) as turn:
                    rest = self.unravel(turn, self.sizes[parallel:], self.kernel.wide)
                    self._element([*positions, *rest], bad)

    def _by_target(self, bad: str) -> None:
        """Each group looks at all indices, and computes those elements whose displacement belongs to it, in their order.

        So elements that meet are computed one after the other, by one thread, and other groups compute others at the same time.
        """
        parallel = self.kernel.dims - self.kernel.serial
        thread, group, groups = self.thread(), self.group(), self.groups()
        marks, turns, moves = (self.shared(int64, THREADS) for _ in range(3))
        with self.loop(0, self.turns, THREADS) as start:
            turn = self.integer("add", start, thread)
            mine, displacement = self.variable("i64", "0"), self.variable("i64", "0")
            with self.when(self.let(f"icmp slt i64 {turn}, {self.turns}")):
                rest = self.unravel(turn, self.sizes[parallel:], self.kernel.wide)
                self.set(displacement, "i64", self._displacement(["0"] * parallel + rest, bad))
                owner = self.integer("urem", self._mixed(self.get(displacement, "i64")), groups)
                self.set(mine, "i64", self.let(f"zext i1 {self.let(f'icmp eq i64 {owner}, {group}')} to i64"))
            place = self.sum_before(marks, thread, self.get(mine, "i64"))
            with self.when(self.let(f"icmp ne i64 {self.get(mine, 'i64')}, 0")):
                at = self.integer("sub", place, 1)
                self.put(turns, int64, at, turn)
                self.put(moves, int64, at, self.get(displacement, "i64"))
            self.barrier()
            found = self.take(marks, int64, str(THREADS - 1))
            with self.loop(0, found) as k:
                turn, moved = self.take(turns, int64, k), self.take(moves, int64, k)
                rest = self.unravel(turn, self.sizes[parallel:], self.kernel.wide)
                with self.loop(thread, self.count, THREADS) as i:
                    positions = self.unravel(i, self.sizes[:parallel], self.kernel.wide)
                    self._compute([*positions, *rest], moved)
            self.barrier()

    def _mixed(self, value: str) -> str:
        """A number whose remainders spread over the groups, whatever the step between targets is."""
        product = self.integer("mul", value, 0x9E3779B97F4A7C15 - (1 << 64))
        return self.integer("lshr", product, 32)

    def _displacement(self, positions: Sequence[str], bad: str) -> str:
        """Return by how many bytes the indices of an element displace it."""
        total = "0"
        inputs = len(self.addresses) - self.kernel.indices
        for j in range(self.kernel.indices):
            place = self.place(self.addresses[inputs + j], positions, self.strides[inputs + j])
            moved = self._index(place, self.kernel.operand_dtypes[inputs - self.outputs + j], j, bad)
            total = self.integer("add", total, moved)
        return total

    def _element(self, positions: Sequence[str], bad: str) -> None:
        self._compute(positions, self._displacement(positions, bad))

    def _compute(self, positions: Sequence[str], displacement: str) -> None:
        kernel = self.kernel
        places = [
            self.place(address, positions, strides)
            for address, strides in zip(self.addresses, self.strides, strict=True)
        ]
        for k in kernel.displaced:
            places[k] = self.integer("add", places[k], displacement)
        parts = [part for result in kernel.results for part in result.parts]
        self.store(kernel.results, places[: self.outputs], self.elements(parts, places[self.outputs :], ()))

    def _index(self, address: str, dtype: DType, j: int, bad: str) -> str:
        """By how many bytes an index displaces; an index out of range is 0 and makes `bad` true."""
        index = self.read(address, dtype)
        if dtype.itemsize < 8:
            extend = "sext" if dtype.kind == "i" else "zext"
            index = self.let(f"{extend} i{8 * dtype.itemsize} {index} to i64")
        if self.kernel.wrap:
            negative = self.let(f"icmp slt i64 {index}, 0")
            around = self.integer("add", index, self.limits[j])
            index = self.let(f"select i1 {negative}, i64 {around}, i64 {index}")
        fine = self.let(f"icmp ult i64 {index}, {self.limits[j]}")
        self.set(bad, "i64", self.let(f"select i1 {fine}, i64 {self.get(bad, 'i64')}, i64 1"))
        return self.integer("mul", self.let(f"select i1 {fine}, i64 {index}, i64 0"), self.steps[j])


def prepare_indexed(
    gpu: Any,
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
    indexing: Indexing,
) -> IndexedLaunch:
    """See `devices/base.py`.

    Where elements may meet, so that their order matters, one thread computes all that can meet, in their order: along the dims of an output
    that is `apart` where its stride is 0, else along all dims.
    """
    order = list(range(len(sizes)))
    serial = 0
    if results and indexing.in_order and 0 in indexing.displaced:
        apart = [dim for dim in order if indexing.apart and strides[0][dim]]
        together = [dim for dim in order if dim not in apart]
        order, serial = [*apart, *together], len(together)
    sizes = [sizes[dim] for dim in order]
    strides = [[row[dim] for dim in order] for row in strides]
    parallel = len(sizes) - serial
    count, turns = math.prod(sizes[:parallel]), math.prod(sizes[parallel:])
    indices = strides[len(strides) - len(indexing.steps) :]
    by_target = bool(serial) and turns >= FEWEST_TURNS and not any(any(row[:parallel]) for row in indices)
    kernel = IndexedKernel(
        tuple(results),
        tuple(operand_dtypes),
        len(sizes),
        serial,
        len(indexing.steps),
        tuple(indexing.displaced),
        indexing.wrap,
        is_wide(max(count, turns)),
        by_target,
    )
    runtime = gpu.runtime
    loaded = runtime.load(indexed_ir, kernel)
    words = [gpu.faults.address, count, turns, *sizes, *(stride for row in strides for stride in row)]
    words += [*indexing.sizes, *indexing.steps]
    groups = gpu.groups(turns * THREADS if by_target else count)
    launch = runtime.launch(loaded, groups, "p" * len(strides) + "i", words)
    return IndexedLaunch(launch.entry, 0, launch.meta, launch.count, launch.keepalive)


# ---- Packing ---------------------------------------------------------------------------------------------------------------


class PackKernel(NamedTuple):
    """Everything that the code of packing depends on.

    Arguments: the addresses of the target, the source, the mask and the counts of the groups, the room, the number of elements, the sizes, and
    the strides of the operand that has an element for each of the mask, and of the mask.
    """

    nbytes: int  # of an element, or of a row of elements
    itemsize: int
    dims: int
    step: str  # COUNT, SPREAD or GATHER
    wide: bool


_UNITS = {1: uint8, 2: int16, 4: int32, 8: int64}  # what is copied at once
COUNT = "count"  # store how many elements of each group the mask selects
GATHER = "gather"  # copy those to consecutive places
SPREAD = "spread"  # copy from there


def pack_ir(target: Target, kernel: PackKernel) -> str:
    """Write the module of the kernel."""
    return _Pack(target, kernel).ir()


class _Pack(Kernel):
    """Each group has THREADS neighbouring elements."""

    def __init__(self, target: Target, kernel: PackKernel):
        super().__init__(target)
        self.kernel = kernel
        self.target_address, self.source, self.mask = self.words("p", 3)
        self.counts, self.capacity, self.count = (self.parameter(name) for name in ("counts", "room", "n"))
        self.sizes = self.words("d", kernel.dims)
        self.strides, self.marks = self.words("s", kernel.dims), self.words("m", kernel.dims)
        self._write()

    def _write(self) -> None:
        thread = self.thread()
        room = self.shared(int64, THREADS)
        blocks = self.integer("udiv", self.integer("add", self.count, THREADS - 1), THREADS)
        with self.loop(self.group(), blocks, self.groups()) as block:
            i = self.integer("add", self.integer("mul", block, THREADS), thread)
            within = self.let(f"icmp slt i64 {i}, {self.count}")
            chosen = self.variable("i64", "0")
            positions = self.unravel(i, self.sizes, self.kernel.wide)
            with self.when(within):
                mark = self.read(self.place(self.mask, positions, self.marks), uint8)
                self.set(chosen, "i64", self.let(f"zext i1 {self.let(f'icmp ne i8 {mark}, 0')} to i64"))
            total = self.sum_before(room, thread, self.get(chosen, "i64"))
            place = self.place(self.counts, [block], [8])
            if self.kernel.step == COUNT:
                last = self.let(f"icmp eq i64 {thread}, {THREADS - 1}")
                with self.when(last):
                    self.write(place, int64, total)
            else:
                before = self.integer("add", self.read(place, int64), total)
                self._move(self.get(chosen, "i64"), self.integer("sub", before, 1), positions)
            self.barrier()

    def _move(self, chosen: str, at: str, positions: Sequence[str]) -> None:
        """Copy this thread's element if it is chosen and there is room."""
        selected = self.let(f"icmp ne i64 {chosen}, 0")
        fits = self.let(f"icmp slt i64 {at}, {self.capacity}")
        with self.when(self.let(f"and i1 {selected}, {fits}")):
            spread = self.kernel.step == SPREAD
            whole = self.place(self.target_address if spread else self.source, positions, self.strides)
            packed = self.place(self.source if spread else self.target_address, [at], [self.kernel.nbytes])
            read, write = (packed, whole) if spread else (whole, packed)
            unit = _UNITS[min(self.kernel.itemsize, 8)]
            with self.loop(0, self.kernel.nbytes, unit.itemsize) as offset:
                value = self.read(self.integer("add", read, offset), unit)
                self.write(self.integer("add", write, offset), unit, value)


def prepare_pack(
    gpu: Any, nbytes: int, itemsize: int, spread: bool, sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Callable[[int, int, int, int], int]:
    """See `devices/base.py`. The host adds the counts of the groups, and waits for them in any case."""
    count = math.prod(sizes)
    blocks = -(-count // THREADS)
    counts = gpu.lasting(8 * blocks)
    runtime = gpu.runtime
    words = [count, *sizes, *strides[0 if spread else 1], *strides[2]]
    kernel = PackKernel(nbytes, itemsize, len(sizes), COUNT, is_wide(count))
    moving = kernel._replace(step=SPREAD if spread else GATHER)
    counter, mover = (
        runtime.launch(runtime.load(pack_ir, each), gpu.groups(count), "pppii", words)
        for each in (kernel, moving)
    )

    def launch(target: int, source: int, mask: int, room: int) -> int:
        with gpu.in_order:
            counter.entry(target, source, mask, counts.ptr, room, counter.meta, counter.count)
            found = np.frombuffer(runtime.read(counts.ptr, 8 * blocks), np.int64)
            before = np.cumsum(found) - found
            runtime.write(counts.ptr, before)
            mover.entry(target, source, mask, counts.ptr, room, mover.meta, mover.count)
        return int(found.sum())

    return launch
