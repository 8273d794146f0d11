"""weft.xpu: what can be said of Intel's GPUs without them. This version computes on the CPU only."""

from __future__ import annotations

from .compat.missing import module_getattr


def is_available() -> bool:
    return False


def device_count() -> int:
    """How many devices can be used."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generator there; ignored without such a device."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices; ignored without such a device."""


def empty_cache() -> None:
    """Give unused device memory back; there is none."""


__getattr__ = module_getattr(__name__)
