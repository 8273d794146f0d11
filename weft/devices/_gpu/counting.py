"""How often integers occur. Each group counts in its memory first if there is room, so that few threads add to one word of the device's memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import int32, int64
from .kernel import THREADS, Kernel
from .target import Target

MOST_OF_GROUP = 4096  # integers that a group counts in its memory: 16 KiB of it


class CountKernel(NamedTuple):
    """Everything that the code of a count depends on.

    Arguments: the addresses of the counts, int64, and of the integers, int64; how many integers there are, and how many counts. Integers
    outside of [0, counts) are left out.
    """

    in_group: bool


def count_ir(target: Target, kernel: CountKernel) -> str:
    """Return the module of the kernel."""
    body = Kernel(target)
    counts, values, n, count = (body.parameter(name) for name in ("counts", "values", "n", "count"))
    thread = body.thread()
    room = body.shared(int32, MOST_OF_GROUP) if kernel.in_group else ""

    def add(place: str, found: str) -> None:
        pointer = body.pointer(body.place(counts, [place], [int64.itemsize]))
        body.do(f"atomicrmw add ptr addrspace(1) {pointer}, i64 {found} monotonic")

    if kernel.in_group:
        with body.loop(thread, count, THREADS) as i:
            body.put(room, int32, i, "0")
        body.barrier()
    first, step = body.first_and_step()
    with body.loop(first, n, step) as i:
        value = body.read(body.place(values, [i], [int64.itemsize]), int64)
        with body.when(body.let(f"icmp ult i64 {value}, {count}")):
            if kernel.in_group:
                slot = body.slot(room, int32, value)
                body.do(f"atomicrmw add ptr addrspace(3) {slot}, i32 1 monotonic")
            else:
                add(value, "1")
    if kernel.in_group:
        body.barrier()
        with body.loop(thread, count, THREADS) as i:
            found = body.let(f"zext i32 {body.take(room, int32, i)} to i64")
            with body.when(body.let(f"icmp ne i64 {found}, 0")):
                add(i, found)
    return body.ir()


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernels that count, by the names that ops ask for."""

    @functools.cache
    def launch(in_group: bool, groups: int) -> Any:
        loaded = gpu.runtime.load(count_ir, CountKernel(in_group))
        return gpu.runtime.launch(loaded, groups, "ppii", [])

    def occurrences(counts: int, values: int, n: int, count: int) -> None:
        """Add to `count` int64 how often 0, 1, 2, ... occur among n int64."""
        found = launch(count <= MOST_OF_GROUP, gpu.groups(n))
        found.entry(counts, values, n, count, found.meta, found.count)

    return {"occurrences": occurrences}
