"""Recorded work of an accelerator, `torch.accelerator.graphs`."""

from __future__ import annotations

import gc
from typing import Any

from ..compiler import config
from ..core.device import accelerator, device
from ._graphs import RecordedGraph
from ._module import module

__all__ = ["Graph"]


class Graph(RecordedGraph):
    """Work that an accelerator has captured, as `torch.cuda.CUDAGraph` describes. It is a context that captures on the current stream.

    `pool`: memory that the graph shares with others. `capture_error_mode` is accepted: all threads' work is captured.

    Raises: RuntimeError without an accelerator.
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ):
        module()
        super().__init__(keep_graph)
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def capture_begin(self) -> None:
        """Begin to capture the work of the current device.

        Raises: RuntimeError on the default stream, during another capture of the device, and if the graph has captured work.
        """
        self._begin(device(accelerator(), module().current_device()).backend, self.graph_pool)

    def __enter__(self) -> None:
        module().synchronize()
        if config.force_cudagraph_gc:  # type: ignore[attr-defined]
            gc.collect()
        module().empty_cache()
        self.capture_begin()

    def __exit__(self, kind: Any, *exception: Any) -> None:
        self.end_or_forget(kind)
