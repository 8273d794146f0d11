"""The engine of tensors on CUDA devices: NVIDIA's NCCL, by ctypes.

A call enqueues work on the device's current stream, on which the program's kernels run too, and returns. So it needs no waiting: whatever the program
computes next on this stream comes after it. NCCL has no tags, and messages and parts of several sizes are groups of sends and receives.

Source: NVIDIA Collective Communication Library (NCCL), API reference, and its header nccl.h.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ...core.device import device as Device
from ...core.streams import current_id
from ...core.tensor import Tensor, address
from ...devices._gpu.libraries import load
from .._reduce_op import RedOpType
from .._store import Store
from .engine import Engine, Request

# Of the packages nvidia-nccl-cu12 and nvidia-nccl-cu13.
NAMES = ("libnccl.so.2",)
FOLDERS = ("nvidia/nccl/lib",)

_BYTES = 0  # ncclInt8, for all that is only moved
_TYPES = {
    "int8": 0,
    "uint8": 1,
    "bool": 1,
    "int32": 2,
    "int64": 4,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "complex64": 7,
    "complex128": 8,
}
_OPS = {RedOpType.SUM: 0, RedOpType.PRODUCT: 1, RedOpType.MAX: 2, RedOpType.MIN: 3}
_OF_BOOL = {
    RedOpType.SUM: RedOpType.MAX,
    RedOpType.PRODUCT: RedOpType.MIN,
}  # "or" and "and" of bytes that are 0 or 1


class UniqueId(ctypes.Structure):
    """What tells one communicator from others; it is passed by value."""

    _fields_ = (("internal", ctypes.c_byte * 128),)


_pointer, _count, _number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
# Arguments; those of the last group end with the communicator and the stream.
_FUNCTIONS: dict[str, tuple] = {
    "ncclGetUniqueId": (ctypes.POINTER(UniqueId),),
    "ncclCommInitRank": (ctypes.POINTER(_pointer), _number, UniqueId, _number),
    "ncclCommDestroy": (_pointer,),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclBroadcast": (_pointer, _pointer, _count, _number, _number, _pointer, _pointer),
    "ncclAllReduce": (_pointer, _pointer, _count, _number, _number, _pointer, _pointer),
    "ncclReduce": (_pointer, _pointer, _count, _number, _number, _number, _pointer, _pointer),
    "ncclReduceScatter": (_pointer, _pointer, _count, _number, _number, _pointer, _pointer),
    "ncclAllGather": (_pointer, _pointer, _count, _number, _pointer, _pointer),
    "ncclSend": (_pointer, _count, _number, _number, _pointer, _pointer),
    "ncclRecv": (_pointer, _count, _number, _number, _pointer, _pointer),
}


@functools.cache
def library() -> Any:
    """NCCL, or None if it is not installed."""
    found = load(NAMES, FOLDERS)
    if found is None:
        return None
    for name, arguments in _FUNCTIONS.items():
        getattr(found, name).argtypes = arguments
    found.ncclGetErrorString.restype = ctypes.c_char_p
    return found


class Nccl(Engine):
    """Collectives of processes that meet through `store`, each with one CUDA device. They meet at the first call.

    Raises: RuntimeError with the text of an error of NCCL.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta):
        super().__init__(rank, size, timeout)
        self._store = store
        self._device: Device | None = None
        self._comm: int | None = None
        self._stream = 0  # the driver's stream that was the current one at the last call

    def close(self) -> None:
        if self._comm is not None:
            self._call("ncclCommDestroy", self._comm)
            self._comm = None

    # ---- Calls

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(library(), name)(*arguments):
            text = library().ncclGetErrorString(code).decode()
            raise RuntimeError(f"NCCL error in {name} on rank {self.rank}: {text} ({code})")

    def _enqueue(self, name: str, *arguments: int) -> None:
        self._call(name, *arguments, self._comm, self._stream)

    def _use(self, tensor: Tensor) -> None:
        """Make the device of a tensor that of this thread; with the first tensor, meet the other ranks."""
        where = tensor.spec.device
        if self._device is None:
            self._stream = enter(where)
            self._comm = self._connect()
            self._device = where
        elif where is not self._device:
            raise RuntimeError(
                f"this group of NCCL was first used with tensors on {self._device}, and now with one on {where}: a rank has one device"
            )
        else:
            self._stream = enter(where)

    def _connect(self) -> int:
        unique, comm = UniqueId(), ctypes.c_void_p()
        turn = self._store.add(
            f"nccl turn{self.rank}", 1
        )  # a store may serve several groups, one after the other
        key = f"nccl id{turn}"
        if self.rank == 0:
            self._call("ncclGetUniqueId", ctypes.byref(unique))
            self._store.set(key, bytes(unique))
        else:
            self._store.wait([key], self.timeout)
            unique = UniqueId.from_buffer_copy(self._store.get(key))
        self._call("ncclCommInitRank", ctypes.byref(comm), self.size, unique, self.rank)
        assert comm.value is not None
        return comm.value

    @contextmanager
    def _group(self) -> Iterator[None]:
        """Calls that NCCL begins together, so that none waits for another."""
        self._call("ncclGroupStart")
        try:
            yield
        finally:
            self._call("ncclGroupEnd")

    # ---- Collectives

    def barrier(self, timeout: timedelta | None = None) -> None:
        """Return when the devices of all ranks have come. `timeout` is not heeded, because the driver waits."""
        from ...ops.creation.creation import zeros  # loaded when first used

        token = zeros(1, device=self._device or "cuda")
        self.reduce(token, RedOpType.SUM, None)
        token.spec.device.backend.runtime.synchronize()

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._use(tensor)
        place = address(tensor)
        self._enqueue("ncclBroadcast", place, place, tensor.spec.nbytes, _BYTES, root)

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        how = _reduction(tensor, op)
        self._use(tensor)
        place = address(tensor)
        if root is None:
            self._enqueue("ncclAllReduce", place, place, *how)
        else:
            self._enqueue("ncclReduce", place, place, *how, root)

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        how = _reduction(output, op)
        self._use(output)
        places, target = [*map(address, inputs)], address(output)
        if _follow(places, output.spec.nbytes):
            self._enqueue("ncclReduceScatter", places[0], target, *how)
            return
        with self._group():
            for rank, place in enumerate(places):
                self._enqueue("ncclReduce", place, target if rank == self.rank else place, *how, rank)

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        self._use(tensor)
        place, nbytes, places = address(tensor), tensor.spec.nbytes, [*map(address, outputs)]
        if root is None and _follow(places, nbytes):
            self._enqueue("ncclAllGather", place, places[0], nbytes, _BYTES)
            return
        with self._group():
            if root is None:
                for rank, target in enumerate(places):
                    self._enqueue(
                        "ncclBroadcast", place if rank == self.rank else target, target, nbytes, _BYTES, rank
                    )
            else:
                self._enqueue("ncclSend", place, nbytes, _BYTES, root)
                for rank, target in enumerate(places):
                    self._enqueue("ncclRecv", target, nbytes, _BYTES, rank)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        self._use(output)
        nbytes = output.spec.nbytes
        with self._group():
            for rank, tensor in enumerate(inputs):
                self._enqueue("ncclSend", address(tensor), nbytes, _BYTES, rank)
            self._enqueue("ncclRecv", address(output), nbytes, _BYTES, root)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self._use(inputs[0])
        with self._group():
            for name, tensors in (("ncclSend", inputs), ("ncclRecv", outputs)):
                for rank, tensor in enumerate(tensors):
                    if tensor.spec.nbytes:
                        self._enqueue(name, address(tensor), tensor.spec.nbytes, _BYTES, rank)

    # ---- Messages

    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        self._use(tensor)
        self._enqueue("ncclSend", address(tensor), tensor.spec.nbytes, _BYTES, dst)
        return Enqueued(None)

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        if src is None:
            raise RuntimeError("recv from any rank: NCCL has to know the sender: give `src`")
        self._use(tensor)
        self._enqueue("ncclRecv", address(tensor), tensor.spec.nbytes, _BYTES, src)
        return Enqueued(src)


class Enqueued(Request):
    """A message that a stream sends or receives. What the program computes next on the stream comes after it."""

    def __init__(self, source: int | None):
        self.source = source

    def is_done(self) -> bool:
        return True

    def wait(self, timeout: timedelta | None = None) -> None:
        """The stream waits."""

    def go_on(self) -> None:
        """The device sees to it."""


def enter(where: Device) -> int:
    """Make a device that of this thread. Returns the driver's stream that is the current one."""
    backend: Any = where.backend
    backend.runtime.enter()
    return backend.stream_handle(current_id(where))


def _follow(places: Sequence[int], nbytes: int) -> bool:
    """Whether tensors of one size lie one after the other."""
    return bool(places) and all(place == places[0] + rank * nbytes for rank, place in enumerate(places))


def _reduction(tensor: Tensor, op: RedOpType) -> tuple[int, int, int]:
    """The number of elements, their type and the operation as NCCL has them. Raises: RuntimeError where it has no such reduction."""
    dtype = tensor.spec.dtype
    if op not in _OPS or dtype.name not in _TYPES:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} of {dtype} with NCCL")
    op = _OF_BOOL.get(op, op) if dtype.name == "bool" else op
    words = 2 if dtype.is_complex else 1  # a sum of complex numbers is one of their parts
    return tensor.spec.numel * words, _TYPES[dtype.name], _OPS[op]
