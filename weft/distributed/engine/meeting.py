"""How the processes of a group come to share a segment: they tell each other through the store of the group who they are."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta

from .._errors import DistStoreError
from .._store import Store
from .peers import Peer
from .segment import Segment
from .waiting import REPORT_S

LOOK_S = 0.5  # seconds, between two looks at the processes that have joined


def meet(store: Store, rank: int, size: int, timeout: timedelta) -> tuple[Segment, list[Peer]]:
    """The segment of the group, and the processes of its ranks.

    Rank 0 makes the segment, which is a file without a name. The others open it through /proc, so that nothing is left behind when
    processes are killed.

    Raises: NotImplementedError for processes on several machines, DistStoreError if one does not come within the timeout.
    """
    segment = Segment(size) if rank == 0 else None
    place = segment.place() if segment else ""
    turn = store.add(f"turn{rank}", 1)  # a store may serve several groups, one after the other
    store.set(f"{turn}/rank{rank}", f"{machine()} {os.getpid()} {place}")
    keys = [f"{turn}/rank{other}" for other in range(size)]
    _await(store, keys, rank, timeout)
    told = [store.get(key).decode().split(" ") for key in keys]
    _check_one_machine([machine for machine, *_ in told])
    if segment is None:
        segment = opened(told[0][2], size)
    return segment, [Peer(int(pid)) for _, pid, _ in told]


def opened(place: str, size: int) -> Segment:
    """The segment that another process has made."""
    try:
        return Segment(size, os.open(place, os.O_RDWR))
    except OSError as error:
        raise RuntimeError(f"rank 0 has ended, or {place} belongs to another user: {error}") from None


def _await(store: Store, keys: Sequence[str], rank: int, timeout: timedelta) -> None:
    """Wait until all ranks have set their keys.

    Raises: DistStoreError with those that have not, RuntimeError if a process has ended that had.
    """
    begin, reported = time.monotonic(), False
    while True:
        left = timeout.total_seconds() - (time.monotonic() - begin)
        try:
            return store.wait(keys, timedelta(seconds=max(min(left, LOOK_S), 0.001)))
        except DistStoreError:
            missing = [other for other, key in enumerate(keys) if not store.check([key])]
        _check_alive(store, {other: key for other, key in enumerate(keys) if other not in missing})
        text = f"rank {rank} waits for ranks that have not joined the group of {len(keys)}: {', '.join(map(str, missing))}"
        if left <= LOOK_S:
            raise DistStoreError(f"timed out after {timeout.total_seconds():g} s: {text}")
        if not reported and time.monotonic() - begin > REPORT_S:
            reported = True
            print(f"weft: {text}", file=sys.stderr, flush=True)


def _check_alive(store: Store, keys: Mapping[int, str]) -> None:
    for rank, key in keys.items():
        where, pid, _ = store.get(key).decode().split(" ")
        if where == machine() and Peer(int(pid)).has_ended():
            raise RuntimeError(f"rank {rank} (process {pid}) has ended before all ranks had joined the group")


def machine() -> str:
    """What tells this machine from others: its name, what Linux makes up at each start, and which processes this one sees."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{socket.gethostname()}/{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"


def _check_one_machine(machines: Sequence[str]) -> None:
    names = sorted({machine.partition("/")[0] for machine in machines})
    if len(set(machines)) > 1:
        raise NotImplementedError(
            f"torch.distributed: a group on several machines ({', '.join(names)}): the backend gloo connects the processes of one "
            "machine. For several: pip install 'weft[distributed]', call init_process_group() without an address and a rank, which MPI "
            f"knows, and start the program with mpiexec -n {len(machines)} -hosts {','.join(names)} weft run program.py"
        )
