"""`torch.random`: the default generator, and a way to leave it as it was."""

from __future__ import annotations

from collections.abc import Generator as Iteration
from collections.abc import Iterable
from typing import Any

from weft.core.device import device
from weft.core.generator import Generator, default_generator, load_states, states
from weft.core.restoring import contextmanager
from weft.core.switches import thread_safe_generator
from weft.ops.creation.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

from ._utils import _get_device_index

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state", "thread_safe_generator",
]  # fmt: skip


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iteration[None]:
    """Afterwards the default generators of the CPU and of all devices used so far continue from where they were before.

    >>> import weft as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     _ = torch.rand(3)
    >>> torch.rand(1)
    tensor([0.4963])
    """
    if not enabled:
        yield
        return
    kind = device_type or "cuda"
    where = None if devices is None else [device(kind, _get_device_index(each)) for each in devices]
    before = states(where)
    try:
        yield
    finally:
        load_states(before, where)
