"""Layers that merge several dims, and split one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ..module import Module
from .utils import shown

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Merges the dims from `start_dim` to `end_dim`.

    >>> import weft as torch
    >>> torch.nn.Flatten()(torch.zeros(32, 1, 5, 5)).shape
    torch.Size([32, 25])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return shown(self, "start_dim", "end_dim")


class Unflatten(Module):
    """Splits dim `dim` into dims of sizes `unflattened_size`; one of them may be -1.

    >>> import weft as torch
    >>> torch.nn.Unflatten(1, (2, 5))(torch.zeros(3, 10)).shape
    torch.Size([3, 2, 5])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise NotImplementedError("Unflatten: named dims are not available")
        _check_sizes(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return shown(self, "dim", "unflattened_size")


def _check_sizes(sizes: Any) -> None:
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
    for place, size in enumerate(sizes):
        if not isinstance(size, int):
            raise TypeError(
                f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {place}"
            )
