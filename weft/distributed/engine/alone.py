"""The engine of a group of one process: what a collective reads is what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NoReturn

from ...core.tensor import Tensor
from .._reduce_op import RedOpType
from .engine import Engine


class Alone(Engine):
    """Copies where a collective has an output of its own."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def barrier(self, timeout: timedelta | None = None) -> None:
        """One rank never waits."""

    def broadcast(self, tensor: Tensor, root: int) -> None:
        """The tensor is that of the root."""

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        """There is nothing to combine with."""

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        copy(output, inputs[0])

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        copy(outputs[0], tensor)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        copy(output, inputs[0])

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        copy(outputs[0], inputs[0])

    def send(self, tensor: Tensor, dst: int, tag: int) -> NoReturn:
        raise RuntimeError(f"send to rank {dst}: the group has one rank, which is not connected to itself")

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> NoReturn:
        if src is None:
            raise RuntimeError("recv from any rank: the group has one rank, so that nobody sends")
        raise RuntimeError(f"recv from rank {src}: the group has one rank, which is not connected to itself")

    def close(self) -> None:
        """One rank holds nothing."""


def copy(output: Tensor, tensor: Tensor) -> None:
    """Write a tensor into another one. No gradient passes through."""
    output.detach().copy_(tensor.detach())
