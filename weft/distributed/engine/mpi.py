"""The engine of processes that mpiexec has started, on one machine or several: MPI's collectives, through mpi4py.

Buffers go by address. Waiting tests a request again and again, so that Python sees signals, and timeouts are heeded.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from mpi4py import MPI

from ...core.dtype import DType
from ...core.tensor import Tensor, address
from ...ops.assembly.joining import cat
from .._reduce_op import RedOpType
from .engine import Engine, Request
from .reductions import Loop, loop
from .steps import Steps

TESTS = 1000  # of a request, between two looks at the clock

_TYPES = {
    "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE,
    "int8": MPI.INT8_T,
    "uint8": MPI.UINT8_T,
    "int16": MPI.INT16_T,
    "int32": MPI.INT32_T,
    "int64": MPI.INT64_T,
    "complex64": MPI.C_FLOAT_COMPLEX,
    "complex128": MPI.C_DOUBLE_COMPLEX,
}
_OPS = {
    RedOpType.SUM: MPI.SUM,
    RedOpType.PRODUCT: MPI.PROD,
    RedOpType.BAND: MPI.BAND,
    RedOpType.BOR: MPI.BOR,
    RedOpType.BXOR: MPI.BXOR,
}


def world() -> tuple[int, int]:
    """The rank of this process and the number of processes."""
    return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size


class Mpi(Engine):
    """Collectives of the processes with these numbers in MPI's world."""

    def __init__(self, ranks: Sequence[int], timeout: timedelta):
        super().__init__(list(ranks).index(MPI.COMM_WORLD.rank), len(ranks), timeout)
        _abort_on_errors()
        group = MPI.COMM_WORLD.group.Incl(list(ranks))
        self.comm = MPI.COMM_WORLD.Create_group(group)
        group.Free()

    def close(self) -> None:
        self.comm.Free()

    def _finish(self, request: Any, call: str, timeout: timedelta | None = None) -> Any:
        """Wait for a request; MPI's status of it."""
        return _finished(request, (timeout or self.timeout).total_seconds(), f"rank {self.rank}: {call}")

    def barrier(self, timeout: timedelta | None = None) -> None:
        self._finish(self.comm.Ibarrier(), "barrier", timeout)

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._finish(self.comm.Ibcast(_bytes(tensor), root), "broadcast")

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        own, operation = _typed(tensor), _operation(op, tensor.dtype)
        if root is None:
            request = self.comm.Iallreduce(MPI.IN_PLACE, own, operation)
        elif root == self.rank:
            request = self.comm.Ireduce(MPI.IN_PLACE, own, operation, root)
        else:
            request = self.comm.Ireduce(own, None, operation, root)
        self._finish(request, "reduce")

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        whole = _joined(inputs)
        request = self.comm.Ireduce_scatter_block(_typed(whole), _typed(output), _operation(op, output.dtype))
        self._finish(request, "reduce_scatter")

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        if root not in (None, self.rank):
            self._finish(self.comm.Igather(_bytes(tensor), None, root), "gather")
            return
        whole = tensor.new_empty([self.size * tensor.numel()])
        own, received = _bytes(tensor), _bytes(whole)
        if root is None:
            request = self.comm.Iallgather(own, received)
        else:
            request = self.comm.Igather(own, received, root)
        self._finish(request, "gather")
        for output, part in zip(outputs, whole.view(self.size, tensor.numel())):
            output.detach().copy_(part.view(output.shape))

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        whole = _joined(inputs) if self.rank == root else None
        sent = None if whole is None else _bytes(whole)
        self._finish(self.comm.Iscatter(sent, _bytes(output), root), "scatter")

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        sent, received = _joined(inputs), _joined(outputs)
        counts = [[each.spec.nbytes for each in tensors] for tensors in (inputs, outputs)]
        request = self.comm.Ialltoallv(
            [_buffer(sent), counts[0], MPI.BYTE], [_buffer(received), counts[1], MPI.BYTE]
        )
        self._finish(request, "all_to_all")
        for output, part in zip(outputs, received.split([each.numel() for each in outputs])):
            output.detach().copy_(part.view(output.shape))

    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        return _Message(self, self.comm.Isend(_bytes(tensor), dst, tag), tensor, f"send to rank {dst}")

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        source = MPI.ANY_SOURCE if src is None else src
        name = "any rank" if src is None else f"rank {src}"
        return _Message(self, self.comm.Irecv(_bytes(tensor), source, tag), tensor, f"recv from {name}")


class _Message(Request):
    """A message on its way."""

    def __init__(self, engine: Mpi, request: Any, tensor: Tensor, call: str):
        self.engine, self.request, self.tensor, self.call = engine, request, tensor, call

    def is_done(self) -> bool:
        status = MPI.Status()
        if self.request.Test(status):
            self.source = self.source if self.source is not None else status.Get_source()
            return True
        return False

    def wait(self, timeout: timedelta | None = None) -> None:
        if self.source is None:
            self.source = self.engine._finish(self.request, self.call, timeout).Get_source()

    def go_on(self) -> None:
        """MPI sees to it."""


def _finished(request: Any, seconds: float, call: str) -> Any:
    status, end = MPI.Status(), time.monotonic() + seconds
    while True:
        for _ in range(TESTS):
            if request.Test(status):
                return status
            os.sched_yield()  # the process that this one waits for may need the processor
        if time.monotonic() > end:
            raise RuntimeError(f"{call}: timed out after {seconds:g} s")


def _buffer(tensor: Tensor) -> Any:
    return MPI.buffer.fromaddress(address(tensor), tensor.spec.nbytes)


def _bytes(tensor: Tensor) -> Any:
    return [_buffer(tensor), MPI.BYTE]


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return cat([each.detach().reshape(-1) for each in tensors])


# ---- Reductions: MPI's own where it has the type, else weft's kernels


def _typed(tensor: Tensor) -> Any:
    return [_buffer(tensor), _type(tensor.dtype)]


@functools.cache
def _type(dtype: DType) -> Any:
    found = _TYPES.get(dtype.name)
    return MPI.BYTE.Create_contiguous(dtype.itemsize).Commit() if found is None else found


@functools.cache
def _operation(op: RedOpType, dtype: DType) -> Any:
    """The operation of MPI. MIN and MAX are weft's, because MPI does not say what becomes of NaN."""
    combine = loop(op, dtype)  # raises where there is no such reduction
    if op in _OPS and dtype.name in _TYPES:
        return _OPS[op]
    return MPI.Op.Create(functools.partial(_combine, combine, dtype.itemsize), commute=False)


def _combine(combine: Loop, itemsize: int, left: Any, right: Any, datatype: Any) -> None:
    """What MPI calls for an operation: right = left op right."""
    a, b = MPI.buffer(left), MPI.buffer(right)
    steps = Steps()
    count = b.nbytes // itemsize
    steps.apply(combine.address, combine.meta, count, combine.row, b.address, a.address, b.address)
    steps.carry_out()


@functools.cache
def _abort_on_errors() -> None:
    """End all processes when one has raised an error: MPI would wait for it for ever."""
    before = sys.excepthook

    def abort(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        sys.stderr.flush()
        sys.stdout.flush()
        if MPI.COMM_WORLD.size > 1:
            time.sleep(0.5)  # mpiexec drops what it has not passed on yet when the processes end
            MPI.COMM_WORLD.Abort(1)

    sys.excepthook = abort
