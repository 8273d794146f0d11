"""`torch.xpu.random`: the default generators of XPU devices."""

from __future__ import annotations

from weft.accelerator._random import NAMES, Generators

from ._devices import DEVICES

__all__ = list(NAMES)

_GENERATORS = Generators(DEVICES)
get_rng_state = _GENERATORS.get_rng_state
get_rng_state_all = _GENERATORS.get_rng_state_all
initial_seed = _GENERATORS.initial_seed
manual_seed = _GENERATORS.manual_seed
manual_seed_all = _GENERATORS.manual_seed_all
seed = _GENERATORS.seed
seed_all = _GENERATORS.seed_all
set_rng_state = _GENERATORS.set_rng_state
set_rng_state_all = _GENERATORS.set_rng_state_all
