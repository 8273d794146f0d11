"""The default generators of the devices of a type: `torch.cuda.random`, `torch.xpu.random`.

Without a device, setting seeds does nothing, as in PyTorch. A seed that is set before a device is used does not start it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..core import device as places
from ..core.generator import Generator, check_seed, seed_device, seed_devices
from ..core.tensor import Tensor
from ._devices import Devices

NAMES = (
    "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all"
).split()


class Generators:
    """The default generators of devices."""

    def __init__(self, devices: Devices):
        self._devices = devices

    def _generator(self, device: Any = None) -> Generator:
        return self._devices.gpu(device).default_generator

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of a device's generator: 16 bytes, the seed and how many words each thread has used.

        Raises: the error of the type without a device.
        """
        return self._generator(device).get_state()

    def get_rng_state_all(self) -> list[Tensor]:
        """The states of the generators of all devices."""
        return [self.get_rng_state(index) for index in range(self._devices.device_count())]

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        """Continue a device's generator from a state that `get_rng_state` returned. Without a device nothing happens, as in PyTorch."""
        if self._devices.is_available():
            self._generator(device).set_state(new_state)

    def _get_rng_state_offset(self, device: Any = None) -> int:
        return self._generator(device).get_offset()

    def _set_rng_state_offset(self, offset: int, device: Any = None) -> None:
        self._generator(device).set_offset(offset)

    def set_rng_state_all(self, new_states: Iterable[Tensor]) -> None:
        """Put a state into the generator of each device: programs give back what `get_rng_state_all` gave.

        >>> import weft as torch
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
        """
        for index, state in enumerate(new_states):
            self._generator(index).set_state(state)

    def manual_seed(self, seed: int) -> None:
        """Restart the generator of the current device at a seed."""
        where = places.device(self._devices.type, self._devices.index_of(None))
        seed_device(where, check_seed(int(seed)))

    def manual_seed_all(self, seed: int) -> None:
        """Restart the generators of all devices at a seed."""
        seed_devices(check_seed(int(seed)))

    def seed(self) -> None:
        """Restart the generator of the current device at a seed from the operating system."""
        self.manual_seed(_random_seed())

    def seed_all(self) -> None:
        """Restart the generators of all devices at one seed from the operating system."""
        self.manual_seed_all(_random_seed())

    def initial_seed(self) -> int:
        """The last seed of the generator of the current device.

        Raises: the error of the type without a device.
        """
        return self._generator().initial_seed()


def _random_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")
