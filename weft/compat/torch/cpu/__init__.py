"""weft.cpu: the processor as a device, and its memory."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping
from typing import Any

from weft.core.restoring import Restoring
from weft.engine.memory import memory_stats, reset_peak_memory_stats

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
    "get_capabilities", "is_available", "is_initialized", "memory_stats", "reset_peak_memory_stats",
    "set_device", "stream", "synchronize",
]  # fmt: skip


class Stream:
    """A stand-in for the stream of a GPU. Work on the CPU is done when its call returns, so there is nothing to wait for.

    >>> import weft as torch
    >>> with torch.cpu.stream(torch.cpu.Stream()):
    ...     torch.cpu.synchronize()
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another stream."""

    def record_event(self) -> None:
        """Record an event."""

    def wait_event(self, event: Event) -> None:
        """Wait for an event."""


class Event:
    """A stand-in for the event of a GPU: over at once."""

    def query(self) -> bool:
        """Whether it is over: always."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Record it."""

    def synchronize(self) -> None:
        """Wait for it."""

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for it."""


_DEFAULT_STREAM = Stream()
_stream = _DEFAULT_STREAM


class StreamContext(Restoring):
    """The context of `stream`."""

    def __init__(self, stream: Stream | None):
        self.stream = stream
        self.prev_stream = _DEFAULT_STREAM

    def __enter__(self) -> None:
        global _stream
        if self.stream is not None:
            self.prev_stream, _stream = _stream, self.stream

    def _restore(self) -> None:
        global _stream
        if self.stream is not None:
            _stream = self.prev_stream


def stream(stream: Stream | None) -> contextlib.AbstractContextManager[None]:
    """A context in which this is the current stream. It changes nothing else."""
    return StreamContext(stream)  # type: ignore[return-value]


def current_stream(device: Any = None) -> Stream:
    """The current stream."""
    return _stream


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def is_initialized() -> bool:
    """Whether it can be used: yes."""
    return True


def device_count() -> int:
    """One, whatever the number of cores."""
    return 1


def current_device() -> str:
    """The name of the device: "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Accepted: there is only one."""


def synchronize(device: Any = None) -> None:
    """Wait until all work is done, which it is."""


def get_capabilities() -> Mapping[str, Any]:
    """What the processor is and which instructions it has: "architecture", "cpu_name", and a bool for each feature.

    >>> import weft as torch
    >>> torch.cpu.get_capabilities()["num_logical_cores"] >= 1
    True
    """
    from weft.engine.host import cpu as processor  # loads LLVM

    name, features = processor()[:2]
    known = {each[1:].replace("-", "_"): each.startswith("+") for each in features.split(",") if each}
    return {
        "architecture": platform.machine(),
        "cpu_name": name,
        "num_logical_cores": os.cpu_count() or 1,
        **known,
    }


def _supports(feature: str) -> bool:
    """Whether the processor has a feature, by LLVM's name for it with _ instead of -."""
    return bool(get_capabilities().get(feature, False))


def _is_avx2_supported() -> bool:
    return _supports("avx2")


def _is_avx512_supported() -> bool:
    return all(_supports(each) for each in ("avx512f", "avx512vl", "avx512bw", "avx512dq"))


def _is_avx512_bf16_supported() -> bool:
    return _supports("avx512bf16")


def _is_vnni_supported() -> bool:
    return _supports("avx512vnni")


def _is_amx_tile_supported() -> bool:
    return _supports("amx_tile")


def _is_amx_fp16_supported() -> bool:
    return _supports("amx_fp16")


def _init_amx() -> bool:
    """False: weft asks the system for no permission to use AMX."""
    return False
