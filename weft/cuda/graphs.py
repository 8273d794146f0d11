"""`torch.cuda.graphs`: work of a CUDA device that is recorded once and done again and again."""

from __future__ import annotations

from typing import Any

from ..accelerator._graphed import graphed_callables
from ..accelerator._graphs import CaptureContext, RecordedGraph
from ..accelerator._memory import new_pool_id
from . import streams
from ._devices import DEVICES

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


is_current_stream_capturing = DEVICES.is_current_stream_capturing


def graph_pool_handle() -> tuple[int, int]:
    """A number for memory that several graphs share, if it is given to them as `pool`."""
    return new_pool_id()


class CUDAGraph(RecordedGraph):
    """Work that is captured once and replayed with the same tensors.

    Capturing does not do the work. Launches, copies within the device and random numbers can be captured. What the host waits for cannot: it
    raises torch.AcceleratorError, and the capture may go on.

    >>> import weft as torch
    >>> if torch.cuda.is_available():
    ...     x, g = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
    ...     with torch.cuda.graph(g):
    ...         y = x + 1
    ...     _ = x.fill_(5)
    ...     g.replay()
    ...     assert y.tolist() == [6, 6, 6]
    """

    def __init__(self, keep_graph: bool = False):
        DEVICES.init()
        super().__init__(keep_graph)

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Begin to capture the work of the current device. `pool`: what `pool()` of another graph or `graph_pool_handle` returned.

        Raises: RuntimeError on the default stream, during another capture of the device, and if the graph has captured work.
        """
        self._begin(DEVICES.gpu(), pool)

    def register_generator_state(self, generator: Any) -> None:
        """Let replays draw from a generator of the device, as they do from all of them."""

    def raw_cuda_graph(self) -> int:
        """The graph of the driver.

        Raises: NotImplementedError, because recorded work of weft is not one graph of the driver.
        """
        self._refuse("raw_cuda_graph")

    def raw_cuda_graph_exec(self) -> int:
        """The graph of the driver, ready to run.

        Raises: NotImplementedError, because recorded work of weft is not one graph of the driver.
        """
        self._refuse("raw_cuda_graph_exec")


class graph(CaptureContext):  # noqa: N801 (PyTorch's name)
    """A context that captures work into a `CUDAGraph`, on `stream` or one of its own.

    `pool`: memory that the graph shares with others. `capture_error_mode` is accepted: all threads' work is captured.

    Raises: NotImplementedError for `enable_annotations` and `check_input_liveness`.
    """

    _devices, _streams = DEVICES, streams

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ):
        if enable_annotations or check_input_liveness:
            raise NotImplementedError(
                "torch.cuda.graph: weft has no enable_annotations and no check_input_liveness"
            )
        super().__init__(cuda_graph, pool, stream, {"capture_error_mode": capture_error_mode})
        self.cuda_graph = cuda_graph


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Return functions or modules whose forward and backward passes are replays of graphs. A module is changed and returned.

    `sample_args` are tensors like those of the calls, for each of the callables. Arguments are copied into the captured tensors, and a
    call returns the captured results, which the next call overwrites.

    Raises: RuntimeError with autocast's cache, AssertionError for modules with hooks and buffers that require grad, RuntimeError without
    a device.
    """
    DEVICES.init()
    return graphed_callables(
        (CUDAGraph, graph), callables, sample_args, num_warmup_iters, allow_unused_input, pool
    )
