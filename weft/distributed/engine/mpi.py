"""The engines of processes that mpiexec has started. On one machine they share memory, else this is MPI's collectives, through mpi4py.

Buffers go by address, without copies. Waiting tests a request again and again, so that Python sees signals, and timeouts are heeded.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from mpi4py import MPI

from ...core.dtype import DType
from ...core.tensor import Tensor, address
from ...ops.assembly.joining import cat
from .._reduce_op import RedOpType
from .engine import Engine, Request
from .meeting import machine, opened
from .peers import Peer
from .reductions import Loop, loop
from .segment import Segment
from .shared_memory import SharedMemory
from .steps import Steps

LOOKS = 100  # tests of a request before others may have the processor, about 10 us
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


def engine(ranks: Sequence[int], timeout: timedelta) -> Engine:
    """The engine of the processes with these numbers in MPI's world."""
    _abort_on_errors()
    group = MPI.COMM_WORLD.group.Incl(list(ranks))
    comm = MPI.COMM_WORLD.Create_group(group)
    group.Free()
    if comm.size > 1 and (met := meet(comm)):
        rank = comm.rank
        comm.Free()
        return SharedMemory(*met, rank, timeout)
    return Mpi(comm, timeout)


def meet(comm: Any) -> tuple[Segment, list[Peer]] | None:
    """The segment of the processes of a communicator, and these processes; None if they are on several machines.

    MPI itself shares memory, too, but its collectives copy more often: all_reduce of 100 MiB takes 41 ms and 15 ms with weft's (AMD Zen 4).
    """
    if not sys.platform.startswith("linux"):
        return None
    segment = Segment(comm.size) if comm.rank == 0 else None
    told = comm.allgather((machine(), os.getpid(), "" if segment is None else segment.place()))
    if len({name for name, *_ in told}) > 1:
        return None
    with contextlib.suppress(RuntimeError):
        segment = segment or opened(told[0][2], comm.size)
    if not comm.allreduce(segment is not None, MPI.LAND):
        return None
    assert segment is not None
    return segment, [Peer(pid) for _, pid, _ in told]


class Mpi(Engine):
    """Collectives of the processes of a communicator."""

    def __init__(self, comm: Any, timeout: timedelta):
        super().__init__(comm.rank, comm.size, timeout)
        self.comm = comm

    def close(self) -> None:
        self.comm.Free()

    def _finish(self, request: Any, call: str, timeout: timedelta | None = None) -> None:
        """Return when a request is complete."""
        test = request.Test
        for _ in range(LOOKS):
            if test():
                return
        _await(test, (timeout or self.timeout).total_seconds(), f"rank {self.rank}: {call}")

    def barrier(self, timeout: timedelta | None = None) -> None:
        self._finish(self.comm.Ibarrier(), "barrier", timeout)

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._finish(self.comm.Ibcast(_bytes(tensor), root), "broadcast")

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        own, operation = _typed(tensor), _operation(op, tensor.spec.dtype)
        if root is None:
            request = self.comm.Iallreduce(MPI.IN_PLACE, own, operation)
        elif root == self.rank:
            request = self.comm.Ireduce(MPI.IN_PLACE, own, operation, root)
        else:
            request = self.comm.Ireduce(own, None, operation, root)
        self._finish(request, "reduce")

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        whole = _joined(inputs)
        request = self.comm.Ireduce_scatter_block(
            [whole, _type(output.spec.dtype)], _typed(output), _operation(op, output.spec.dtype)
        )
        self._finish(request, "reduce_scatter")

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        own: Any = _bytes(tensor)
        if root in (None, self.rank) and address(outputs[self.rank]) == address(tensor):
            own = MPI.IN_PLACE
        if root is None:
            request = self.comm.Iallgatherv(own, _parts(outputs))
        else:
            request = self.comm.Igatherv(own, _parts(outputs) if self.rank == root else None, root)
        self._finish(request, "gather")

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        own: Any = _bytes(output)
        if self.rank == root and address(inputs[root]) == address(output):
            own = MPI.IN_PLACE
        request = self.comm.Iscatterv(_parts(inputs) if self.rank == root else None, own, root)
        self._finish(request, "scatter")

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self._finish(self.comm.Ialltoallv(_parts(inputs), _parts(outputs)), "all_to_all")

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
            seconds = (timeout or self.engine.timeout).total_seconds()
            _await(self.is_done, seconds, f"rank {self.engine.rank}: {self.call}")

    def go_on(self) -> None:
        """MPI sees to it."""


def _await(is_done: Callable[[], Any], seconds: float, call: str) -> None:
    """Return when something is done. Raises: RuntimeError after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        for _ in range(TESTS):
            if is_done():
                return
            os.sched_yield()  # the process that this one waits for may need the processor
        if time.monotonic() > end:
            raise RuntimeError(f"{call}: timed out after {seconds:g} s")


@functools.lru_cache(256)
def _memory(place: int, nbytes: int) -> Any:
    """Memory as an object that mpi4py takes, which does not keep it alive. Making one takes 0.3 us."""
    return MPI.buffer.fromaddress(place, nbytes)


def _bytes(tensor: Tensor) -> Any:
    return _memory(address(tensor), tensor.spec.nbytes), MPI.BYTE


def _parts(tensors: Sequence[Tensor]) -> Any:
    """Tensors for or from each rank, wherever they lie."""
    return _spread(tuple(map(address, tensors)), tuple([each.spec.nbytes for each in tensors]))


@functools.lru_cache(256)
def _spread(places: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    """Memory in several places: counts and distances in bytes from the first address of all."""
    first = min((place for place, count in zip(places, counts) if count), default=0)
    distances = [place - first if count else 0 for place, count in zip(places, counts)]
    span = max(map(operator.add, distances, counts))
    return _memory(first, span), counts, tuple(distances), MPI.BYTE


def _joined(tensors: Sequence[Tensor]) -> Any:
    """The memory of tensors of one size, one after the other. They are copied unless they lie so."""
    nbytes, first = tensors[0].spec.nbytes, address(tensors[0])
    if all(address(each) == first + place * nbytes for place, each in enumerate(tensors)):
        return _memory(first, nbytes * len(tensors))
    whole = cat([each.detach().reshape(-1) for each in tensors])
    return MPI.buffer.fromaddress(address(whole), whole.spec.nbytes)


# ---- Reductions: MPI's own where it has the type, else weft's kernels


def _typed(tensor: Tensor) -> Any:
    return _memory(address(tensor), tensor.spec.nbytes), _type(tensor.spec.dtype)


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
