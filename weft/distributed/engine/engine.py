"""Engine, the interface of what carries collectives out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta

from ...core.tensor import Tensor
from .._reduce_op import RedOpType


class Engine(ABC):
    """The collectives of one group. Tensors are contiguous and in the memory of the host; `root`, `dst` and `src` count in the group.

    All ranks call the same methods in the same order, but for `send` and `recv`. Every method returns when this rank is done.
    Methods raise RuntimeError if another rank has ended, calls something else, or does not come within the timeout.
    """

    def __init__(self, rank: int, size: int, timeout: timedelta = timedelta(0)):
        self.rank = rank
        self.size = size
        self.timeout = timeout

    @abstractmethod
    def barrier(self, timeout: timedelta | None = None) -> None:
        """Return when all ranks have come. `timeout`: instead of the group's."""

    @abstractmethod
    def broadcast(self, tensor: Tensor, root: int) -> None:
        """Write the tensor of `root` into those of the others."""

    @abstractmethod
    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        """Combine the tensors in the order of ranks, and write the result into that of `root`; None means all.

        Every rank gets the same bits.
        """

    @abstractmethod
    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        """Combine `inputs[r]` of all ranks, and write the result into the output of rank r. All have one size."""

    @abstractmethod
    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        """Write the tensor of rank r into `outputs[r]` of `root`; None means all. All have one size."""

    @abstractmethod
    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        """Write `inputs[r]` of `root` into the output of rank r. All have one size."""

    @abstractmethod
    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Write `inputs[r]` of rank s into `outputs[s]` of rank r. Sizes may differ."""

    @abstractmethod
    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        """Begin to send a tensor to another rank."""

    @abstractmethod
    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        """Begin to write a tensor that another rank sends, any with None, into `tensor`."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group, and free what it holds."""


class Request(ABC):
    """A message that was begun. `source` is the rank that it came from, once it is there."""

    source: int | None = None

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the message has been sent or received. Does not wait."""

    @abstractmethod
    def wait(self, timeout: timedelta | None = None) -> None:
        """Return when it has. `timeout`: instead of the group's. Raises: RuntimeError, as the methods of Engine."""

    @abstractmethod
    def go_on(self) -> None:
        """See to it that the message makes progress although the program does not wait for it now."""
