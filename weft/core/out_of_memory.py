"""What is raised where there is no memory: PyTorch's RuntimeError, which names the number of bytes asked for."""

from __future__ import annotations

import math


class OutOfMemoryError(RuntimeError):
    """PyTorch's error of an accelerator without memory. On the CPU, PyTorch and weft raise plain RuntimeError."""

    __module__ = "torch"


def out_of_memory(nbytes: int, facts: str = "") -> RuntimeError:
    return RuntimeError(
        "[enforce fail at alloc_cpu] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        f"{nbytes} bytes.{facts}"
    )


def from_memory_error(error: MemoryError) -> RuntimeError:
    """The same for an exception of Python, or of NumPy, which knows the array that it had no memory for."""
    sizes, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if sizes is None or dtype is None:
        return RuntimeError("[enforce fail at alloc_cpu] DefaultCPUAllocator: can't allocate memory.")
    return out_of_memory(math.prod(sizes) * dtype.itemsize)
