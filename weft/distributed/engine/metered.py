"""An engine that notes what another one carries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from ...core.tensor import Tensor
from .._reduce_op import RedOpType
from .engine import Engine, Request

Note = Callable[[str, int, int], None]  # a call, the ranks of its group, the bytes of all that it moves


class Metered(Engine):
    """Notes each call, with the bytes of the tensor that all ranks have together, or of the message, then has it carried out."""

    def __init__(self, engine: Engine, note: Note):
        super().__init__(engine.rank, engine.size, engine.timeout)
        self.engine, self._note = engine, note

    def _noted(self, name: str, tensors: Sequence[Tensor]) -> Engine:
        self._note(name, self.size, sum(tensor.spec.nbytes for tensor in tensors))
        return self.engine

    def barrier(self, timeout: timedelta | None = None) -> None:
        self._noted("barrier", ()).barrier(timeout)

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._noted("broadcast", [tensor]).broadcast(tensor, root)

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        self._noted("all_reduce" if root is None else "reduce", [tensor]).reduce(tensor, op, root)

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        self._noted("reduce_scatter", inputs).reduce_scatter(output, inputs, op)

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        name = "all_gather" if root is None else "gather"
        self._noted(name, [tensor] * self.size).gather(outputs, tensor, root)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        self._noted("scatter", [output] * self.size).scatter(output, inputs, root)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self._noted("all_to_all", inputs).all_to_all(outputs, inputs)

    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        return self._noted("send", [tensor]).send(tensor, dst, tag)

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        return self.engine.recv(tensor, src, tag)  # the sender notes it

    def close(self) -> None:
        self.engine.close()
