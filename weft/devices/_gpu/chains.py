"""Chains: several launches as one kernel, in which each group takes some rows through all stages.

What one stage stores, the next finds in the cache, and no launch waits for the one before. `engine/chain.py` decides which launches can be cut
into rows alike; the bits are those of the launches one by one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...engine.chain import Chain, Operand
from ...engine.kernel import Stage
from .kernel import THREADS, Kernel
from .maps import MapKernel, MapLoop
from .reductions import ReduceKernel, ReduceLoop
from .stages import GpuStage
from .target import Target

# A group that has this many elements of one stage for itself leaves other multiprocessors without work, unless there are many groups.
MOST_ALONE = 1 << 13
FEWEST_UNITS = 64
MOST_WORDS = 400  # arguments of a kernel: PTX has room for 4 KiB


class ChainKernel(NamedTuple):
    """Everything that the code of a chain depends on.

    Arguments: those of the call, stage by stage, each followed by the words of its stage; then the number of units, how many a group takes at
    once, and for each stage its elements, or results, of one unit.
    """

    kernels: tuple[MapKernel | ReduceKernel, ...]


def chain_ir(target: Target, kernel: ChainKernel) -> str:
    """Return the module of the kernel."""
    body = Kernel(target)
    loops = [
        MapLoop(body, each) if isinstance(each, MapKernel) else ReduceLoop(body, each)
        for each in kernel.kernels
    ]
    units, at_once = body.parameter("units"), body.parameter("once")
    sizes = body.words("unit", len(loops))
    thread = body.thread()
    turns = body.integer("udiv", body.integer("add", units, body.integer("sub", at_once, 1)), at_once)
    with body.loop(body.group(), turns, body.groups()) as turn:
        begin = body.integer("mul", turn, at_once)
        end = body.minimum(body.integer("add", begin, at_once), units)
        for loop, size in zip(loops, sizes, strict=True):
            first, last = body.integer("mul", begin, size), body.integer("mul", end, size)
            if isinstance(loop, MapLoop):
                loop.write(first, last, thread, THREADS)
            else:
                loop.write(first, last)
            body.barrier()
    return body.ir()


class GpuChain:
    """Launches that are to run as one kernel, as `engine.chain.Chain`."""

    def __init__(self, gpu: Any):
        self._gpu = gpu
        self._cuts = Chain()
        self._stages: list[GpuStage] = []

    def add(self, stage: object, operands: Sequence[Operand]) -> bool:
        """Append a launch, given what it keeps alive and its operands; whether it can be part of the chain."""
        if type(stage) is not GpuStage:
            return False
        cuts, stages = copy.copy(self._cuts), [*self._stages, stage]
        cuts.stages, cuts.made = list(cuts.stages), set(cuts.made)
        if not cuts.add(stage.cut, operands) or not _is_busy(stages, cuts.units):
            return False
        self._cuts, self._stages = cuts, stages
        return True

    def entry(self) -> tuple[Callable, object]:
        """The function that runs the chain, and what it needs alive."""
        stages, units = self._stages, max(self._cuts.units, 1)
        kernel = ChainKernel(tuple([each.kernel for each in stages]))
        sizes = [_elements(each.cut) // units for each in stages]
        largest = max(range(len(stages)), key=lambda k: _work(stages[k].cut))
        at_once = _together(stages[largest], sizes[largest])
        runtime = self._gpu.runtime
        loaded = runtime.load(chain_ir, kernel)
        groups = self._gpu.groups(-(-units // at_once) * THREADS)
        letters = [each.letters for each in stages]
        words = [each.words for each in stages]
        launch = runtime.chain(loaded, groups, letters, words, [units, at_once, *sizes])
        return launch.entry, launch


def _elements(stage: Stage) -> int:
    """Return the elements of a map, or the results of a reduction."""
    return math.prod(stage.sizes)


def _is_busy(stages: Sequence[GpuStage], units: int) -> bool:
    """Whether the units are enough, or small enough, and the arguments fit."""
    words = sum(len(each.letters) + len(each.words) for each in stages) + 2 + len(stages)
    if words > MOST_WORDS:
        return False
    if len(stages) == 1 or units >= FEWEST_UNITS:
        return True
    return all(_work(each.cut) <= MOST_ALONE * max(units, 1) for each in stages)


def _work(stage: Stage) -> int:
    reduced = math.prod(stage.reduced[0]) if stage.reduced is not None else 1
    return _elements(stage) * reduced


def _together(stage: GpuStage, size: int) -> int:
    """How many units make all threads of a group work."""
    threads = stage.kernel.threads if isinstance(stage.kernel, ReduceKernel) else 1
    return -(-THREADS // max(1, size * threads))
