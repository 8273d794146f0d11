"""`torch.cuda.random`: the default generators of CUDA devices."""

from __future__ import annotations

from ..accelerator._random import NAMES, Generators
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
_get_rng_state_offset = _GENERATORS._get_rng_state_offset
_set_rng_state_offset = _GENERATORS._set_rng_state_offset
set_rng_state_all = _GENERATORS.set_rng_state_all
