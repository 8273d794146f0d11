"""The engine of a group whose other ranks do not exist: programs for thousands of processes run as one of them.

Reductions leave the tensor as it is, gathered tensors are all this rank's, and what is received keeps its content, as in PyTorch's fake groups.
So shapes, memory and the order of collectives are right, and numbers are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from ...core.tensor import Tensor
from .._reduce_op import RedOpType
from .alone import copy
from .engine import Engine, Request


class _Done(Request):
    """A message to or from nobody."""

    def __init__(self, source: int | None):
        self.source = source

    def is_done(self) -> bool:
        return True

    def wait(self, timeout: timedelta | None = None) -> None:
        """There is nothing to wait for."""

    def go_on(self) -> None:
        """It is done."""


class Fake(Engine):
    """Does this rank's part."""

    def barrier(self, timeout: timedelta | None = None) -> None:
        """Nobody else comes."""

    def broadcast(self, tensor: Tensor, root: int) -> None:
        """The tensor stays as it is."""

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        """The tensor stays as it is."""

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        copy(output, inputs[self.rank])

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        for output in outputs:
            copy(output, tensor)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        if self.rank == root:
            copy(output, inputs[root])

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        for output, tensor in zip(outputs, inputs, strict=True):
            if output.shape == tensor.shape:
                copy(output, tensor)

    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        return _Done(None)

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        return _Done(src)

    def close(self) -> None:
        """There is nothing to free."""
