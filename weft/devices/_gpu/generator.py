"""The random number generator of a GPU: a seed, and how many words each thread has used."""

from __future__ import annotations

import operator
import struct
from typing import Any

import numpy as np

from ...core.device import as_device
from ...core.generator import DEFAULT_SEED, Generator, check_seed, first_seed
from ...core.locks import new_lock
from .philox import WORDS

_STATE = struct.Struct("<Qq")  # as in PyTorch: seed and offset
_MASK = (1 << 64) - 1


class PhiloxGenerator(Generator):
    """What `torch.Generator(device="cuda")` makes."""

    def __init__(self, device: Any):
        self.device = as_device(device)
        self.lock = new_lock()
        self._seed, self._offset = DEFAULT_SEED, 0

    def manual_seed(self, seed: Any) -> PhiloxGenerator:
        seed = check_seed(seed)
        with self.lock:
            self._seed, self._offset = seed & _MASK, 0
        return self

    def initial_seed(self) -> int:
        return self._seed

    def get_offset(self) -> int:
        """How many words each thread has used since the seed."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Go to a place in the numbers of the seed.

        Raises: RuntimeError unless the offset is a multiple of 4.
        """
        offset = operator.index(offset)
        if offset % WORDS:
            raise RuntimeError("offset must be a multiple of 4")
        self._offset = offset

    def take(self, words: int) -> tuple[int, int]:
        """The seed, and the first counter of so many words, which are used from now on."""
        with self.lock:
            before = self._offset
            self._offset = before + words
        return self._seed, before // WORDS

    def state_bytes(self) -> np.ndarray:
        """A copy of the state: 16 bytes with the layout of `torch.cuda.get_rng_state()`."""
        with self.lock:
            return np.frombuffer(bytearray(_STATE.pack(self._seed, self._offset)), np.uint8)

    def load_state_bytes(self, state: np.ndarray) -> None:
        if state.nbytes not in (_STATE.size, 8):  # of 8 bytes, without the offset
            raise RuntimeError("RNG state is wrong size")
        seed, offset = _STATE.unpack(bytes(state).ljust(_STATE.size, b"\0"))
        with self.lock:
            self._seed, self._offset = seed, offset

    def clone_state(self) -> PhiloxGenerator:
        return _restored(self.device, self.state_bytes())

    def __reduce__(self):
        return _restored, (self.device, self.state_bytes())


def _restored(device: Any, state: np.ndarray) -> PhiloxGenerator:
    generator = PhiloxGenerator(device)
    generator.load_state_bytes(state)
    return generator


def new_default_generator(where: Any) -> PhiloxGenerator:
    """The generator that a device uses unless a call is given another one."""
    return PhiloxGenerator(where).manual_seed(first_seed(where))
