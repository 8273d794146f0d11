"""`torch._inductor.utils`: which devices are GPUs, and what PyTorch's compiler could do on them here."""

from __future__ import annotations

GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def get_gpu_type() -> str:
    """The type of the GPU of this machine; "cuda" if there is none."""
    return "cuda"


def is_gpu(device: str | None) -> bool:
    """Whether a type of device is that of a GPU.

    >>> is_gpu("cuda"), is_gpu("cpu")
    (True, False)
    """
    return device in GPU_TYPES
