"""The errors for a failed allocation: PyTorch's RuntimeError with the number of requested bytes."""

from __future__ import annotations

import math


class OutOfMemoryError(RuntimeError):
    """PyTorch's error for an accelerator that is out of memory. On the CPU, PyTorch and weft raise RuntimeError."""

    __module__ = "torch"


def out_of_memory(nbytes: int, facts: str = "") -> RuntimeError:
    return RuntimeError(
        "[enforce fail at alloc_cpu] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        f"{nbytes} bytes.{facts}"
    )


def from_memory_error(error: MemoryError) -> RuntimeError:
    """The same error from a MemoryError of Python or NumPy. The error of NumPy contains the shape of the array."""
    sizes, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if sizes is None or dtype is None:
        return RuntimeError("[enforce fail at alloc_cpu] DefaultCPUAllocator: can't allocate memory.")
    return out_of_memory(math.prod(sizes) * dtype.itemsize)
