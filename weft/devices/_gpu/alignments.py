"""The recursion of connectionist temporal classification: a group of threads has a sequence, and computes its states step by step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.alignments import step_of_alignments
from .kernel import THREADS, Kernel
from .target import Target


class AlignmentKernel(NamedTuple):
    """Everything that the code of the recursion depends on.

    Arguments: the addresses of paths, emitted, start and skips (`engine/alignments.py`); steps, sequences and states.
    """

    dtype: DType


def alignment_ir(target: Target, kernel: AlignmentKernel) -> str:
    """Return the module of the kernel."""
    body, dtype = Kernel(target), kernel.dtype
    size = dtype.itemsize
    paths, emitted, start, skips = body.words("p", 4)
    steps, batch, states = (body.parameter(name) for name in ("steps", "batch", "states"))
    thread = body.thread()
    wide = body.integer(
        "mul", body.integer("add", states, 2), size
    )  # bytes of the paths of a sequence at a step
    narrow = body.integer("mul", states, size)
    with body.loop(body.group(), batch, body.groups()) as sequence, body.loop(0, steps) as step:
        row = body.integer("add", body.integer("mul", step, batch), sequence)
        before = body.place(paths, [row], [wide])
        after = body.place(before, [batch], [wide])
        with body.loop(thread, states, THREADS) as state:
            ways = [body.place(before, [body.integer("add", state, back)], [size]) for back in (2, 1, 0)]
            skip = body.place(skips, [sequence, state], [narrow, size])
            given = [body.place(each, [row, state], [narrow, size]) for each in (start, emitted)]
            (value,) = body.elements([step_of_alignments(dtype)], [*ways, skip, *given], [])
            body.write(body.place(after, [state], [size]), dtype, value, 2 * size)
        body.barrier()
    return body.ir()


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernel, by the name that ops ask for."""

    @functools.cache
    def launch(dtype: DType, groups: int) -> Any:
        return gpu.runtime.launch(
            gpu.runtime.load(alignment_ir, AlignmentKernel(dtype)), groups, "ppppiii", []
        )

    def alignments(
        paths: int, emitted: int, start: int, skips: int, shape: tuple[int, int, int], dtype: DType
    ) -> None:
        """Compute paths [steps + 1, batch, 2 + states]: see `engine/alignments.py`. shape: steps, batch, states."""
        found = launch(dtype, gpu.groups(shape[1] * THREADS))
        found.entry(paths, emitted, start, skips, *shape, found.meta, found.count)

    return {"alignments": alignments}
