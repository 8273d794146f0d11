"""The order of a sequence before it is cut, so that causal attention gives all processes as much to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ....core.tensor import Tensor
from ....ops.creation.from_data import tensor


class _LoadBalancer(ABC):
    @abstractmethod
    def _generate_indices(self, restore: bool = False) -> Tensor | None:
        """Return the positions in their new order, [1 or samples, length]; with `restore`, those that undo it."""


class _HeadTailLoadBalancer(_LoadBalancer):
    """Gives each process a piece from the front and its counterpart from the end.

    >>> import weft as torch
    >>> balancer = _HeadTailLoadBalancer(8, 2, "cpu")
    >>> balancer._generate_indices(), balancer._generate_indices(restore=True)
    (tensor([[0, 1, 6, 7, 2, 3, 4, 5]]), tensor([[0, 1, 4, 5, 6, 7, 2, 3]]))
    """

    def __init__(self, seq_length: int, world_size: int, device: Any) -> None:
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore: bool = False) -> Tensor:
        pieces = 2 * self.world_size
        if self.seq_length % pieces:
            raise AssertionError(
                f"a sequence of {self.seq_length} positions cannot be cut into {pieces} equal pieces, two for each process"
            )
        size = self.seq_length // pieces
        order = [
            position
            for rank in range(self.world_size)
            for piece in (rank, pieces - 1 - rank)
            for position in range(piece * size, (piece + 1) * size)
        ]
        found = tensor([order], device=self.device)
        return found.argsort(-1) if restore else found
