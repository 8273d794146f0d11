"""Work, a collective that was begun, and ProcessGroup, the processes that take part in collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any

from ._observers import operator


class Work:
    """A collective that was begun. Without arguments, and on a group of one rank, it is complete from the start.

    >>> import weft as torch
    >>> work = torch.distributed.Work()
    >>> work.is_completed(), work.wait()
    (True, True)
    """

    def __init__(self, result: Any = None) -> None:
        self._result = result
        self._error: BaseException | None = None

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error of the collective, or None."""
        return self._error

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Return when the collective is complete. `timeout`: if it is positive, no longer than that.

        Raises: the error of the collective, RuntimeError after the timeout.
        """
        return True

    def synchronize(self) -> None:
        """As `wait`."""
        self.wait()

    def block_current_stream(self) -> None:
        """As `wait`: the CPU has no streams."""
        self.wait()

    def result(self) -> Any:
        """The tensors that were written."""
        return self._result

    def get_future(self) -> Any:
        """A Future with the tensors that were written."""
        from ..core.futures import Future  # loaded when first used

        future: Any = Future()
        future.set_result(self._result)
        return future

    def source_rank(self) -> int:
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
        )

    def _source_rank(self) -> int:
        return self.source_rank()


class BackendType(Enum):
    """The backends that PyTorch numbers."""

    UNDEFINED = 0
    GLOO = 1
    NCCL = 2
    XCCL = 3
    UCC = 4
    MPI = 5
    CUSTOM = 6


class ProcessGroup:
    """Processes that take part in collectives: `rank` is the number of this one, `size` how many there are.

    `init_process_group` and `new_group` make groups. Backends that programs register may subclass it.
    """

    BackendType = BackendType
    UNDEFINED = BackendType.UNDEFINED
    GLOO = BackendType.GLOO
    NCCL = BackendType.NCCL
    XCCL = BackendType.XCCL
    UCC = BackendType.UCC
    MPI = BackendType.MPI
    CUSTOM = BackendType.CUSTOM

    def __init__(self, *arguments: Any) -> None:
        """From (rank, size) or (store, rank, size)."""
        *store, self._rank, self._size = arguments
        self._store = store[0] if store else None
        self._backends: dict[str, Any] = {}
        self._repeats: dict[Any, Any] = {}  # calls that were checked, see `_repeats.py`
        self._name = ""
        self._desc = "undefined"
        self.bound_device_id: Any = None

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def name(self) -> str:
        """The name of the backend."""
        return self._get_backend_name()

    def get_group_store(self) -> Any:
        return self._store

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._desc

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    @property
    def _device_types(self) -> list[Any]:
        from ..core.device import device as Device

        return [Device(name) for name in self._backends]

    def _register_backend(self, device: Any, backend_type: Any, backend: Any = None) -> None:
        self._backends[getattr(device, "type", device)] = backend

    def _set_default_backend(self, backend_type: Any) -> None:
        """Do nothing, because one backend serves all devices."""

    def _get_backend(self, device: Any) -> Any:
        name = getattr(device, "type", device)
        if name not in self._backends:
            raise RuntimeError(
                f"No backend type associated with device type {name}: this group has backends for "
                f"{', '.join(self._backends) or 'no device'}"
            )
        return self._backends[name]

    def _get_backend_name(self) -> str:
        return next((backend.name() for backend in self._backends.values()), "undefined")

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _set_sequence_number_for_group(self) -> None:
        """Do nothing: with one rank there are no other sequence numbers to agree with."""

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Every Work is complete when it is returned."""

    def _start_coalescing(self, device: Any) -> None:
        """Do nothing: one rank sends nothing, so there are no messages to coalesce."""

    def _end_coalescing(self, device: Any) -> Work:
        return Work()

    def abort(self) -> None:
        """As `shutdown`: ranks that wait for this one raise an error."""
        self.shutdown()

    def shutdown(self) -> None:
        """Leave the group. Collectives that were begun are carried out first, if the other ranks do so."""
        for backend in {id(each): each for each in self._backends.values()}.values():
            if hasattr(backend, "shutdown"):
                backend.shutdown()


def _through_backend(name: str) -> Callable[..., Any]:
    """A method of ProcessGroup that the backend of the tensors' device carries out."""

    def method(self: ProcessGroup, *arguments: Any, **keywords: Any) -> Any:
        where = _device_type(arguments)
        backend = self._backends.get(where or "cpu")
        if (
            backend is None
        ):  # a barrier has no tensors; the backend of the host's memory copies those of other devices
            backend = self._get_backend("cpu") if where else next(iter(self._backends.values()))
        return getattr(backend, name)(*arguments, **keywords)

    method.__name__ = name
    method.__qualname__ = f"ProcessGroup.{name}"
    method.__doc__ = f"As `torch.distributed` has it, for the tensors of this rank; the backend's `{name}`."
    return method


def _device_type(value: Any) -> str | None:
    """The type of the device of the first tensor; None without tensors."""
    while isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            return None
        value = value[0]
    return getattr(getattr(value, "device", None), "type", None)


# The methods that the backends carry out, and the operators of `torch.ops.c10d` that they are.
COLLECTIVES = {
    "allreduce": "allreduce_",
    "allreduce_coalesced": "allreduce_coalesced_",
    "broadcast": "broadcast_",
    "reduce": "reduce_",
    "allgather": "allgather_",
    "allgather_coalesced": "allgather_coalesced_",
    "allgather_into_tensor_coalesced": "allgather_into_tensor_coalesced_",
    "_allgather_base": "_allgather_base_",
    "gather": "gather_",
    "scatter": "scatter_",
    "reduce_scatter": "reduce_scatter_",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor_coalesced_",
    "_reduce_scatter_base": "_reduce_scatter_base_",
    "alltoall": "alltoall_",
    "alltoall_base": "alltoall_base_",
    "barrier": "barrier",
    "monitored_barrier": "monitored_barrier_",
    "send": "send",
    "recv": "recv_",
    "recv_anysource": "recv_any_source_",
}
for _name, _operator in COLLECTIVES.items():
    setattr(ProcessGroup, _name, operator(f"c10d::{_operator}")(_through_backend(_name)))
BackendType.__qualname__ = "ProcessGroup.BackendType"
