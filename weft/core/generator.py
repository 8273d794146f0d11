"""The state of a random number generator: PyTorch's Mersenne Twister, byte for byte.

Compiled code in `weft.engine.distributions` draws the numbers and advances the state in place.
"""

import operator
import os
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from .device import CPU, as_device, device, started_backends
from .locks import new_lock

# `torch.get_rng_state()` returns the bytes of this record (ATen/CPUGeneratorImpl.cpp).
STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "words", "normal", "normal_is_valid"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", 624), "<f8", "<i4"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040],
        "itemsize": 5056,
    }
)
DEFAULT_SEED = 67280421310721
# 32-bit words drawn at once. Small enough to stay in the cache until they are converted to values.
SCRATCH = 2**14


class Seeding:
    """How states for seeds are written: the first ones in Python, as most programs need few, and the machine code has to be loaded."""

    in_python = 8  # so many more
    machine_code: Any  # (): `engine/twister.py` sets it


def _words(seed: int) -> list[int]:
    """The words for a seed, as `engine/twister.py` computes them."""
    words = [word := seed & 0xFFFFFFFF]
    for i in range(1, 624):
        words.append(word := (1812433253 * (word ^ (word >> 30)) + i) & 0xFFFFFFFF)
    return words


class Generator:
    """A random number generator with PyTorch's numbers for the same seed; each type of device has its own subclass.

    Raises: RuntimeError for a device without generators.

    >>> import weft as torch
    >>> torch.Generator().manual_seed(7).initial_seed()
    7
    """

    get_state: Any  # methods that make tensors: added by `weft/ops/creation/random.py`
    set_state: Any

    def __new__(cls, device: Any = "cpu") -> Any:
        where = as_device(device)
        if cls is Generator and where is not CPU:
            default = where.backend.default_generator  # raises an error if the device does not exist
            if default is None:
                raise RuntimeError(f"{where.type.upper()} device type not an accelerator.")
            cls = type(default)
        return object.__new__(cls)

    def __init__(self, device: Any = "cpu"):
        self.device = as_device(device)
        self.lock = (
            new_lock()
        )  # held from drawing words into the scratch memory until values are made of them
        self._record = np.zeros((), STATE)
        self._scratch = np.empty(SCRATCH, np.uint32)
        # For compiled code: the address of the state, and a buffer for raw draws.
        self.address, self.scratch = self._record.ctypes.data, self._scratch.ctypes.data
        self.manual_seed(DEFAULT_SEED)

    def manual_seed(self, seed: Any) -> "Generator":
        """Set the seed, in [-2**63, 2**64). A negative seed means 2**64 + seed."""
        seed = check_seed(seed) & 0xFFFFFFFFFFFFFFFF
        with self.lock:
            if Seeding.in_python:
                Seeding.in_python -= 1
                self._record[()] = (seed, 1, 1, 0, _words(seed), 0.0, 0)
            else:
                Seeding.machine_code()(self.address, seed, 0, 1)
        return self

    def seed(self) -> int:
        """Set a seed from the operating system, and return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The last seed, as an unsigned 64-bit number."""
        return int(self._record["seed"])

    def state_bytes(self) -> np.ndarray:
        """A copy of the state: 5056 bytes with the layout of `torch.get_rng_state()`."""
        with self.lock:
            return np.frombuffer(bytearray(self._record), np.uint8)

    def load_state_bytes(self, state: np.ndarray) -> None:
        """Restore a state from `state_bytes()` or `torch.get_rng_state()`."""
        if state.nbytes != STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG state size "
                f"to be {state.nbytes}"
            )
        record = np.frombuffer(bytes(state), STATE)[0]
        if record["seeded"] != 1 or record["left"] < 1 or record["left"] + record["next"] > 625:
            raise RuntimeError("Invalid mt19937 state")
        with self.lock:
            self._record[()] = record

    def keep_normal(self, value: float) -> None:
        """Store the second normal number of a Box-Muller step for the next call."""
        self._record["normal"], self._record["normal_is_valid"] = value, 1

    def take_normal(self) -> float | None:
        """Return and remove the stored normal number; None if there is none."""
        if not self._record["normal_is_valid"]:
            return None
        value = float(self._record["normal"])
        self._record["normal"], self._record["normal_is_valid"] = 0.0, 0
        return value

    def clone_state(self) -> "Generator":
        """A copy of the generator with the same state."""
        return _restored(self.state_bytes())

    def __reduce__(self):
        return _restored, (self.state_bytes(),)

    def get_offset(self) -> int:
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        raise RuntimeError("CPU Generator does not use offset")


def check_seed(seed: Any) -> int:
    """A seed as an int, if it is an integer in [-2**63, 2**64)."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    seed = operator.index(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return seed


def _restored(state: np.ndarray) -> Generator:
    generator = Generator()
    generator.load_state_bytes(state)
    return generator


default_generator = Generator()
default_generator.seed()


# ---- The generators of devices -------------------------------------------------------------------------------------------

_seeds: dict[device, int] = {}  # that programs have set for a device, which may not have been used yet
_seed_of_others: int | None = None


def seed_device(where: device, seed: int) -> None:
    """Restart the default generator of a device at a seed, now or when the device is used first."""
    _seeds[where] = check_seed(seed)
    for backend in started_backends():
        if backend.default_generator is not None and backend.default_generator.device is where:
            backend.default_generator.manual_seed(seed)


def seed_devices(seed: int) -> None:
    """Restart the default generators of all devices but the CPU at a seed."""
    global _seed_of_others
    _seed_of_others = check_seed(seed)
    _seeds.clear()
    for generator in _device_generators():
        generator.manual_seed(seed)


def _device_generators() -> list[Generator]:
    found = (backend.default_generator for backend in started_backends())
    return [each for each in found if each is not None]


def generator_on(where: device, generator: Generator) -> Generator:
    """The generator that fills tensors of a device: for the CPU's default generator, that of the device, if it has one.

    Raises: RuntimeError for a generator of another type of device.
    """
    own = where.backend.default_generator
    if own is not None and generator is default_generator:
        return own
    wanted = CPU if own is None else where
    if generator.device.type != wanted.type:
        raise RuntimeError(
            f"Expected a '{wanted.type}' device type for generator but found '{generator.device.type}'"
        )
    return generator


class States(NamedTuple):
    """Where the default generators of the CPU and of devices are."""

    states: list[tuple[Generator, np.ndarray]]
    seeds: tuple[dict[device, int], int | None]  # of devices that have not been used


def states(devices: Collection[device] | None = None) -> States:
    """The states of the CPU's default generator and those of these devices, or of all."""
    for each in devices or ():
        _ = each.backend  # starts it, so that it has a generator
    found = [each for each in _device_generators() if devices is None or each.device in devices]
    return States(
        [(each, each.state_bytes()) for each in (default_generator, *found)], (dict(_seeds), _seed_of_others)
    )


def load_states(before: States, devices: Collection[device] | None = None) -> None:
    """Continue from what `states` returned for the same devices. A device that was not used then begins anew."""
    global _seed_of_others
    if devices is None:
        _seeds.clear()
        _seeds.update(before.seeds[0])
        _seed_of_others = before.seeds[1]
        known = [generator for generator, _ in before.states]
        for generator in _device_generators():
            if generator not in known:
                generator.manual_seed(first_seed(generator.device))
    for generator, state in before.states:
        generator.load_state_bytes(state)


def first_seed(where: device) -> int:
    """The seed that a device's default generator begins with: the one that programs have set, or a random one."""
    found = _seeds.get(where, _seed_of_others)
    return int.from_bytes(os.urandom(8), "little") if found is None else found
