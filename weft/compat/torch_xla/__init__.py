"""`torch_xla` of PyTorch/XLA 2.9, for weft's devices `xla`. Programs import it under `weft run` or after `weft.compat.install()`.

This process is the only one of a program, as PyTorch/XLA's is without a launcher.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ...core.device import device as _device
from ...devices.xla import is_installed

if not is_installed():
    raise ModuleNotFoundError(
        "torch_xla needs JAX, which is not installed: pip install 'weft[xla]'", name="jax"
    )

from . import runtime as runtime
from .core import xla_model as _xm

__version__ = "2.9.0"
__all__ = [
    "compile",
    "device",
    "device_count",
    "devices",
    "launch",
    "manual_seed",
    "real_devices",
    "step",
    "sync",
]


def device(index: int | None = None) -> _device:
    """The device with a number, or the current one."""
    return _xm.xla_device(index)


def devices() -> list[_device]:
    """All devices of this process."""
    return [_device(name) for name in _xm.get_xla_supported_devices()]


def real_devices() -> list[str]:
    """The kinds of all devices with their numbers: ["CPU:0"]."""
    return _xm.xla_real_devices(devices())


def device_count() -> int:
    """How many devices this process has."""
    return len(devices())


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    """Run what is pending on all devices; with `wait` until it is done."""
    _xm.mark_step(wait, reset_scope)


@contextlib.contextmanager
def step() -> Iterator[None]:
    """A context whose operations run when it is left. What was pending before runs first."""
    sync()
    try:
        yield
    finally:
        sync()


def compile(
    f: Callable | None = None,
    full_graph: bool | None = False,
    name: str | None = None,
    max_different_graphs: int | None = None,
) -> Any:
    """A function whose operations run together when it returns. Without `f` the same as a context.

    full_graph: values that are read inside raise an error, because they are needed before the end.
    max_different_graphs: how many graphs may be compiled at the ends of all calls.

    Raises: RuntimeError for what these two do not allow.
    """
    compiled = 0

    @contextlib.contextmanager
    def region() -> Iterator[None]:
        nonlocal compiled
        sync()
        runs, compilations = _xm.counts()
        yield
        if full_graph and _xm.counts()[0] != runs:
            raise RuntimeError(
                f"{name or 'torch_xla.compile'}: values were read before the end of the full graph"
            )
        sync()
        compiled += _xm.counts()[1] - compilations
        if max_different_graphs is not None and compiled > max_different_graphs:
            raise RuntimeError(
                f"{name or 'torch_xla.compile'}: {compiled} different graphs, and {max_different_graphs} are allowed"
            )

    if f is None:
        return region()

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with region():
            return f(*args, **kwargs)

    return call


def manual_seed(seed: Any, device: Any = None) -> None:
    """Restart the random numbers. Those of all devices come from the CPU's generator."""
    _xm.set_rng_state(seed, device)


def launch(
    fn: Callable, args: tuple = (), start_method: str = "spawn", debug_single_process: bool = False
) -> None:
    """Call `fn(0, *args)`. There is one process."""
    fn(0, *args)
