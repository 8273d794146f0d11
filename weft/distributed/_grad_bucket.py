"""GradBucket: gradients that a communication hook of DistributedDataParallel gets at once."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


class GradBucket:
    """Gradients that a communication hook gets at once: `buffer` has them one after the other."""

    def __init__(self, index: int, buffer: Tensor, parameters: list[Tensor], is_last: bool) -> None:
        self._index = index
        self._buffer = buffer
        self._parameters = parameters
        self._is_last = is_last

    def index(self) -> int:
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last bucket of the backward pass."""
        return self._is_last

    def buffer(self) -> Tensor:
        """All gradients in one row."""
        return self._buffer

    def set_buffer(self, tensor: Tensor) -> None:
        self._buffer = tensor

    def _receive(self, result: Any) -> None:
        """Have the gradients that a hook returns: a row, or a list of one."""
        self._buffer = result[0] if isinstance(result, list | tuple) else result

    def parameters(self) -> list[Tensor]:
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """The parts of the buffer, in the shapes of the parameters."""
        parts = self._buffer.split([each.numel() for each in self._parameters])
        return [part.view(each.shape) for part, each in zip(parts, self._parameters)]


GradBucket.__module__ = __name__.rpartition(".")[0]  # where it is public
