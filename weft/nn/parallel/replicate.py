"""Copies a module to several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..module import Module
from .comm import check_gpus

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Copies of `network` on the GPUs `devices`. Raises: ValueError for a device that is not a GPU."""
    check_gpus(devices)
    if devices and next(network.parameters(), None) is not None:
        raise AssertionError(
            "Broadcast function not implemented for CPU tensors: replicate needs a module on a GPU"
        )
    return []
