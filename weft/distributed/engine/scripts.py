"""Scripts: the steps of each collective through shared memory.

A collective consists of phases. In each phase a rank writes into its slot of the segment, says that it has arrived, waits until all have,
and reads the slots of the others. A script holds for tensors of one size and dtype at any address, and for any number of phases before it,
as long as that number stays even or odd: two slots take turns.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core.dtype import DTYPES
from ...core.spec import Spec
from .._reduce_op import RedOpType
from .reductions import Loop, fold, loop
from .segment import AREA, CHUNK, KEY, Segment
from .steps import Argument, Steps

# Bytes; up to here every rank combines all of a tensor. Measured on two processors (AMD Zen 3) with two ranks and float32.
SMALL = 1 << 15
SHOWN = 1 << 19  # bytes of a tensor that a rank shows at once
# Bytes; from here on ranks copy from each other's memory, once instead of twice. The system call takes longer to begin.
LARGE = 1 << 22
ALIGNED = 64  # bytes; shares of a piece begin at multiples

KINDS = ("barrier", "broadcast", "reduce", "all_reduce", "reduce_scatter", "gather", "all_gather", "scatter", "all_to_all")  # fmt: skip
_DTYPES = {dtype: number for number, dtype in enumerate(DTYPES.values())}


class Call(NamedTuple):
    """A collective, as all ranks have to call it. `spec`: of the tensor of one rank."""

    kind: str
    spec: Spec | None = None
    op: RedOpType | None = None
    root: int | None = None

    def key(self) -> bytes:
        """What has to be equal on all ranks. Only in `all_to_all` sizes may differ."""
        spec = self.spec
        words = (
            KINDS.index(self.kind),
            -1 if spec is None else _DTYPES[spec.dtype],
            spec.numel if spec is not None and self.kind != "all_to_all" else -1,
            -1 if self.op is None else self.op.value,
            -1 if self.root is None else self.root,
        )
        return struct.pack("8q", *words, 0, 0, 0)

    def __str__(self) -> str:
        parts = [] if self.op is None else [self.op.name]
        if self.spec is not None:
            parts.append(f"{self.spec.dtype}, size {tuple(self.spec.shape)}")
        if self.root is not None:
            parts.append(f"root {self.root}")
        return f"{self.kind}({', '.join(parts)})"


class Script:
    """Steps of one rank, which are written phase by phase. Argument 0 of the steps is the number of phases before, the others are tensors.

    turn: that number, modulo 2. call: what is compared with the calls of the other ranks in the first phase.
    processes: those of the ranks, where they may read each other's memory.
    """

    def __init__(
        self,
        segment: Segment,
        rank: int,
        turn: int,
        tensors: int = 0,
        call: Call | None = None,
        processes: Sequence[int] = (),
    ):
        self.segment, self.rank, self.size = segment, rank, segment.size
        self.processes = processes
        self.others = [other for other in range(self.size) if other != rank]
        self.steps = Steps(1 + tensors)
        self.tensors = [Argument(1 + number) for number in range(tensors)]
        self.turn = turn
        self.phases = 1  # the first one is being written
        self._kept: list[ctypes.Array] = []  # bytes that steps copy
        self._compares = call is not None
        if call is not None:
            self.show(segment.key(rank, self.slot), call.key())

    @property
    def slot(self) -> int:
        """The number of this phase, modulo 2: which of its two slots a rank uses."""
        return (self.turn + self.phases) % 2

    def show(self, to: int, content: bytes) -> None:
        """Write bytes that are known now."""
        self._kept.append(ctypes.create_string_buffer(content, len(content)))
        self.steps.copy(to, ctypes.addressof(self._kept[-1]), len(content))

    def meet(self) -> None:
        """End the writing of a phase and begin the reading."""
        segment, number = self.segment, Argument(0, self.phases)
        self.steps.arrive(segment.arrived(self.rank), number)
        self.steps.wait(segment.arrived(0), self.size, number)
        if self._compares and self.phases == 1:
            for other in self.others:
                self.steps.same(segment.key(self.rank, self.slot), segment.key(other, self.slot), KEY)

    def next_phase(self) -> None:
        self.phases += 1

    @functools.cached_property
    def start(self) -> Callable[..., int]:
        """As that of the steps."""
        return self.steps.start

    # ---- Collectives

    def write(self, call: Call) -> None:
        """Write the steps of a collective, of which `tensors` are the operands."""
        if call.kind == "barrier":
            self.meet()
            return
        assert call.spec is not None
        nbytes, own = call.spec.nbytes, self.tensors[0]
        if call.kind == "broadcast":
            assert call.root is not None
            is_root = self.rank == call.root
            self._show(nbytes, own if is_root else None, {} if is_root else {call.root: own})
        elif call.kind in ("gather", "all_gather"):
            self._show(nbytes, own, dict(enumerate(self.tensors[1:])))
        elif call.kind == "scatter":
            assert call.root is not None
            sent = [nbytes if self.rank == call.root else 0] * self.size
            received = [nbytes if rank == call.root else 0 for rank in range(self.size)]
            self.deal(self.tensors[1:], sent, {call.root: own}, received, nbytes)
        else:
            assert call.op is not None
            combine = loop(call.op, call.spec.dtype)
            if call.kind == "reduce_scatter":
                self._reduce_scatter(call.spec, combine)
            else:
                reduce = self._reduce_at_once if nbytes <= SMALL else self._reduce_by_shares
                reduce(call.spec, combine, is_target=call.root in (None, self.rank))

    def _show(self, nbytes: int, shown: Argument | None, read: Mapping[int, Argument]) -> None:
        """Let the others read `shown`, and copy into `read[r]` what rank r shows. The root of a broadcast reads nothing."""
        segment = self.segment
        if self.processes and nbytes >= LARGE:
            self._let_pull(nbytes, shown, read)
            return
        for start, length in pieces(nbytes, SHOWN):
            if start:
                self.next_phase()
            if shown is not None:
                self.steps.copy(segment.area(self.rank, self.slot), shown + start, length)
            self.meet()
            for rank, target in read.items():
                # What this rank shows is still in the cache of its processor.
                source = (
                    shown + start
                    if rank == self.rank and shown is not None
                    else segment.area(rank, self.slot)
                )
                self.steps.copy(target + start, source, length)

    def _let_pull(self, nbytes: int, shown: Argument | None, read: Mapping[int, Argument]) -> None:
        """As `_show`, by addresses: the others copy from there, and this rank goes on when all have done so."""
        segment = self.segment
        if shown is not None:
            self.steps.store(segment.numbers(self.rank, self.slot), shown)
        self.meet()
        for rank, target in read.items():
            if rank == self.rank and shown is not None:
                self.steps.copy(target, shown, nbytes)
            else:
                self.steps.pull(target, segment.numbers(rank, self.slot), nbytes, self.processes[rank])
        self.next_phase()
        self.meet()

    def deal(
        self,
        sources: Sequence[Argument],
        sent: Sequence[int],
        targets: Mapping[int, Argument],
        received: Sequence[int],
        longest: int,
    ) -> None:
        """Copy `sent[r]` bytes from `sources[r]` to rank r, and `received[r]` bytes from rank r to `targets[r]`."""
        piece = self._part
        for start, _ in pieces(longest, piece):
            if start:
                self.next_phase()
            own = self.segment.area(self.rank, self.slot)
            for other in self.others:
                length = min(piece, sent[other] - start)
                if length > 0:
                    self.steps.copy(own + other * piece, sources[other] + start, length)
            self.meet()
            for other in self.others:
                length = min(piece, received[other] - start)
                if length > 0:
                    place = self.segment.area(other, self.slot) + self.rank * piece
                    self.steps.copy(targets[other] + start, place, length)
        if sent[self.rank]:
            self.steps.copy(targets[self.rank], sources[self.rank], sent[self.rank])

    @property
    def _part(self) -> int:
        """The bytes of an area for each rank."""
        return AREA // self.size // ALIGNED * ALIGNED

    # ---- Reductions

    def _reduce_at_once(self, spec: Spec, combine: Loop, is_target: bool) -> None:
        (own,) = self.tensors
        self.steps.copy(self.segment.area(self.rank, self.slot), own, spec.nbytes)
        self.meet()
        if is_target:
            shown = [self.segment.area(rank, self.slot) for rank in range(self.size)]
            fold(self.steps, combine, own, shown, spec.numel)

    def _reduce_by_shares(self, spec: Spec, combine: Loop, is_target: bool) -> None:
        """Each phase shows a piece of the tensor, and the shares of the result of the piece before."""
        segment, itemsize, ranks = self.segment, spec.dtype.itemsize, range(self.size)
        (own,) = self.tensors
        shares: list[tuple[int, int]] = []  # of the piece before: start and end in bytes
        before = 0  # its start
        for start, length in pieces(spec.nbytes, CHUNK):
            self.steps.copy(segment.area(self.rank, self.slot), own + start, length)
            self.meet()
            self._read_results(own + before, shares, is_target)
            shares, before = _shares(length, self.size), start
            begin, end = shares[self.rank]
            shown = [segment.area(rank, self.slot) + begin for rank in ranks]
            self.next_phase()
            result = segment.results(self.rank, self.slot) + begin
            fold(self.steps, combine, result, shown, (end - begin) // itemsize)
        self.meet()
        self._read_results(own + before, shares, is_target)

    def _read_results(self, piece: Argument, shares: Sequence[tuple[int, int]], is_target: bool) -> None:
        if is_target:
            for rank, (begin, end) in enumerate(shares):
                self.steps.copy(piece + begin, self.segment.results(rank, self.slot) + begin, end - begin)

    def _reduce_scatter(self, spec: Spec, combine: Loop) -> None:
        target, *sources = self.tensors
        for start, length in pieces(spec.nbytes, self._part):
            if start:
                self.next_phase()
            for rank, source in enumerate(sources):
                self.steps.copy(
                    self.segment.area(self.rank, self.slot) + rank * self._part, source + start, length
                )
            self.meet()
            shown = [self.segment.area(rank, self.slot) + self.rank * self._part for rank in range(self.size)]
            fold(self.steps, combine, target + start, shown, length // spec.dtype.itemsize)


def pieces(nbytes: int, most: int) -> Iterator[tuple[int, int]]:
    """The start and the length of each piece of so many bytes; at least one piece."""
    for start in range(0, max(nbytes, 1), most):
        yield start, min(most, nbytes - start)


def _shares(nbytes: int, size: int) -> list[tuple[int, int]]:
    """The start and the end of each rank's share of a piece."""
    share = -(-nbytes // size // ALIGNED) * ALIGNED
    return [(min(rank * share, nbytes), min((rank + 1) * share, nbytes)) for rank in range(size)]
