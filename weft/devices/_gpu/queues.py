"""The streams of a device: their numbers, and the queues of the driver that do their work."""

from __future__ import annotations

from ...core.device import device
from ...core.locks import new_lock
from ...core.streams import current_id
from ..base import Mark
from .runtime import Runtime

# Queues that a program can have of each priority, as in PyTorch. Further streams share them, in turns.
MOST_QUEUES = 32
# A stream of another library has the driver's handle as its number. Handles are addresses, so they are larger than the first page of memory.
FIRST_HANDLE = 4096


class Queues:
    """The streams of one device. The default stream has number 0, and the driver's handle 0."""

    def __init__(self, where: device, runtime: Runtime):
        self._device, self._runtime = where, runtime
        self._handles = {0: 0}  # the driver's queues by the number of the stream
        self._shared: dict[
            int, list[int]
        ] = {}  # by priority: the numbers of the streams, the next one to be given out first
        self._lock = new_lock()

    def new(self, priority: int) -> int:
        """The number of a stream with this priority, or with the nearest one that the driver has."""
        least, greatest = self._runtime.priorities()
        priority = min(max(priority, greatest), least)
        with self._lock:
            shared = self._shared.setdefault(priority, [])
            if len(shared) < MOST_QUEUES:
                number = len(self._handles)
                self._handles[number] = self._runtime.new_queue(priority)
            else:
                number = shared.pop(0)
            shared.append(number)
        return number

    def handle(self, stream: int) -> int:
        """The driver's queue of a stream.

        Raises: RuntimeError if there is no stream with this number.
        """
        if stream >= FIRST_HANDLE:
            return stream
        if stream not in self._handles:
            raise RuntimeError(
                f"device {self._device} has no stream with the number {stream}: make one by torch.Stream()"
            )
        return self._handles[stream]

    def current(self) -> int:
        """The driver's queue of the current stream of this thread."""
        return self.handle(current_id(self._device))

    def marks(self, streams: set[int] | None, apart: int) -> list[Mark]:
        """Points after all work of these streams, or of all that weft has made (None), so far. apart: a stream that is left out."""
        numbers = list(self._handles) if streams is None else streams
        return [self._runtime.mark(self.handle(each)) for each in numbers if each != apart]
