"""Work of a GPU that is recorded once and done again and again: what `torch.cuda.CUDAGraph` is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.qscheme import AcceleratorError
from ...core.storage import Storage
from ...engine.defer import keep_all
from ..base import Mark
from .memory import Arena


class CapturedMark(Mark):
    """A point in work that is captured. Captured work is one queue, so work behind the mark waits for it in any case; and the host cannot see it."""

    def is_done(self):
        raise AcceleratorError(
            "CUDA error: operation not permitted on an event last recorded in a capturing stream: record the event outside of the capture."
        )

    def wait(self):
        self.is_done()

    def until(self, later):
        self.is_done()


class Capture:
    """Launches and copies of a device, recorded between `begin` and `end`. Recording does not do them.

    Tensors that are made meanwhile get their memory from `arena`, which gives it to no other tensors as long as the graph lives.
    """

    def __init__(self, gpu: Any, arena: Arena):
        self.arena = arena
        self._gpu = gpu
        self._outer: Arena | None = None
        self._kept: list[Storage] = []  # that the recorded work uses, besides the tensors of the program
        self._parts: list[
            Callable[[], object]
        ] = []  # recordings of the driver, and what the host does between them

    def begin(self) -> None:
        """Record from here on. What is deferred was given before, so it is done first."""
        gpu = self._gpu
        gpu.give_deferred()
        gpu.captures.add(self)
        gpu.runtime.begin_recording()
        gpu.capture = self
        self._outer = gpu.pool.choose(self.arena)

    def between(self, work: Callable[[], object]) -> None:
        """Let the host do some work at this place of each replay."""
        self._parts += [self._gpu.runtime.end_recording(), work]
        self._gpu.runtime.begin_recording()

    def write_constant(self, storage: Storage, content: Any) -> None:
        """Fill a new Storage, now and in each replay: a plan may keep it for later calls, or the recorded work may change it."""
        runtime = self._gpu.runtime
        kept = self._gpu.lasting(storage.nbytes_)
        self._kept += [storage, kept]
        self._parts.append(runtime.end_recording())
        runtime.write(storage.ptr, content)
        runtime.write(kept.ptr, content)
        runtime.begin_recording()
        runtime.copy(storage.ptr, kept.ptr, storage.nbytes_)

    def end(self) -> None:
        """Record no more. Work that is still deferred belongs to the recording."""
        gpu = self._gpu
        try:
            keep_all()
        finally:
            gpu.capture = None
            gpu.pool.choose(self._outer)
            self._kept += gpu.lasting_storages
            self._parts.append(gpu.runtime.end_recording())

    def replay(self) -> None:
        """Do the work again in the current stream. It reads and writes the tensors of the recording."""
        self._gpu.give_deferred()
        for part in self._parts:
            part()
