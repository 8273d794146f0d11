"""`torch.utils._mode_utils`: calls that modes do not see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.modes import DisableTorchFunction
from ..core.overrides import DisableTorchDispatch


@contextmanager
def no_dispatch() -> Iterator[None]:
    """A context inside of which neither modes nor handlers of classes are told of operations."""
    with DisableTorchFunction(), DisableTorchDispatch():
        yield


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes are one."""
    return all(each == modes[0] for each in modes)
