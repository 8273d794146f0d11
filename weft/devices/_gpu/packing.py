"""Packs by a mask: what it selects is copied to consecutive places, or from there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import int16, int32, int64, uint8
from .kernel import THREADS, Kernel, is_wide
from .target import Target


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
    allocate = gpu.allocator(8 * blocks)
    runtime = gpu.runtime
    words = [count, *sizes, *strides[0 if spread else 1], *strides[2]]
    kernel = PackKernel(nbytes, itemsize, len(sizes), COUNT, is_wide(count))
    moving = kernel._replace(step=SPREAD if spread else GATHER)
    counter, mover = (
        runtime.launch(runtime.load(pack_ir, each), gpu.groups(count), "pppii", words)
        for each in (kernel, moving)
    )

    def launch(target: int, source: int, mask: int, room: int) -> int:
        counts = allocate()
        counter.entry(target, source, mask, counts.ptr, room, counter.meta, counter.count)
        found = np.frombuffer(runtime.read(counts.ptr, 8 * blocks), np.int64)
        if room:  # else the caller only counts
            runtime.write(counts.ptr, np.cumsum(found) - found)
            mover.entry(target, source, mask, counts.ptr, room, mover.meta, mover.count)
        return int(found.sum())

    return launch
