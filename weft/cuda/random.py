"""`torch.cuda.random`: the default generators of CUDA devices.

Without a device, setting seeds does nothing, as in PyTorch. A seed that is set before a device is used does not start it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..core import device as places
from ..core.generator import Generator, check_seed, seed_device, seed_devices
from ..core.tensor import Tensor
from ._devices import count, gpu, index_of

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device: Any = None) -> Generator:
    return gpu(device).default_generator


def get_rng_state(device: int | str | places.device = "cuda") -> Tensor:
    """The state of a device's generator: 16 bytes, the seed and how many words each thread has used.

    Raises: RuntimeError without a device.
    """
    return _generator(device).get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all devices."""
    return [get_rng_state(index) for index in range(count())]


def set_rng_state(new_state: Tensor, device: int | str | places.device = "cuda") -> None:
    """Continue a device's generator from a state that `get_rng_state` returned. Without a device nothing happens, as in PyTorch."""
    if count():
        _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Put a state into the generator of each device: programs give back what `get_rng_state_all` gave.

    >>> import weft as torch
    >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for index, state in enumerate(new_states):
        _generator(index).set_state(state)


def manual_seed(seed: int) -> None:
    """Restart the generator of the current device at a seed."""
    seed_device(places.device("cuda", index_of(None)), check_seed(int(seed)))


def manual_seed_all(seed: int) -> None:
    """Restart the generators of all devices at a seed."""
    seed_devices(check_seed(int(seed)))


def seed() -> None:
    """Restart the generator of the current device at a seed from the operating system."""
    manual_seed(_random_seed())


def seed_all() -> None:
    """Restart the generators of all devices at one seed from the operating system."""
    manual_seed_all(_random_seed())


def _random_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


def initial_seed() -> int:
    """The last seed of the generator of the current device.

    Raises: RuntimeError without a device.
    """
    return _generator().initial_seed()
