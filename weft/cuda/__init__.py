"""weft.cuda: what can be said of CUDA without it. This version computes on the CPU only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..compat.missing import module_getattr


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


def memory_allocated(device: Any = None) -> int:
    """Bytes of device memory that tensors have: none."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def is_tf32_supported() -> bool:
    return False


def seed() -> None:
    """Seed the CUDA generator at random; ignored without CUDA, as in PyTorch."""


seed_all = seed


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for."""
    return []


def get_rng_state_all() -> list[Any]:
    """The states of all CUDA generators: there are none."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Raises: RuntimeError if there is a state to set."""
    for _ in new_states:
        _absent("set_rng_state_all")


class device:  # noqa: N801 (PyTorch's name)
    """A context that makes a device the current one; without CUDA it does nothing, as in PyTorch."""

    def __init__(self, device: Any):
        self.device = device

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


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


def current_stream(device: Any = None) -> Any:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("current_stream")


def get_device_capability(device: Any = None) -> Any:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("get_device_capability")


def mem_get_info(device: Any = None) -> Any:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("mem_get_info")


def set_device(device: Any) -> None:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("set_device")


def ipc_collect() -> None:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("ipc_collect")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("reset_peak_memory_stats")


def get_rng_state(device: Any = "cuda") -> Any:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("get_rng_state")


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Raises: RuntimeError, since there is no CUDA."""
    _absent("set_rng_state")


__getattr__ = module_getattr(__name__, ("amp",))
