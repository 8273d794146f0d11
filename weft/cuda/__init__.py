"""weft.cuda: what can be said of CUDA without it. This version computes on the CPU only.

What is not here is declared in compat/interface/cuda.pyi: it answers as PyTorch's CPU build does, or raises.
"""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from ..core.out_of_memory import OutOfMemoryError

default_generators: tuple = ()
has_half = True
has_magma = False


def is_available() -> bool:
    """Whether tensors can live on a CUDA device.

    >>> import weft as torch
    >>> torch.cuda.is_available(), torch.cuda.device_count()
    (False, 0)
    """
    return False


def _is_compiled() -> bool:
    return False


def _is_in_bad_fork() -> bool:
    return False


class _Harmless:
    """A context that changes which device or stream is the current one: nothing without CUDA, as in PyTorch."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


class device(_Harmless):  # noqa: N801 (PyTorch's name)
    """A context in which a device is the current one; without CUDA it does nothing, as in PyTorch."""

    def __init__(self, device: Any):
        self.device = device
        self.idx = -1
        self.prev_idx = -1


class device_of(device):  # noqa: N801 (PyTorch's name)
    """A context in which the device of a tensor is the current one; a tensor on the CPU changes nothing."""

    def __init__(self, obj: Any):
        super().__init__(None)


class StreamContext(_Harmless):
    """A context in which a stream is the current one; without CUDA it does nothing, as in PyTorch."""

    def __init__(self, stream: Any):
        self.stream = stream


def stream(stream: Any) -> StreamContext:
    """`StreamContext(stream)`."""
    return StreamContext(stream)


__getattr__ = module_getattr(__name__, ("amp", "jiterator"))
