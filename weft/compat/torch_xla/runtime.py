"""`torch_xla.runtime`: the kind and number of devices, and this process among all: the only one."""

from __future__ import annotations

import os

from ...devices.xla import device_count

__all__ = [
    "addressable_device_count", "addressable_runtime_device_count", "device_type", "global_device_count",
    "global_ordinal", "global_runtime_device_count", "host_index", "initialize_cache", "is_spmd", "local_device_count",
    "local_ordinal", "local_process_count", "process_count", "process_index", "world_size",
]  # fmt: skip


def device_type() -> str | None:
    """What computes: "CPU", "GPU" or "TPU"."""
    import jax

    return jax.default_backend().upper()


def local_device_count() -> int:
    """How many devices this computer has."""
    return device_count()


def addressable_device_count() -> int:
    """How many devices this process has."""
    return device_count()


def addressable_runtime_device_count() -> int:
    """How many devices this process has."""
    return device_count()


def global_device_count() -> int:
    """How many devices all processes have."""
    return device_count()


def global_runtime_device_count() -> int:
    """How many devices all processes have."""
    return device_count()


def local_process_count() -> int:
    """How many processes run on this computer."""
    return 1


def process_count() -> int:
    """How many processes run."""
    return 1


def world_size() -> int:
    """How many processes share the work."""
    return 1


def process_index() -> int:
    """The number of this process."""
    return 0


def host_index() -> int:
    """The number of this computer."""
    return 0


def global_ordinal() -> int:
    """The number of this process."""
    return 0


def local_ordinal() -> int:
    """The number of this process on its computer."""
    return 0


def is_spmd() -> bool:
    """Whether tensors are distributed over devices: no."""
    return False


def initialize_cache(path: str | os.PathLike[str], readonly: bool = False) -> None:
    """Keep compiled programs in a folder.

    Raises: NotImplementedError for a folder that is only to be read.
    """
    if readonly:
        raise NotImplementedError("initialize_cache(readonly=True)")
    import jax

    jax.config.update("jax_compilation_cache_dir", os.fspath(path))
