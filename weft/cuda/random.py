"""`torch.cuda.random`: states of the generators of all devices, of which there are none. The rest is declared."""

from __future__ import annotations

from collections.abc import Iterable

from ..compat.missing import module_getattr
from ..core.tensor import Tensor


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Put a state into the generator of each device: programs give back what `get_rng_state_all` gave, an empty list.

    >>> import weft as torch
    >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for index, _ in enumerate(new_states):
        raise NotImplementedError(
            f"torch.cuda.set_rng_state_all: there is no device {index}: this version of weft computes on the CPU only"
        )


__getattr__ = module_getattr(__name__)
