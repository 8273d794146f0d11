"""What a launch keeps alive, with what a chain must know to run it as a part of one kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...engine.kernel import Stage


class GpuStage(NamedTuple):
    """A launch that can be part of a chain."""

    kernel: Any  # a MapKernel or a ReduceKernel
    letters: str  # the kinds of its arguments
    words: tuple[int, ...]  # that the kernel gets behind them
    cut: Stage  # its sizes and strides, without addresses of code
    launch: Any  # what its entry reads


def cut(letters: str, outputs: int, sizes: Any, strides: Any, nbytes: int, reduced: Any = None) -> Stage:
    """What `engine/chain.py` looks at."""
    found = tuple(sizes), tuple(tuple(row) for row in strides)
    return Stage(0, 0, letters, outputs, nbytes, True, None, *found, reduced)  # type: ignore[arg-type]
