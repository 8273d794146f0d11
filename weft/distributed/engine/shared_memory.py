"""The engine of several processes of one machine: collectives through shared memory.

A collective consists of *phases*. In each phase a rank writes into its slot of the segment, says that it has arrived, waits for the
others, and reads their slots. A rank has two slots, which phases use in turn. So one wait for each phase is enough: when
all ranks have arrived in a phase, nobody reads the slots of the phase before, and the next phase uses those.

A reduction cuts the data into pieces. Of each piece a rank combines one share, always in the order of ranks. So the bits of a result depend
neither on timing nor on the rank, as each element is computed once. All ranks read small tensors and combine them alike, which saves a phase.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, NoReturn

from ...core.dtype import DTYPES
from ...core.tensor import Tensor, address
from ...core.warn import user_line
from .._reduce_op import RedOpType
from .._store import Store
from .engine import Engine, Request
from .mailboxes import Mail
from .meeting import meet
from .reductions import Loop, fold, loop
from .segment import AREA, CHUNK, KEY, number_at
from .steps import SAME, Steps
from .waiting import Waiting

# Bytes; up to here every rank combines all of a tensor. Measured on two processors (AMD Zen 3) with two ranks and float32.
SMALL = 1 << 15
ALIGNED = 64  # bytes; shares of a piece begin at multiples
TEXT = 256  # bytes of the description of a call

_KINDS = ("barrier", "broadcast", "reduce", "all_reduce", "reduce_scatter", "gather", "all_gather", "scatter", "all_to_all")  # fmt: skip
_DTYPES = {dtype: number for number, dtype in enumerate(DTYPES.values())}


class Call(NamedTuple):
    """A collective, as all ranks have to call it."""

    kind: str
    tensor: Tensor | None = None
    op: RedOpType | None = None
    root: int | None = None
    sized: bool = True  # whether all ranks have tensors of one size

    def key(self) -> bytes:
        tensor = self.tensor
        words = (
            _KINDS.index(self.kind),
            -1 if tensor is None else _DTYPES[tensor.spec.dtype],
            tensor.spec.numel if tensor is not None and self.sized else -1,
            -1 if self.op is None else self.op.value,
            -1 if self.root is None else self.root,
        )
        return struct.pack("8q", *words, 0, 0, 0)

    def __str__(self) -> str:
        parts = [] if self.op is None else [self.op.name]
        if self.tensor is not None:
            parts.append(f"{self.tensor.dtype}, size {tuple(self.tensor.shape)}")
        if self.root is not None:
            parts.append(f"root {self.root}")
        return f"{self.kind}({', '.join(parts)})"


class SharedMemory(Engine):
    """Collectives of `size` processes that meet through `store`.

    Raises: as `meet`.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta):
        super().__init__(rank, size, timeout)
        self.segment, self.peers = meet(store, rank, size, timeout)
        self.others = [other for other in range(size) if other != rank]
        self.phase = 0
        self.broken: str | None = None  # why the group cannot be used any more
        self.mail = Mail(self.segment, self.peers, rank)
        self.barrier()  # the process that keeps the store may end once all ranks are here

    def close(self) -> None:
        """Leave: ranks that wait for this one raise an error."""
        steps = Steps()
        steps.arrive(self.segment.left(self.rank), 1)
        steps.carry_out()
        self.broken = "the group was destroyed"
        self.mail.close()

    # ---- Phases

    def _begin(self, call: Call) -> Steps:
        """The list of steps of a collective. The first phase shows the others what is called."""
        if self.broken is not None:
            raise RuntimeError(
                f"{call}: this group cannot be used any more, because of an error before: {self.broken}"
            )
        self.phase += 1
        self.first = self.phase
        ctypes.memmove(self.segment.key(self.rank, self.phase), call.key(), KEY)
        return Steps()

    def _meet(self, steps: Steps) -> None:
        """End the writing of a phase and begin the reading."""
        segment, phase = self.segment, self.phase
        steps.arrive(segment.arrived(self.rank), phase)
        steps.wait(segment.arrived(0), self.size, phase)
        if phase == self.first:
            own = segment.key(self.rank, phase)
            for other in self.others:
                steps.same(own, segment.key(other, phase), KEY)

    def _carry_out(self, steps: Steps, call: Call, timeout: timedelta | None = None) -> None:
        """Carry the steps out. Raises: RuntimeError as `Waiting.look`, or if another rank calls something else."""
        waiting = None
        try:
            while (kind := steps.carry_out()) is not None:
                if kind == SAME:
                    break
                waiting = waiting or self._waiting(call, timeout or self.timeout)
                waiting.look()
        except BaseException as error:
            self.broken = str(error) or type(error).__name__
            raise
        if kind == SAME:  # all ranks have seen it, and are still in step
            self._disagree(call)

    def _waiting(self, call: Call, timeout: timedelta) -> Waiting:
        def missing() -> list[int]:
            own = number_at(self.segment.arrived(self.rank))
            return [other for other in self.others if number_at(self.segment.arrived(other)) < own]

        return Waiting(self.segment, self.peers, self.rank, call, missing, timeout.total_seconds())

    def _disagree(self, call: Call) -> NoReturn:
        """Tell the others what this rank has called, and where. Raises: RuntimeError with what all of them have."""
        self.phase = self.first + 1
        line = user_line()
        text = (str(call) if line is None else f"{call}, {line}").encode()[:TEXT]
        ctypes.memmove(self.segment.area(self.rank, self.phase), text.ljust(TEXT), TEXT)
        steps = Steps()
        self._meet(steps)
        self._carry_out(steps, call)
        calls = [ctypes.string_at(self.segment.area(rank, self.phase), TEXT) for rank in range(self.size)]
        lines = [f"  rank {rank}: {each.decode().rstrip()}" for rank, each in enumerate(calls)]
        raise RuntimeError("the ranks of a group have called different collectives:\n" + "\n".join(lines))

    # ---- Collectives

    def barrier(self, timeout: timedelta | None = None) -> None:
        call = Call("barrier")
        steps = self._begin(call)
        self._meet(steps)
        self._carry_out(steps, call, timeout)

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._show(
            Call("broadcast", tensor, root=root), tensor if self.rank == root else None, {root: tensor}
        )

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        call = Call("all_gather" if root is None else "gather", tensor, root=root)
        self._show(call, tensor, dict(enumerate(outputs)))

    def _show(self, call: Call, shown: Tensor | None, read: Mapping[int, Tensor]) -> None:
        """Let the others read `shown`, and copy into `read[r]` what rank r shows."""
        assert call.tensor is not None
        steps = self._begin(call)
        nbytes = call.tensor.spec.nbytes
        targets = [(rank, address(tensor)) for rank, tensor in read.items() if rank != self.rank]
        source = address(shown) if shown is not None else 0
        for start in range(0, max(nbytes, 1), AREA):
            length = min(AREA, nbytes - start)
            if shown is not None:
                steps.copy(self.segment.area(self.rank, self.phase), source + start, length)
            self._meet(steps)
            for rank, target in targets:
                steps.copy(target + start, self.segment.area(rank, self.phase), length)
            self.phase += 1
        self.phase -= 1
        if shown is not None and self.rank in read:
            steps.copy(address(read[self.rank]), source, nbytes if read[self.rank] is not shown else 0)
        self._carry_out(steps, call)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        call = Call("scatter", output, root=root)
        nbytes = output.spec.nbytes
        sent = [nbytes] * self.size if self.rank == root else [0] * self.size
        received = [nbytes if rank == root else 0 for rank in range(self.size)]
        steps = self._begin(call)
        self._deal(steps, [*map(address, inputs)], sent, {root: address(output)}, received, nbytes)
        self._carry_out(steps, call)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        call = Call("all_to_all", inputs[0], sized=False)
        sent, received = ([each.spec.nbytes for each in tensors] for tensors in (inputs, outputs))
        longest = self._agree_on_sizes(call, sent, received)
        steps = Steps()
        self.phase += 1
        self._deal(
            steps, [*map(address, inputs)], sent, dict(enumerate(map(address, outputs))), received, longest
        )
        self._carry_out(steps, call)

    def _agree_on_sizes(self, call: Call, sent: Sequence[int], received: Sequence[int]) -> int:
        """The most bytes that one rank sends another. Raises: RuntimeError if a rank expects other sizes than it is sent."""
        steps = self._begin(call)
        table = struct.pack(f"{2 * self.size}q", *sent, *received)
        ctypes.memmove(self.segment.numbers(self.rank, self.phase), table, len(table))
        self._meet(steps)
        self._carry_out(steps, call)
        tables = [
            struct.unpack(
                f"{2 * self.size}q", ctypes.string_at(self.segment.numbers(rank, self.phase), len(table))
            )
            for rank in range(self.size)
        ]
        for source, target in itertools.product(range(self.size), repeat=2):
            given, wanted = tables[source][target], tables[target][self.size + source]
            if given != wanted:
                raise RuntimeError(
                    f"{call}: rank {source} sends {given} bytes to rank {target}, which expects {wanted}"
                )
        return max(map(max, tables))

    def _deal(
        self,
        steps: Steps,
        sources: Sequence[int],
        sent: Sequence[int],
        targets: Mapping[int, int],
        received: Sequence[int],
        longest: int,
    ) -> None:
        """Copy `sent[r]` bytes from `sources[r]` to rank r, and `received[r]` bytes from rank r to `targets[r]`."""
        piece = AREA // self.size // ALIGNED * ALIGNED
        for start in range(0, max(longest, 1), piece):
            own = self.segment.area(self.rank, self.phase)
            for other in self.others:
                length = min(piece, sent[other] - start)
                if length > 0:
                    steps.copy(own + other * piece, sources[other] + start, length)
            self._meet(steps)
            for other in self.others:
                length = min(piece, received[other] - start)
                if length > 0:
                    place = self.segment.area(other, self.phase) + self.rank * piece
                    steps.copy(targets[other] + start, place, length)
            self.phase += 1
        self.phase -= 1
        if sent[self.rank]:
            steps.copy(targets[self.rank], sources[self.rank], sent[self.rank])

    # ---- Reductions

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        call = Call("all_reduce" if root is None else "reduce", tensor, op, root)
        combine = loop(op, tensor.spec.dtype)  # first, because it may raise
        steps = self._begin(call)
        is_target = root is None or root == self.rank
        reduce = self._reduce_at_once if tensor.spec.nbytes <= SMALL else self._reduce_by_shares
        reduce(steps, tensor, combine, is_target)
        self._carry_out(steps, call)

    def _reduce_at_once(self, steps: Steps, tensor: Tensor, combine: Loop, is_target: bool) -> None:
        own = address(tensor)
        steps.copy(self.segment.area(self.rank, self.phase), own, tensor.spec.nbytes)
        self._meet(steps)
        if is_target:
            shown = [self.segment.area(rank, self.phase) for rank in range(self.size)]
            fold(steps, combine, own, shown, tensor.spec.numel)

    def _reduce_by_shares(self, steps: Steps, tensor: Tensor, combine: Loop, is_target: bool) -> None:
        """Each phase shows a piece of the tensor, and the shares of the result of the piece before."""
        segment, itemsize, own = self.segment, tensor.spec.dtype.itemsize, address(tensor)
        ranks = range(self.size)
        pieces = list(_pieces(tensor.spec.nbytes, CHUNK))
        shares: list[tuple[int, int]] = []  # of the piece before: start and end in bytes
        before = 0  # its start
        for start, length in [*pieces, (0, 0)]:
            steps.copy(segment.area(self.rank, self.phase), own + start, length)
            self._meet(steps)
            if is_target:
                for rank, (begin, end) in zip(ranks, shares):
                    steps.copy(own + before + begin, segment.results(rank, self.phase) + begin, end - begin)
            shares, before = _shares(length, self.size), start
            begin, end = shares[self.rank]
            shown = [segment.area(rank, self.phase) + begin for rank in ranks]
            result = segment.results(self.rank, self.phase + 1) + begin
            fold(steps, combine, result, shown, (end - begin) // itemsize)
            self.phase += 1
        self.phase -= 1

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        call = Call("reduce_scatter", output, op)
        combine = loop(op, output.spec.dtype)  # first, because it may raise
        steps = self._begin(call)
        segment, itemsize, nbytes = self.segment, output.spec.dtype.itemsize, output.spec.nbytes
        piece = AREA // self.size // ALIGNED * ALIGNED
        sources, target = [*map(address, inputs)], address(output)
        for start, length in _pieces(nbytes, piece):
            for rank, source in enumerate(sources):
                steps.copy(segment.area(self.rank, self.phase) + rank * piece, source + start, length)
            self._meet(steps)
            shown = [segment.area(rank, self.phase) + self.rank * piece for rank in range(self.size)]
            fold(steps, combine, target + start, shown, length // itemsize)
            self.phase += 1
        self.phase -= 1
        self._carry_out(steps, call)

    # ---- Messages

    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        return self.mail.send(tensor, dst, tag, self.timeout)

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        return self.mail.recv(tensor, src, tag, self.timeout)


def _pieces(nbytes: int, most: int) -> Iterator[tuple[int, int]]:
    """The start and the length of each piece of so many bytes; at least one piece."""
    for start in range(0, max(nbytes, 1), most):
        yield start, min(most, nbytes - start)


def _shares(nbytes: int, size: int) -> list[tuple[int, int]]:
    """The start and the end of each rank's share of a piece."""
    share = -(-nbytes // size // ALIGNED) * ALIGNED
    return [(min(rank * share, nbytes), min((rank + 1) * share, nbytes)) for rank in range(size)]
