"""Graphs: the work of a device, recorded once and done again and again. `CUDAGraph`, `XPUGraph` and `torch.accelerator.Graph` are of this class."""

from __future__ import annotations

import gc
from typing import Any, NoReturn

from ..compiler import config
from ..core.streams import current_stream
from ..devices._gpu.capture import Capture
from ._devices import Devices
from ._memory import Memory, graph_pool_id


class RecordedGraph:
    """Work of a device between `capture_begin` and `capture_end`, which `replay` does again with the same tensors."""

    _gpu: Any = None  # the device of the last capture
    _capture: Capture | None = None
    _is_complete = False

    def __init__(self, keep_graph: bool = False):
        """`keep_graph` changes nothing, because there is one form of what was captured."""

    @classmethod
    def _name(cls) -> str:
        return cls.__name__

    def _begin(self, gpu: Any, pool: tuple[int, int] | None) -> None:
        if self._capture is not None:
            raise RuntimeError(
                f"This {self._name()} instance already owns a captured graph. "
                "To capture a new graph, create a new instance."
            )
        if gpu.capture is not None:
            raise RuntimeError(f"{self._name()}: another graph of {gpu.device} is being captured")
        if current_stream(gpu.device).stream_id == 0:
            raise RuntimeError(
                f"{self._name()}s must be captured on a non-default stream: enter a new stream, or the context for captures. "
                "(They may be replayed on the default stream.)"
            )
        capture = Capture(gpu, gpu.pool.arena(pool or graph_pool_id()))
        capture.begin()
        self._gpu, self._capture = gpu, capture

    def capture_end(self) -> None:
        """End the capture.

        Raises: RuntimeError if this graph is not being captured.
        """
        if self._capture is None or self._gpu.capture is not self._capture:
            raise RuntimeError(f"{self._name()}.capture_end: this graph is not being captured")
        self._capture.end()
        self._is_complete = True

    def end_or_forget(self, kind: Any) -> None:
        """End the capture; forget it if an exception of this class has ended it early."""
        if kind is None:
            self.capture_end()
        else:
            self.reset()

    def _captured(self, method: str) -> Capture:
        if self._capture is None or not self._is_complete:
            raise RuntimeError(f"Called {self._name()}::{method} without a preceding successful capture.")
        return self._capture

    def instantiate(self) -> None:
        """Prepare to replay, which `capture_end` has done already.

        Raises: RuntimeError before a capture.
        """
        self._captured("instantiate")

    def replay(self) -> None:
        """Do the work again, after all work that the device was given before.

        Raises: RuntimeError before a capture, and during the capture of another graph.
        """
        capture = self._captured("replay")
        self._gpu.runtime.refuse_recording()
        capture.replay()

    def reset(self) -> None:
        """Forget the captured work. Its memory is free for other tensors when its own are gone."""
        if self._capture is not None:
            if self._gpu.capture is self._capture:
                self._capture.end()
            self._gpu.pool.leave(self._capture.arena)
            self._capture, self._is_complete = None, False

    def __del__(self) -> None:
        self.reset()

    def pool(self) -> tuple[int, int]:
        """The number of the memory of the captured tensors. Another graph with this `pool` may use what they have freed.

        Raises: RuntimeError before a capture.
        """
        return self._captured("pool").arena.id

    def enable_debug_mode(self) -> None:
        """Keep what `debug_dump` needs.

        Raises: NotImplementedError, because weft draws no pictures of recorded work.
        """
        self._refuse("enable_debug_mode")

    def debug_dump(self, debug_path: str) -> None:
        """Write a picture of the work.

        Raises: NotImplementedError, because weft draws no pictures of recorded work.
        """
        self._refuse("debug_dump")

    def _refuse(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{self._name()}.{method}: weft draws no pictures of recorded work")


class CaptureContext:
    """A context that captures work into a graph, on a stream of its own. After an exception the graph is empty."""

    _devices: Devices
    _streams: Any
    default_capture_stream: Any = None

    def __init__(self, graph: Any, pool: Any, stream: Any, options: dict[str, Any]):
        if stream is None:
            cls = type(self)
            if cls.default_capture_stream is None:
                cls.default_capture_stream = self._streams.Stream()
            stream = cls.default_capture_stream
        self.pool: Any = () if pool is None else (pool,)
        self.capture_stream = stream
        self.stream_ctx = self._streams.stream(stream)
        self._graph, self._options = graph, options

    def __enter__(self) -> None:
        self._devices.synchronize()
        if config.force_cudagraph_gc:  # type: ignore[attr-defined]
            gc.collect()
        Memory(self._devices).empty_cache()
        self.stream_ctx.__enter__()
        try:
            self._graph.capture_begin(*self.pool, **self._options)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, *exception: Any) -> None:
        try:
            self._graph.end_or_forget(kind)
        finally:
            self.stream_ctx.__exit__(None, None, None)
