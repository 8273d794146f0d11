"""`torch.cuda.profiler`: where an external profiler, such as Nsight Systems, begins and ends to record."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.restoring import contextmanager
from .cudart import check_error, cudart

__all__ = ["start", "stop", "profile"]


def start() -> None:
    """Let a profiler that waits for the program begin. Devices of OpenCL have no such profiler, so nothing happens.

    Raises: RuntimeError without a device.
    """
    check_error(cudart().cudaProfilerStart())


def stop() -> None:
    """Let the profiler end.

    Raises: RuntimeError without a device.
    """
    check_error(cudart().cudaProfilerStop())


@contextmanager
def profile() -> Iterator[None]:
    """A context that a profiler records."""
    start()
    try:
        yield
    finally:
        stop()
