"""Scans: one group for each row. It takes as many elements as it has threads, combines each with those before it, and goes on behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.kernel import Launch
from ...engine.monoid import Monoid
from .kernel import THREADS, Kernel, is_wide
from .states import StateLoop
from .target import Target

DOUBLINGS = THREADS.bit_length() - 1  # of the distance between the elements that are combined


class ScanKernel(NamedTuple):
    """Everything that the code of a scan depends on.

    Arguments: the addresses, the number of rows, the elements of a row, the outer sizes, and the strides of each operand.
    """

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]
    outer_dims: int
    wide: bool


def scan_ir(target: Target, kernel: ScanKernel) -> str:
    """Write the module of the kernel."""
    body = Kernel(target)
    _Scan(body, kernel).write()
    return body.ir()


class _Scan(StateLoop):
    def __init__(self, body: Kernel, kernel: ScanKernel):
        super().__init__(body, kernel.monoid, kernel.operand_dtypes)
        self.kernel = kernel
        self.rows, self.length = self.body.parameter("rows"), self.body.parameter("length")
        self.sizes = self.body.words("d", kernel.outer_dims)
        self.strides = [self.body.words(f"s{k}", kernel.outer_dims + 1) for k in range(len(self.addresses))]

    def write(self) -> None:
        thread = self.body.thread()
        rooms = self.new_rooms()
        with self.body.loop(self.body.group(), self.rows, self.body.groups()) as row:
            positions = self.body.unravel(row, self.sizes, self.kernel.wide)
            starts = [
                self.body.place(address, positions, strides[:-1])
                for address, strides in zip(self.addresses, self.strides, strict=True)
            ]
            before = self.new_state()
            with self.body.loop(0, self.length, THREADS) as first:
                self._elements(before, rooms, starts, thread, first)

    def _elements(
        self, before: list[str], rooms: list[str], starts: list[str], thread: str, first: str
    ) -> None:
        """Scan the THREADS elements from `first` on, behind the state `before`, which becomes that of the last of them."""
        i = self.body.integer("add", first, thread)
        within = self.body.let(f"icmp slt i64 {i}, {self.length}")
        own = self.new_state()
        with self.body.when(within):
            last_strides = [strides[-1:] for strides in self.strides[self.outputs :]]
            self.assign(own, self.lifted(starts[self.outputs :], [i], last_strides, i))
        self.share(rooms, thread, self.values(own))
        # LLVM unrolls this loop if the combination is short. That of complex logarithms takes an OpenCL driver half a minute when unrolled.
        with self.body.loop(0, DOUBLINGS) as turn:
            distance = self.body.integer("shl", 1, turn)
            self.body.barrier()
            behind = self.body.let(f"icmp sge i64 {thread}, {distance}")
            with self.body.when(behind):
                left = self.state_of(rooms, self.body.integer("sub", thread, distance))
                self.assign(own, self.combined(left, self.values(own)))
            self.body.barrier()
            self.share(rooms, thread, self.values(own))
        self.body.barrier()
        with self.body.when(within):
            state = self.combined(self.values(before), self.values(own))
            places = [self.body.place(starts[k], [i], self.strides[k][-1:]) for k in range(self.outputs)]
            self.finished(state, places)
        last = self.state_of(rooms, str(THREADS - 1))
        self.assign(before, self.combined(self.values(before), last))
        self.body.barrier()


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
    kernel = ScanKernel(monoid, tuple(operand_dtypes), len(outer), is_wide(rows))
    runtime = gpu.runtime
    loaded = runtime.load(scan_ir, kernel)
    words = [rows, length, *outer, *(stride for row in strides for stride in row)]
    return runtime.launch(loaded, gpu.groups(rows * THREADS), "p" * len(strides), words)
