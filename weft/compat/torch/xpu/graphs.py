"""`torch.xpu.graphs`: work of an XPU device that is recorded once and done again and again."""

from __future__ import annotations

from typing import Any

from weft.accelerator._graphed import graphed_callables
from weft.accelerator._graphs import CaptureContext, RecordedGraph
from weft.accelerator._memory import new_pool_id

from . import streams
from ._devices import DEVICES

__all__ = ["XPUGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

is_current_stream_capturing = DEVICES.is_current_stream_capturing


def graph_pool_handle() -> tuple[int, int]:
    """A number for memory that several graphs share, if it is given to them as `pool`."""
    return new_pool_id()


class XPUGraph(RecordedGraph):
    """Work that is captured once and replayed with the same tensors, as `torch.cuda.CUDAGraph` describes.

    Raises: AssertionError without a device.
    """

    def __init__(self, keep_graph: bool = False):
        DEVICES.init()
        super().__init__(keep_graph)

    def capture_begin(self, pool: tuple[int, int] | None = None) -> None:
        """Begin to capture the work of the current device. `pool`: what `pool()` of another graph or `graph_pool_handle` returned.

        Raises: RuntimeError on the default stream, during another capture of the device, and if the graph has captured work.
        """
        self._begin(DEVICES.gpu(), pool)

    def raw_xpu_graph(self) -> int:
        """The graph of the driver.

        Raises: NotImplementedError, because recorded work of weft is not a graph of the driver.
        """
        self._refuse("raw_xpu_graph")

    def raw_xpu_graph_exec(self) -> int:
        """The graph of the driver, ready to run.

        Raises: NotImplementedError, because recorded work of weft is not a graph of the driver.
        """
        self._refuse("raw_xpu_graph_exec")


class graph(CaptureContext):  # noqa: N801 (PyTorch's name)
    """A context that captures work into an `XPUGraph`, on `stream` or one of its own. `pool`: memory that the graph shares with others."""

    _devices, _streams = DEVICES, streams

    def __init__(self, xpu_graph: XPUGraph, pool: tuple[int, int] | None = None, stream: Any = None):
        super().__init__(xpu_graph, pool, stream, {})
        self.xpu_graph = xpu_graph


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Return functions or modules whose forward and backward passes are replays of graphs, as `torch.cuda.make_graphed_callables` describes.

    Raises: AssertionError without a device.
    """
    DEVICES.init()
    return graphed_callables(
        (XPUGraph, graph), callables, sample_args, num_warmup_iters, allow_unused_input, pool
    )
