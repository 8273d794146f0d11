"""The options of the collectives as methods of a ProcessGroup."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ._reduce_op import ReduceOp

_UNSET = timedelta(milliseconds=-1000)  # PyTorch's mark for "the timeout of the group"


class _Options:
    """Attributes with the values that they start with; asyncOp and timeout belong to all."""

    def __init__(self) -> None:
        self.asyncOp = True
        self.timeout = _UNSET


class _Reducing(_Options):
    def __init__(self) -> None:
        super().__init__()
        self.reduceOp: Any = ReduceOp(ReduceOp.SUM)


class AllreduceOptions(_Reducing):
    """Options of `ProcessGroup.allreduce`."""


class AllreduceCoalescedOptions(_Reducing):
    """Options of `ProcessGroup.allreduce_coalesced`."""


class ReduceScatterOptions(_Reducing):
    """Options of `ProcessGroup.reduce_scatter`."""


class AllToAllOptions(_Options):
    """Options of `ProcessGroup.alltoall`."""


class AllgatherOptions(_Options):
    """Options of `ProcessGroup.allgather`."""


class GatherOptions(_Options):
    """Options of `ProcessGroup.gather`."""

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = 0


class ScatterOptions(GatherOptions):
    """Options of `ProcessGroup.scatter`."""


class BroadcastOptions(GatherOptions):
    """Options of `ProcessGroup.broadcast`."""

    def __init__(self) -> None:
        super().__init__()
        self.rootTensor = 0


class ReduceOptions(_Reducing):
    """Options of `ProcessGroup.reduce`."""

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = 0
        self.rootTensor = 0


class BarrierOptions(_Options):
    """Options of `ProcessGroup.barrier`."""

    def __init__(self) -> None:
        super().__init__()
        self.device: Any = None
        self.device_ids: list[int] = []
