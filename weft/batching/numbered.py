"""Levels by their number, as PyTorch's private functions name them. Libraries that replace the steps of `vmap` call these."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, as_batch, batched_at, is_sample, open_levels, physical, suspended, wrap
from ..core.tensor import Tensor


def current_level() -> int | None:
    """Return the number of the innermost `vmap`, None outside of all."""
    return len(open_levels.stack) or None


def level_of(tensor: Any) -> Level | None:
    """The innermost level whose samples differ in this tensor."""
    while isinstance(tensor, Tensor) and is_sample(tensor):
        storage: Any = tensor._storage
        if storage.step is not None:
            return storage.level
        tensor = storage.value
    return None


def add_batch_dim(tensor: Tensor, bdim: int, number: int) -> Tensor:
    """A sample of a tensor for the function that `vmap` maps; the samples lie along the dimension `bdim`."""
    level = _level(number)
    with suspended(level):
        batch = tensor if bdim == 0 else tensor.movedim(bdim, 0)
    return wrap(batch, level)


def remove_batch_dim(tensor: Tensor, number: int, batch_size: int, out_dim: int) -> Tensor:
    """The batch that a result of the mapped function is a sample of, with the samples along the dimension `out_dim`."""
    level = _level(number)
    with suspended(level):
        batch = as_batch(tensor, level)
        return batch if out_dim == 0 else batch.movedim(0, out_dim)


def same_for_all(tensor: Tensor, number: int) -> Tensor | None:
    """The tensor around the level, None if the samples differ."""
    level = _level(number)
    return None if batched_at(tensor, level) else physical(tensor, level)


def _level(number: int) -> Level:
    return open_levels.stack[number - 1]


def unwrapped(tensor: Any) -> Tensor:
    """The batch around the innermost level whose samples differ in this tensor; the samples lie along the first dimension.

    Raises: RuntimeError if the tensor is no sample.
    """
    level = level_of(tensor)
    if level is None:
        raise RuntimeError("No wrappers present!")
    while tensor._storage.level is not level:  # constants of inner levels
        tensor = physical(tensor, tensor._storage.level)
    return physical(tensor, level)
