"""Who allocated and freed the blocks of a device: what `torch.cuda.memory._record_memory_history` records."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..engine.explain import is_ours


class History:
    """Events of the blocks of one device, each with the lines of the program that led to it, innermost first."""

    def __init__(self, keeps_events: bool, with_frames: bool, max_entries: int, handle: Callable[[int], int]):
        self._with_frames, self._handle = with_frames, handle
        self.events: deque[dict[str, Any]] | None = None
        if keeps_events:
            self.events = deque(maxlen=None if max_entries >= sys.maxsize else max_entries)
        self.frames: dict[int, list[dict[str, Any]]] = {}  # of the blocks in use, by address

    def note(self, action: str, address: int, nbytes: int, stream: int) -> None:
        """Record an event of a block of the stream with this number. The allocator calls it."""
        frames = _frames() if self._with_frames else []
        if action == "alloc":
            self.frames[address] = frames
        else:
            self.frames.pop(address, None)
        if self.events is not None:
            event = {"action": action, "addr": address, "size": nbytes, "stream": self._handle(stream)}
            self.events.append(event | {"time_us": time.time_ns() // 1000, "frames": frames})


def _frames() -> list[dict[str, Any]]:
    found = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not is_ours(code.co_filename):
            found.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back
    return found


def history_for(
    enabled: str | bool | None, context: str | None, max_entries: int, handle: Callable[[int], int]
) -> History | None:
    """The history that `_record_memory_history` begins; None if it ends one. `handle`: from the number of a stream to its handle.

    Raises: ValueError for another word.
    """
    if isinstance(enabled, bool):  # as programs for older versions call it
        enabled = "all" if enabled else None
    if enabled not in (None, "state", "all"):
        raise ValueError(f"_record_memory_history: enabled is 'state', 'all' or None, not {enabled!r}")
    return None if enabled is None else History(enabled == "all", context is not None, max_entries, handle)


def history_of(note: Callable | None) -> History | None:
    """The history whose `note` an allocator calls."""
    return None if note is None else note.__self__  # type: ignore[attr-defined]
