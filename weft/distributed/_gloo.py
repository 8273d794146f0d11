"""ProcessGroupGloo: the collectives of one rank, with the checks and messages of PyTorch's Gloo backend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from ..core.tensor import Tensor
from ._group import Work
from ._reduce_op import RedOpType

_KINDS = (
    "float32 float64 float16 bfloat16 int8 uint8 bool int32 int64 complex64 complex128".split()
)  # what Gloo sends
_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


class ProcessGroupGloo:
    """The backend of groups in one process: what a collective reads is what it writes.

    Raises: NotImplementedError for more than one rank.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta = timedelta(minutes=30)) -> None:
        if size != 1:
            refuse_several_ranks(size)
        self._store = store
        self._rank = rank
        self._size = size
        self._timeout = timeout

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def name(self) -> str:
        return "gloo"

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    # ---- What stays as it is

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        tensors = _listed(tensors)
        for tensor in tensors:
            _check_reduction(_op(opts), tensor)
        return Work(list(tensors))

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        _check_root("broadcast", _root(opts))
        tensors = _listed(tensors)
        for tensor in tensors:
            _check_dtype(tensor)
        return Work(list(tensors))

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: Any = None) -> Work:
        _check_root("reduce", _root(opts))
        tensors = _listed(tensors)
        for tensor in tensors:
            _check_reduction(_op(op if op is not None else opts), tensor)
        return Work(list(tensors))

    def barrier(self, opts: Any = None, timeout: Any = None) -> Work:
        return Work([])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """One rank never waits for another."""

    # ---- What is copied

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        if isinstance(input_tensors, Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        written = []
        for index, (outputs, tensor) in enumerate(zip(output_tensors, input_tensors, strict=True)):
            if len(outputs) != 1:
                raise RuntimeError(
                    f"ProcessGroupGloo::allgather: invalid output tensor list at index {index} (expected length "
                    f"1, got {len(outputs)})"
                )
            written.append(_copy("allgather", outputs[0], tensor))
        return Work(written)

    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = None
    ) -> Work:
        return self.allgather([[each] for each in output_lists[0]], input_list)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return Work([_copy("allgather", output, input)])

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        return Work([_copy("allgather", *pair) for pair in zip(outputs, inputs, strict=True)])

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        _check_root("gather", _root(opts))
        if isinstance(input_tensors, Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if len(output_tensors[0]) != 1:
            raise RuntimeError(
                f"ProcessGroupGloo::gather: Incorrect output list size {len(output_tensors[0])}. "
                "Output list size should be 1, same as size of the process group."
            )
        return Work([_copy("gather", output_tensors[0][0], input_tensors[0])])

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        _check_root("scatter", _root(opts))
        if isinstance(output_tensors, Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if len(input_tensors[0]) != 1:
            raise RuntimeError(
                f"ProcessGroupGloo::scatter: Incorrect input list size {len(input_tensors[0])}. "
                "Input list size should be 1, same as size of the process group."
            )
        return Work([_copy("scatter", output_tensors[0], input_tensors[0][0], output_is_expected=True)])

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        if isinstance(output_tensors, Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        written = []
        for output, inputs in zip(output_tensors, input_tensors, strict=True):
            if len(inputs) != 1:
                raise RuntimeError("invalid input tensor list size, must be world size")
            _check_reduction(_op(opts), inputs[0])
            written.append(_copy("reduce_scatter", output, inputs[0], output_is_expected=True))
        return Work(written)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter([output], [[input]], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        return self.reduce_scatter(outputs, [[each] for each in inputs], opts)

    def alltoall(
        self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: Any = None
    ) -> Work:
        for what, tensors in (("output", output_tensors), ("input", input_tensors)):
            if len(tensors) != 1:
                raise RuntimeError(
                    f"ProcessGroupGloo::alltoall: {what} tensor list size {len(tensors)} does not match world size 1"
                )
        return Work([_copy("alltoall", output_tensors[0], input_tensors[0], output_is_expected=True)])

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = None,
    ) -> Work:
        for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
            if not tensor.is_contiguous():
                raise ValueError("Tensors must be contiguous")
            if len(sizes) > 1:
                raise RuntimeError("Number of tensor splits not equal to group size")
            if sizes and sizes[0] != tensor.size(0):
                raise RuntimeError("Split sizes doesn't match total dim 0 size")
        if output.numel() == input.numel() and output.dtype == input.dtype:
            output = output.view(input.shape)  # Gloo compares bytes only
        return Work([_copy("alltoall", output, input, output_is_expected=True)])

    # ---- What needs another rank

    def send(self, tensors: Sequence[Tensor], dst_rank: int, tag: int = 0) -> NoReturn:
        raise RuntimeError(
            f"send to rank {dst_rank}: the group has one rank, which is not connected to itself"
        )

    def recv(self, tensors: Sequence[Tensor], src_rank: int, tag: int = 0) -> NoReturn:
        raise RuntimeError(
            f"recv from rank {src_rank}: the group has one rank, which is not connected to itself"
        )

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> NoReturn:
        raise RuntimeError("recv from any rank: the group has one rank, so that nobody sends")


def refuse_several_ranks(size: int) -> NoReturn:
    raise NotImplementedError(
        f"torch.distributed: a group of {size} processes: weft has groups of one process only so far "
        "(world_size=1, rank=0)"
    )


def _listed(tensors: Any) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else tensors


def _op(opts: Any) -> RedOpType:
    """The reduction in options, in a ReduceOp, or as it is."""
    op = getattr(opts, "reduceOp", opts)
    op = getattr(op, "op", op)
    return op if isinstance(op, RedOpType) else RedOpType.SUM


def _root(opts: Any) -> int:
    return opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)


def _check_root(name: str, rank: int) -> None:
    if rank != 0:
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {rank}: the group has one rank, 0")


def _check_dtype(tensor: Tensor) -> None:
    if tensor.dtype.name not in _KINDS:
        raise RuntimeError(f"Invalid scalar type: Gloo cannot send {tensor.dtype}; convert the tensor first")


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


def _copy(name: str, output: Tensor, input: Tensor, output_is_expected: bool = False) -> Tensor:
    """Write `input` into `output`, which must have its size and dtype. No gradient passes through."""
    _check_dtype(input)
    expected, given = (output, input) if output_is_expected else (input, output)
    if expected.dtype != given.dtype:
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid tensor type at index 0 (expected {expected.dtype}, got {given.dtype})"
        )
    if expected.shape != given.shape:
        sizes = [", ".join(map(str, tensor.shape)) for tensor in (expected, given)]
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid tensor size at index 0 (expected ({sizes[0]}), got ({sizes[1]}))"
        )
    output.copy_(input.detach())
    return output
