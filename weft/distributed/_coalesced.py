"""Collectives of many small tensors in one message for each dtype."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.dtype import DType
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ._collectives import broadcast
from ._group import ProcessGroup


class CoalescedBroadcast:
    """The tensors of rank `root` of the group on their way into those of the others. `wait` writes them."""

    def __init__(
        self, group: ProcessGroup, tensors: Sequence[Tensor], root: int, async_op: bool = True
    ) -> None:
        self._receives = group.rank() != root
        self._sent: list[tuple[list[Tensor], Tensor, Any]] = []
        with no_grad():
            for alike in by_dtype(tensors):
                row = cat([tensor.detach().reshape(-1) for tensor in alike])
                work = broadcast(row, group=group, async_op=async_op, group_src=root)
                self._sent.append((alike, row, work))

    def wait(self) -> None:
        """Return when the tensors have the values of rank `root`."""
        for alike, row, work in self._sent:
            if work is not None:
                work.wait()
            if self._receives:
                for tensor, part in zip(alike, row.split([tensor.numel() for tensor in alike])):
                    tensor.detach().copy_(part.view(tensor.shape))


def broadcast_coalesced(group: ProcessGroup, tensors: Sequence[Tensor], root: int) -> None:
    """Write the tensors of rank `root` of the group into those of the others."""
    CoalescedBroadcast(group, tensors, root, async_op=False).wait()


def by_dtype(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors of each dtype, in their order."""
    found: dict[DType, list[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.dtype, []).append(tensor)
    yield from found.values()
