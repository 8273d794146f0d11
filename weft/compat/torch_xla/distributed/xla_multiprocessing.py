"""`torch_xla.distributed.xla_multiprocessing`: there is one process."""

from __future__ import annotations

from collections.abc import Callable


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int | None = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Call `fn(0, *args)` in this process.

    Raises: NotImplementedError for more processes than one.
    """
    if nprocs not in (None, 1):
        raise NotImplementedError(f"spawn(nprocs={nprocs}): XLA's devices are used by one process")
    fn(0, *args)
