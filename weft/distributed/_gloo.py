"""ProcessGroupGloo: the checks and messages of PyTorch's Gloo backend, in front of an engine that carries collectives out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..autograd.inplace import check_write
from ..core.device import CPU
from ..core.grad_mode import no_grad
from ..core.layout import contiguous_format
from ..core.tensor import Tensor, address
from ._carrier import Carrier, MessageWork
from ._group import Work
from ._reduce_op import RedOpType
from .engine.alone import Alone
from .engine.engine import Engine

_KINDS = (
    "float32 float64 float16 bfloat16 int8 uint8 bool int32 int64 complex64 complex128".split()
)  # what Gloo sends
_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


class ProcessGroupGloo:
    """The backend "gloo": the collectives of one process, or of several processes of one machine.

    Raises: NotImplementedError for processes on several machines.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta = timedelta(minutes=30)) -> None:
        self._store = store
        self._start(_engine(store, rank, size, timeout))

    def _start(self, engine: Engine) -> None:
        self._engine = engine
        self._rank = engine.rank
        self._size = engine.size
        self._carrier = Carrier()

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def name(self) -> str:
        return "gloo"

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._engine.timeout = timeout

    def shutdown(self) -> None:
        """Leave the group."""
        self._carrier.close()
        self._engine.close()

    def _begin(self, opts: Any, job: Callable[[], None], result: Any) -> Work:
        """Carry out a collective, here if the caller waits for it anyway."""
        wait = self._size == 1 or not getattr(opts, "asyncOp", True)
        return self._carrier.carry_out(job, result, wait)

    def _readable(self, tensor: Tensor) -> Tensor:
        """The tensor, or a contiguous copy, in memory that the engine reads and writes. Its bytes are there when this returns."""
        return in_host_memory(tensor)

    def _copied(self, tensors: Sequence[Tensor]) -> _Written:
        """Outputs that a collective copies into. Raises: RuntimeError for leaves that require grad."""
        for tensor in tensors:
            check_write(tensor)
        return _Written(tensors, self._readable)

    # ---- What is changed in place

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        return self._reduce(_listed(tensors), _op(opts), None, opts)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: Any = None) -> Work:
        root = self._checked_root("reduce", opts)
        return self._reduce(_listed(tensors), _op(op if op is not None else opts), root, opts)

    def _reduce(self, tensors: Sequence[Tensor], op: RedOpType, root: int | None, opts: Any) -> Work:
        for tensor in tensors:
            _check_reduction(op, tensor)
        written = _Written(tensors if root in (None, self._rank) else (), self._readable)
        buffers = written.buffers or [self._readable(tensor) for tensor in tensors]

        def job() -> None:
            for buffer in buffers:
                self._engine.reduce(buffer, _summed(op), root)
            if op is RedOpType.AVG:
                written.divide(self._size)
            written.finish()

        return self._begin(opts, job, list(tensors))

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        root = self._checked_root("broadcast", opts)
        tensors = _listed(tensors)
        for tensor in tensors:
            _check_dtype(tensor)
        written = _Written(tensors, self._readable)

        def job() -> None:
            for buffer in written.buffers:
                self._engine.broadcast(buffer, root)
            written.finish()

        return self._begin(opts, job, list(tensors))

    def barrier(self, opts: Any = None, timeout: Any = None) -> Work:
        given = timeout or getattr(opts, "timeout", None)
        limit = given if given is not None and given.total_seconds() > 0 else None
        return self._begin(opts, lambda: self._engine.barrier(limit), [])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """As `barrier`. Raises: RuntimeError with the ranks that did not come within `timeout`."""
        self._carrier.carry_out(lambda: self._engine.barrier(timeout), [], wait=True).wait()

    # ---- What is copied

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        output_lists, inputs = _paired(output_tensors, input_tensors)
        for index, outputs in enumerate(output_lists):
            if len(outputs) != self._size:
                raise RuntimeError(
                    f"ProcessGroupGloo::allgather: invalid output tensor list at index {index} (expected length "
                    f"{self._size}, got {len(outputs)})"
                )
        return self._gather("allgather", output_lists, inputs, None, opts)

    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """`output_lists` has a list for each rank."""
        return self.allgather(
            [list(outputs) for outputs in zip(*output_lists, strict=True)], input_list, opts
        )

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        parts = [self._parts(output, tensor) for output, tensor in zip(outputs, inputs, strict=True)]
        return self.allgather(parts, inputs, opts)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        root = self._checked_root("gather", opts)
        if self._rank != root:
            return self._gather("gather", [()], _listed(input_tensors), root, opts)
        output_lists, inputs = _paired(output_tensors, input_tensors)
        self._check_list("gather", "output", output_lists[0])
        return self._gather("gather", output_lists, inputs, root, opts)

    def _gather(
        self, name: str, output_lists: Any, inputs: Sequence[Tensor], root: int | None, opts: Any
    ) -> Work:
        for outputs, tensor in zip(output_lists, inputs, strict=True):
            _check_dtype(tensor)
            for index, output in enumerate(outputs):
                _check_alike(name, index, tensor, output)
        outputs = [self._copied(outputs) for outputs in output_lists]
        buffers = [self._readable(tensor) for tensor in inputs]

        def job() -> None:
            for written, buffer in zip(outputs, buffers):
                self._engine.gather(written.buffers, buffer, root)
                written.finish()

        return self._begin(opts, job, [output for outputs in output_lists for output in outputs])

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        root = self._checked_root("scatter", opts)
        (output,) = _listed(output_tensors)
        _check_dtype(output)
        inputs: Sequence[Tensor] = ()
        if self._rank == root:
            inputs = input_tensors if isinstance(output_tensors, Tensor) else input_tensors[0]
            self._check_list("scatter", "input", _listed(inputs))
            for index, tensor in enumerate(inputs):
                _check_alike("scatter", index, output, tensor)
        written = self._copied([output])
        buffers = [self._readable(tensor) for tensor in inputs]

        def job() -> None:
            self._engine.scatter(written.buffers[0], buffers, root)
            written.finish()

        return self._begin(opts, job, [output])

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        op = _op(opts)
        outputs = _listed(output_tensors)
        input_lists = [input_tensors] if isinstance(output_tensors, Tensor) else input_tensors
        for output, inputs in zip(outputs, input_lists, strict=True):
            if len(inputs) != self._size:
                raise RuntimeError("invalid input tensor list size, must be world size")
            for index, tensor in enumerate(inputs):
                _check_reduction(op, tensor)
                _check_alike("reduce_scatter", index, output, tensor)
        written = self._copied(outputs)
        buffer_lists = [[self._readable(tensor) for tensor in inputs] for inputs in input_lists]

        def job() -> None:
            for output, buffers in zip(written.buffers, buffer_lists):
                self._engine.reduce_scatter(output, buffers, _summed(op))
            if op is RedOpType.AVG:
                written.divide(self._size)
            written.finish()

        return self._begin(opts, job, list(outputs))

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        parts = [self._parts(tensor, output) for output, tensor in zip(outputs, inputs, strict=True)]
        return self.reduce_scatter(outputs, parts, opts)

    def alltoall(
        self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: Any = None
    ) -> Work:
        for what, tensors in (("output", output_tensors), ("input", input_tensors)):
            if len(tensors) != self._size:
                raise RuntimeError(
                    f"ProcessGroupGloo::alltoall: {what} tensor list size {len(tensors)} does not match world size {self._size}"
                )
        _check_alike("alltoall", 0, output_tensors[self._rank], input_tensors[self._rank])
        for tensor in input_tensors:
            _check_dtype(tensor)
        return self._exchange(list(output_tensors), list(input_tensors), opts)

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = None,
    ) -> Work:
        _check_dtype(input)
        if output.dtype != input.dtype:
            raise RuntimeError(
                f"ProcessGroupGloo::alltoall: invalid tensor type (expected {output.dtype}, got {input.dtype})"
            )
        parts = []
        for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
            if not tensor.is_contiguous():
                raise ValueError("Tensors must be contiguous")
            parts.append(self._split(tensor, sizes))
        if self._size == 1 and output.numel() == input.numel():
            parts[0] = [output.view(input.shape)]  # Gloo compares bytes only
        return self._exchange(parts[0], parts[1], opts)

    def _exchange(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any) -> Work:
        written = self._copied(outputs)
        buffers = [self._readable(tensor) for tensor in inputs]

        def job() -> None:
            self._engine.all_to_all(written.buffers, buffers)
            written.finish()

        return self._begin(opts, job, outputs)

    # ---- Parts of tensors

    def _split(self, tensor: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """The part of `tensor` for each rank."""
        if not sizes:
            if tensor.size(0) % self._size:
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [tensor.size(0) // self._size] * self._size
        if len(sizes) != self._size:
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != tensor.size(0):
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        return list(tensor.detach().split(list(sizes)))

    def _parts(self, whole: Tensor, part: Tensor) -> list[Tensor]:
        """`whole` as the tensors of all ranks, one after the other, each as large as `part`."""
        if self._size == 1:
            return [whole]
        if whole.numel() != self._size * part.numel():
            raise ValueError(
                f"the tensor for all ranks has {whole.numel()} elements, that of one rank {part.numel()}: it must have "
                f"{self._size} times as many"
            )
        if not whole.is_contiguous():
            raise ValueError("the tensor for all ranks must be contiguous")
        return list(whole.detach().view(self._size, *part.shape).unbind(0))

    # ---- Messages

    def send(self, tensors: Sequence[Tensor], dst_rank: int, tag: int = 0) -> Work:
        (tensor,) = tensors
        _check_dtype(tensor)
        self._check_peer("send to", dst_rank)
        return MessageWork(self._engine.send(self._readable(tensor), dst_rank, tag), [tensor])

    def recv(self, tensors: Sequence[Tensor], src_rank: int, tag: int = 0) -> Work:
        self._check_peer("recv from", src_rank)
        return self._recv(tensors, src_rank, tag)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
        return self._recv(tensors, None, tag)

    def _recv(self, tensors: Sequence[Tensor], src_rank: int | None, tag: int) -> Work:
        (tensor,) = tensors
        _check_dtype(tensor)
        if self._readable(tensor) is not tensor:
            raise ValueError("Tensors must be contiguous")
        written = _Written([tensor], self._readable)
        return MessageWork(self._engine.recv(written.buffers[0], src_rank, tag), [tensor])

    # ---- Checks

    def _check_peer(self, what: str, rank: int) -> None:
        if self._size > 1 and (rank == self._rank or not 0 <= rank < self._size):
            reason = "which is this one" if rank == self._rank else f"but the group has {self._size} ranks"
            raise RuntimeError(f"{what} rank {rank}, {reason}")

    def _checked_root(self, name: str, opts: Any) -> int:
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        check_root(name, root, self._size)
        return root

    def _check_list(self, name: str, what: str, tensors: Sequence[Tensor]) -> None:
        if len(tensors) != self._size:
            raise RuntimeError(
                f"ProcessGroupGloo::{name}: Incorrect {what} list size {len(tensors)}. "
                f"{what.capitalize()} list size should be {self._size}, same as size of the process group."
            )


class ProcessGroupMPI(ProcessGroupGloo):
    """The backend "mpi", or "gloo", of processes that mpiexec has started, on one machine or several. `ranks`: their numbers in MPI's world.

    Its collectives have the checks of "gloo".
    """

    def __init__(self, ranks: Sequence[int], timeout: timedelta, name: str) -> None:
        self._name = name
        from .engine.mpi import engine  # loaded when first used

        self._start(engine(ranks, timeout))

    def name(self) -> str:
        return self._name


class ProcessGroupNCCL(ProcessGroupGloo):
    """The backend "nccl": one CUDA device of each process. Its collectives have the checks of "gloo".

    The work is done on the device, in its order, so that every Work is complete for the program when it is returned.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        from .engine.nccl import Nccl  # loaded when first used

        self._start(Nccl(store, rank, size, timeout))

    def name(self) -> str:
        return "nccl"

    def _begin(self, opts: Any, job: Callable[[], None], result: Any) -> Work:
        # In the thread of the caller: what it computes on the device afterwards has to come afterwards.
        return self._carrier.carry_out(job, result, wait=True)

    def _readable(self, tensor: Tensor) -> Tensor:
        spec = tensor.spec
        if not spec.is_contiguous or spec.conj or spec.neg:
            raise ValueError("Tensors must be contiguous")
        address(tensor)  # computes what was deferred
        return tensor


class ProcessGroupFake(ProcessGroupGloo):
    """The backend "fake": this process is one of many that do not exist. Its collectives have the checks of "gloo"."""

    def __init__(self, rank: int, size: int) -> None:
        from .engine.fake import Fake  # loaded when first used

        self._start(Fake(rank, size))

    def name(self) -> str:
        return "fake"


def _engine(store: Any, rank: int, size: int, timeout: timedelta) -> Engine:
    if size == 1:
        return Alone()
    from .engine.meeting import meet  # loaded when first used
    from .engine.shared_memory import SharedMemory

    return SharedMemory(*meet(store, rank, size, timeout), rank, timeout)


class _Written:
    """Tensors that a collective writes, and for each the contiguous buffer that the engine writes."""

    def __init__(self, tensors: Sequence[Tensor], readable: Callable[[Tensor], Tensor]) -> None:
        self.tensors = list(tensors)
        self.buffers = [readable(tensor) for tensor in tensors]
        for tensor in tensors:
            tensor._storage.version += 1

    def divide(self, size: int) -> None:
        """Divide by the number of ranks."""
        with no_grad():
            for buffer in self.buffers:
                buffer.detach().div_(size)

    def finish(self) -> None:
        """Copy the buffers that are not the tensors themselves."""
        with no_grad():
            for tensor, buffer in zip(self.tensors, self.buffers):
                if buffer is not tensor:
                    tensor.detach().copy_(buffer)


def is_plain(tensor: Tensor) -> bool:
    """Whether the memory of a tensor is what an engine reads and writes."""
    spec = tensor.spec
    return spec.is_contiguous and spec.device is CPU and not spec.conj and not spec.neg


def in_host_memory(tensor: Tensor) -> Tensor:
    """The tensor, or a contiguous copy in host memory. Its bytes are there when this returns."""
    if not is_plain(tensor):
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg().clone(memory_format=contiguous_format)
    address(tensor)  # computes what was deferred, in this thread
    return tensor


def _paired(output_tensors: Any, input_tensors: Any) -> tuple[Any, Sequence[Tensor]]:
    """A list of outputs for each input."""
    if isinstance(input_tensors, Tensor):
        return [output_tensors], [input_tensors]
    return output_tensors, input_tensors


def _summed(op: RedOpType) -> RedOpType:
    """The reduction that an engine carries out for `op`: an average is a sum that is divided."""
    return RedOpType.SUM if op is RedOpType.AVG else op


def _listed(tensors: Any) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else tensors


def _op(opts: Any) -> RedOpType:
    """The reduction in options, in a ReduceOp, or as it is."""
    op = getattr(opts, "reduceOp", opts)
    op = getattr(op, "op", op)
    return op if isinstance(op, RedOpType) else RedOpType.SUM


def check_root(name: str, rank: int, size: int) -> None:
    """Raise RuntimeError unless a group of so many ranks has this one."""
    if not 0 <= rank < size:
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid root rank: {rank}: the group has the ranks 0 to {size - 1}"
        )


def _check_dtype(tensor: Tensor) -> None:
    if tensor.dtype.name not in _KINDS:
        raise RuntimeError(
            f"Invalid scalar type: collectives cannot send {tensor.dtype}; convert the tensor first"
        )


def _check_reduction(op: RedOpType, tensor: Tensor) -> None:
    _check_dtype(tensor)
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    if op is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if op in _BITWISE and not whole:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is RedOpType.AVG and whole:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type: AVG of {tensor.dtype}"
        )


def _check_alike(name: str, index: int, expected: Tensor, given: Tensor) -> None:
    """Raise RuntimeError unless two tensors have the same size and dtype."""
    if expected.dtype != given.dtype:
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid tensor type at index {index} (expected {expected.dtype}, got {given.dtype})"
        )
    if expected.shape != given.shape:
        sizes = [", ".join(map(str, tensor.shape)) for tensor in (expected, given)]
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid tensor size at index {index} (expected ({sizes[0]}), got ({sizes[1]}))"
        )
