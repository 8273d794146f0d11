"""weft.cuda: what can be said of CUDA without it. This version computes on the CPU only."""

from __future__ import annotations

from typing import Any, NoReturn

from .compat.missing import module_getattr


def is_available() -> bool:
    """Whether tensors can live on a CUDA device.

    >>> import weft as torch
    >>> torch.cuda.is_available(), torch.cuda.device_count()
    (False, 0)
    """
    return False


def device_count() -> int:
    """How many CUDA devices can be used."""
    return 0


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def manual_seed(seed: int) -> None:
    """Seed the CUDA generator; ignored without CUDA, as in PyTorch."""


def manual_seed_all(seed: int) -> None:
    """Seed all CUDA generators; ignored without CUDA, as in PyTorch."""


def empty_cache() -> None:
    """Give unused device memory back; there is none."""


def _absent(what: str) -> NoReturn:
    raise RuntimeError(
        f"Found no NVIDIA driver on your system. (torch.cuda.{what}: this version of weft computes on the CPU only; test "
        "torch.cuda.is_available() first)"
    )


def init() -> None:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("init")


def current_device() -> int:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("current_device")


def synchronize(device: Any = None) -> None:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("synchronize")


def get_device_name(device: Any = None) -> str:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("get_device_name")


def get_device_properties(device: Any = None) -> Any:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("get_device_properties")


__getattr__ = module_getattr(__name__)
