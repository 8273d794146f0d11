"""Collectives of many small tensors in one message for each dtype."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.dtype import DType
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ._collectives import broadcast
from ._group import ProcessGroup


def broadcast_coalesced(group: ProcessGroup, tensors: Sequence[Tensor], root: int) -> None:
    """Write the tensors of rank `root` of the group into those of the others."""
    with no_grad():
        for alike in by_dtype(tensors):
            row = cat([tensor.detach().reshape(-1) for tensor in alike])
            broadcast(row, group=group, group_src=root)
            if group.rank() != root:
                for tensor, part in zip(alike, row.split([tensor.numel() for tensor in alike])):
                    tensor.detach().copy_(part.view(tensor.shape))


def by_dtype(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors of each dtype, in their order."""
    found: dict[DType, list[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.dtype, []).append(tensor)
    yield from found.values()
