"""`torch.random`: the default generator, and a way to leave it as it was."""

from __future__ import annotations

from collections.abc import Generator as Iteration
from collections.abc import Iterable
from typing import Any

from .compat.missing import module_getattr
from .core.generator import Generator, default_generator
from .core.restoring import contextmanager
from .ops.creation.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .switches import thread_safe_generator

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iteration[None]:
    """Afterwards the default generator continues from where it was before.

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
    if devices:
        raise NotImplementedError(
            f"fork_rng: generators of devices {list(devices)}: weft draws on the CPU only"
        )
    state = default_generator.state_bytes()
    try:
        yield
    finally:
        default_generator.load_state_bytes(state)


__getattr__ = module_getattr(__name__)
