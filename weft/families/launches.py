"""What a plan launches, as data, so that a call can be run without Python: see `autograd/replays.py`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# The kinds of arguments of a launch.
OBJECT, OF_INPUT, OF_RESULT, OF_SCRATCH, OF_NUMBER = range(5)


class Launches(NamedTuple):
    """Allocators of the results and of scratch memory, and functions with their arguments. `faults` is the address of the device's
    count of bad indices, if the launches follow indices.

    An argument is (kind, value, offset): an object, or an address that lies `offset` bytes behind that of an input or a result
    (`value` says which), or of the scratch memory, or one of the numbers of the call.
    """

    allocators: Sequence[Callable]
    steps: Sequence[tuple[Callable, list[tuple[int, Any, int]]]]
    scratch: Callable | None = None
    faults: int = 0
    written: Sequence[int] = ()  # the inputs that launches write to
    keepalive: Any = None  # the plan, which owns the memory that the launches read


def address_of_faults(faults: Any) -> int:
    """The address of a device's count of bad indices; 0 if it is not in memory that machine code can read."""
    return faults.buffer_info()[0] if isinstance(faults, array) else 0
