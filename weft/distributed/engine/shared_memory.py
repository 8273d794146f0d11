"""The engine of several processes on one machine: collectives through shared memory.

A collective is a script (`scripts.py`), which machine code carries out. The script is written at the first call with tensors of a size and
dtype, and kept. The first phase also shows what is called, so that all ranks see when they disagree, and are still in step.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from ...core.tensor import Tensor
from ...core.warn import user_line
from .._reduce_op import RedOpType
from .engine import Engine, Request
from .mailboxes import Mail
from .peers import Peer
from .scripts import Call, Script
from .segment import Segment, bytes_at, number_at
from .steps import DONE, PULL, SAME, Steps
from .waiting import Waiting

TEXT = 256  # bytes of the description of a call
KEPT = 128  # scripts; one of 100 MiB has 50 KB


class SharedMemory(Engine):
    """Collectives of the processes `peers`, which share a segment."""

    def __init__(self, segment: Segment, peers: Sequence[Peer], rank: int, timeout: timedelta):
        super().__init__(rank, len(peers), timeout)
        self.segment, self.peers = segment, peers
        self.others = [other for other in range(self.size) if other != rank]
        self.phase = 0  # how many phases there were
        self.broken: str | None = None  # why the group cannot be used any more
        self.mail = Mail(segment, peers, rank)
        self._scripts: dict[Any, Script] = {}  # by call, and whether the number of phases before is odd
        self._processes: list[int] = []  # of the ranks, where they may read each other's memory
        self.barrier()  # the process that keeps the store may end once all ranks are here
        if self._may_read_memory():
            self._processes = [peer.pid for peer in peers]

    def close(self) -> None:
        """Leave: ranks that wait for this one raise an error."""
        steps = Steps()
        steps.arrive(self.segment.left(self.rank), 1)
        steps.carry_out()
        self.broken = "the group was destroyed"
        self.mail.close()

    def _may_read_memory(self) -> bool:
        """Whether the system lets all ranks read the memory of all others. Containers and hardened systems forbid it."""
        word, steps = ctypes.c_int64(), Steps()
        for rank, place in enumerate(self._exchange(self.segment.address)):
            if rank != self.rank:
                steps.pull(ctypes.addressof(word), place, ctypes.sizeof(word), self.peers[rank].pid)
        return all(map(number_at, self._exchange(int(steps.carry_out() == DONE))))

    def _exchange(self, number: int) -> list[int]:
        """Show the others a number; where those of all ranks are."""
        script = Script(self.segment, self.rank, self.phase & 1)
        script.steps.store(self.segment.numbers(self.rank, script.slot), number)
        script.meet()
        self._carry_out(script, ("barrier",))
        return [self.segment.numbers(rank, script.slot) for rank in range(self.size)]

    # ---- Carrying out

    def _call(self, call: tuple, *tensors: Tensor) -> None:
        """Carry out a collective, the fields of a Call, on these tensors. Its script is kept."""
        script = self._scripts.get((call, self.phase & 1))
        self._carry_out(script or self._written(call, len(tensors)), call, tensors)

    def _written(self, call: tuple, tensors: int) -> Script:
        script = self._script(Call(*call), tensors)
        script.write(Call(*call))
        if len(self._scripts) == KEPT:
            del self._scripts[next(iter(self._scripts))]
        self._scripts[call, self.phase & 1] = script
        return script

    def _script(self, call: Call, tensors: int = 0) -> Script:
        return Script(self.segment, self.rank, self.phase & 1, tensors, call, self._processes)

    def _carry_out(
        self, script: Script, call: tuple, tensors: Sequence[Tensor] = (), timeout: timedelta | None = None
    ) -> None:
        """Carry the steps out. Raises: RuntimeError as `Waiting.look`, or if another rank calls something else."""
        if self.broken is not None:
            raise RuntimeError(
                f"{Call(*call)}: this group cannot be used any more, because of an error before: {self.broken}"
            )
        before = self.phase
        self.phase = before + script.phases
        try:
            kind = script.start(before, *[each._storage.ptr + each._byte_offset for each in tensors])
            if kind == DONE:
                return
            if kind != SAME:
                kind = self._go_on(script.steps, kind, Call(*call), timeout or self.timeout)
        except BaseException as error:
            self.broken = str(error) or type(error).__name__
            raise
        if kind == SAME:  # all ranks have seen it, and are still in step
            self.phase = before + 1
            self._disagree(Call(*call))

    def _go_on(self, steps: Steps, kind: int, call: Call, timeout: timedelta) -> int:
        """Wait for the others, from a step of this kind on, until all steps are done or two ranks disagree."""

        def missing() -> list[int]:
            own = number_at(self.segment.arrived(self.rank))
            return [other for other in self.others if number_at(self.segment.arrived(other)) < own]

        waiting = Waiting(self.segment, self.peers, self.rank, call, missing, timeout.total_seconds())
        while kind not in (DONE, SAME):
            if kind == PULL:
                raise RuntimeError(
                    f"{call}: {self._why_unreadable()}, while rank {self.rank} read its memory"
                )
            waiting.look()
            kind = steps.carry_out()
        return kind

    def _why_unreadable(self) -> str:
        for rank in self.others:
            if self.peers[rank].has_ended():
                return f"rank {rank} (process {self.peers[rank].pid}) has ended"
        return "the system has refused"

    def _disagree(self, call: Call) -> NoReturn:
        """Tell the others what this rank has called, and where. Raises: RuntimeError with what all of them have."""
        line = user_line()
        text = (str(call) if line is None else f"{call}, {line}").encode()[:TEXT]
        script = Script(self.segment, self.rank, self.phase & 1)
        script.show(self.segment.area(self.rank, script.slot), text.ljust(TEXT))
        script.meet()
        self._carry_out(script, call)
        calls = [bytes_at(self.segment.area(rank, script.slot), TEXT) for rank in range(self.size)]
        lines = [f"  rank {rank}: {each.decode().rstrip()}" for rank, each in enumerate(calls)]
        raise RuntimeError("the ranks of a group have called different collectives:\n" + "\n".join(lines))

    # ---- Collectives

    def barrier(self, timeout: timedelta | None = None) -> None:
        if timeout is None:
            self._call(("barrier",))
        else:
            script = self._script(Call("barrier"))
            script.meet()
            self._carry_out(script, ("barrier",), timeout=timeout)

    def broadcast(self, tensor: Tensor, root: int) -> None:
        self._call(("broadcast", tensor.spec, None, root), tensor)

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int | None) -> None:
        kind = "all_gather" if root is None else "gather"
        self._call((kind, tensor.spec, None, root), tensor, *outputs)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
        self._call(("scatter", output.spec, None, root), output, *inputs)

    def reduce(self, tensor: Tensor, op: RedOpType, root: int | None) -> None:
        kind = "all_reduce" if root is None else "reduce"
        self._call((kind, tensor.spec, op, root), tensor)

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: RedOpType) -> None:
        self._call(("reduce_scatter", output.spec, op), output, *inputs)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        call = "all_to_all", inputs[0].spec
        sent, received = ([each.spec.nbytes for each in tensors] for tensors in (inputs, outputs))
        longest = self._agree_on_sizes(Call(*call), sent, received)
        script = Script(self.segment, self.rank, self.phase & 1, 2 * self.size)
        sources, targets = script.tensors[: self.size], script.tensors[self.size :]
        script.deal(sources, sent, dict(enumerate(targets)), received, longest)
        self._carry_out(script, call, [*inputs, *outputs])

    def _agree_on_sizes(self, call: Call, sent: Sequence[int], received: Sequence[int]) -> int:
        """The most bytes that one rank sends another. Raises: RuntimeError if a rank expects other sizes than it is sent."""
        form = struct.Struct(f"{2 * self.size}q")
        script = self._script(call)
        script.show(self.segment.numbers(self.rank, script.slot), form.pack(*sent, *received))
        script.meet()
        self._carry_out(script, call)
        tables = [
            form.unpack(bytes_at(self.segment.numbers(rank, script.slot), form.size))
            for rank in range(self.size)
        ]
        for source, target in itertools.product(range(self.size), repeat=2):
            given, wanted = tables[source][target], tables[target][self.size + source]
            if given != wanted:
                raise RuntimeError(
                    f"{call}: rank {source} sends {given} bytes to rank {target}, which expects {wanted}"
                )
        return max(map(max, tables))

    # ---- Messages

    def send(self, tensor: Tensor, dst: int, tag: int) -> Request:
        return self.mail.send(tensor, dst, tag, self.timeout)

    def recv(self, tensor: Tensor, src: int | None, tag: int) -> Request:
        return self.mail.recv(tensor, src, tag, self.timeout)
