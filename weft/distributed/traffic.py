"""What a program sends: collectives, messages and bytes, and how long a network of given latency and bandwidth takes for them.

Together with the backend "fake", whose other ranks do not exist, it says what a program would cost on thousands of processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ._gloo import ProcessGroupGloo
from ._world import _world
from .engine.metered import Metered

__all__ = ["Call", "Traffic", "traffic"]


class Call(NamedTuple):
    """One collective or message.

    nbytes: of the tensor that all ranks of the group have together, of one tensor for reductions and broadcasts, or of the message.
    """

    name: str
    ranks: int
    nbytes: int

    @property
    def messages(self) -> int:
        """How many messages follow each other on the way from the first rank to the last."""
        if self.name == "send":
            return 1
        if self.name == "all_to_all":
            return self.ranks - 1
        rounds = (self.ranks - 1).bit_length()
        return 2 * rounds if self.name in ("all_reduce", "broadcast") else rounds

    @property
    def sent(self) -> int:
        """The bytes that a rank sends."""
        if self.name == "send":
            return self.nbytes
        part = self.nbytes * (self.ranks - 1) // self.ranks
        return 2 * part if self.name in ("all_reduce", "broadcast") else part


class Traffic:
    """The calls of a program, on this rank.

    Messages and bytes are those of the usual algorithms for large tensors: halves that are exchanged in log2(ranks) rounds, twice for reductions and
    broadcasts to all (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005).
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []

    @property
    def sent(self) -> int:
        """The bytes that this rank sends."""
        return sum(call.sent for call in self.calls)

    @property
    def messages(self) -> int:
        """The messages that follow each other."""
        return sum(call.messages for call in self.calls)

    def seconds(self, latency: float, bandwidth: float) -> float:
        """The time that the messages take: `latency` seconds for each, and the bytes of a rank at `bandwidth` bytes per second.

        >>> found = Traffic()
        >>> found.calls.append(Call("all_reduce", 1024, 8_000_000))
        >>> f"{found.seconds(latency=5e-6, bandwidth=10e9) * 1e3:.2f} ms"
        '1.70 ms'
        """
        return self.messages * latency + self.sent / bandwidth

    def __str__(self) -> str:
        rows = []
        for (name, ranks), count in Counter((call.name, call.ranks) for call in self.calls).items():
            own = [call for call in self.calls if call[:2] == (name, ranks)]
            sent = sum(call.sent for call in own)
            rows.append(
                (name, f"{ranks:,}", f"{count:,}", f"{sum(call.messages for call in own):,}", f"{sent:,}")
            )
        rows.insert(0, ("call", "ranks", "calls", "messages", "bytes sent"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *numbers in rows:
            right = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *right]))
        return "\n".join(lines)


@contextmanager
def traffic() -> Iterator[Traffic]:
    """Note what the groups that are there send within it.

    >>> import weft as torch
    >>> torch.distributed.init_process_group("fake", rank=0, world_size=4096)
    >>> with traffic() as found:
    ...     torch.distributed.all_reduce(torch.ones(1000))
    >>> print(found)
    call        ranks  calls  messages  bytes sent
    all_reduce  4,096      1        24       7,998
    >>> torch.distributed.destroy_process_group()
    """
    found = Traffic()
    carriers = _carriers()
    engines = [carrier._engine for carrier in carriers]
    for carrier, engine in zip(carriers, engines, strict=True):
        carrier._engine = Metered(engine, lambda *call: found.calls.append(Call(*call)))
    try:
        yield found
    finally:
        for carrier, engine in zip(carriers, engines, strict=True):
            carrier._engine = engine


def _carriers() -> list[ProcessGroupGloo]:
    """The backends of all groups, each once."""
    made = {
        id(backend): backend
        for group in _world.pg_map
        for backend in group._backends.values()
        if isinstance(backend, ProcessGroupGloo)
    }
    return list(made.values())
