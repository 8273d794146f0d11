"""Scans: one group for each row. It takes as many elements as it has threads, combines each with those before it, and goes on behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.kernel import Launch
from ...engine.monoid import Monoid
from .kernel import THREADS
from .states import StateKernel
from .target import Target


class ScanKernel(NamedTuple):
    """Everything that the code of a scan depends on.

    Arguments: the addresses, the number of rows, the elements of a row, the outer sizes, and the strides of each operand.
    """

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]
    outer_dims: int
    wide: bool


def scan_ir(target: Target, kernel: ScanKernel) -> str:
    """The module of the kernel."""
    return _Scan(target, kernel).ir()


class _Scan(StateKernel):
    def __init__(self, target: Target, kernel: ScanKernel):
        super().__init__(target, kernel.monoid, kernel.operand_dtypes)
        self.kernel = kernel
        self.rows, self.length = self.parameter("rows"), self.parameter("length")
        self.sizes = self.words("d", kernel.outer_dims)
        self.strides = [self.words(f"s{k}_", kernel.outer_dims + 1) for k in range(len(self.addresses))]
        self._write()

    def _write(self) -> None:
        thread = self.thread()
        rooms = self.new_rooms()
        with self.loop(self.group(), self.rows, self.groups()) as row:
            positions = self.unravel(row, self.sizes, self.kernel.wide)
            starts = [
                self.place(address, positions, strides[:-1])
                for address, strides in zip(self.addresses, self.strides, strict=True)
            ]
            before = self.new_state()
            with self.loop(0, self.length, THREADS) as first:
                self._elements(before, rooms, starts, thread, first)

    def _elements(
        self, before: list[str], rooms: list[str], starts: list[str], thread: str, first: str
    ) -> None:
        """Scan the THREADS elements from `first` on, behind the state `before`, which becomes that of the last of them."""
        i = self.integer("add", first, thread)
        within = self.let(f"icmp slt i64 {i}, {self.length}")
        own = self.new_state()
        with self.when(within):
            last_strides = [strides[-1:] for strides in self.strides[self.outputs :]]
            self.assign(own, self.lifted(starts[self.outputs :], [i], last_strides, i))
        self.share(rooms, thread, self.values(own))
        distance = 1
        while distance < THREADS:
            self.barrier()
            behind = self.let(f"icmp sge i64 {thread}, {distance}")
            with self.when(behind):
                left = self.state_of(rooms, self.integer("sub", thread, distance))
                self.assign(own, self.combined(left, self.values(own)))
            self.barrier()
            self.share(rooms, thread, self.values(own))
            distance *= 2
        self.barrier()
        with self.when(within):
            state = self.combined(self.values(before), self.values(own))
            places = [self.place(starts[k], [i], self.strides[k][-1:]) for k in range(self.outputs)]
            self.finished(state, places)
        last = self.state_of(rooms, str(THREADS - 1))
        self.assign(before, self.combined(self.values(before), last))
        self.barrier()


def prepare_scan(
    gpu: Any,
    monoid: Monoid,
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
) -> Launch:
    """See `devices/base.py`."""
    *outer, length = sizes
    rows = math.prod(outer)
    kernel = ScanKernel(monoid, tuple(operand_dtypes), len(outer), rows >= 1 << 31)
    runtime = gpu.runtime
    loaded = runtime.load(scan_ir(runtime.target, kernel))
    words = [rows, length, *outer, *(stride for row in strides for stride in row)]
    return runtime.launch(loaded, gpu.groups(rows * THREADS), "p" * len(strides), words)
