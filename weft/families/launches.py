"""What a plan launches, as data, so that a call can be run without Python: see `autograd/replays.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# The kinds of arguments of a launch.
OBJECT, OF_INPUT, OF_RESULT, OF_SCRATCH = range(4)


class Launches(NamedTuple):
    """Allocators of the results and of scratch memory, and functions with their arguments.

    An argument is (kind, value, offset): an object, or an address that lies `offset` bytes behind that of an input or a result
    (`value` says which), or of the scratch memory.
    """

    allocators: Sequence[Callable]
    steps: Sequence[tuple[Callable, list[tuple[int, Any, int]]]]
    scratch: Callable | None = None
