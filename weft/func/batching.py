"""Defines `vmap`: a function of one sample as a function of a batch.

The function runs once. Each of its operations does what the batching rule of the op says (`weft/batching`), for all
samples together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..batching import families  # noqa: F401 (the rules)
from ..batching.opening import opened
from ..core.batched import number_of
from ..core.generator import load_states, states
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.subclasses import is_wrapper
from ..ops.assembly.joining import cat
from . import steps as steps
from .running import check_refused, running


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """Return a function that maps `func` over a dimension of its positional arguments.

    in_dims: the dimension of each argument, an int or None for all, or a pytree of them. out_dims: where the new dimension
    goes in the results. randomness: "error" forbids random numbers, "different" draws new ones for each sample, "same"
    gives each sample the same.

    Raises: ValueError if sizes differ or nothing is mapped over; RuntimeError for random numbers under "error".

    >>> import weft as torch
    >>> torch.func.vmap(torch.dot)(torch.eye(2), torch.ones(2, 2))
    tensor([1., 1.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = steps._process_batched_inputs(in_dims, args, func)
        if any(map(is_wrapper, leaves)):
            return one_by_one(func, in_dims, out_dims)(*args, **kwargs)

        def mapped(batch: Sequence[Any], size: int) -> Any:
            return _map(func, batch, dims, structure, size, out_dims, randomness, kwargs)

        if chunk_size is None or chunk_size >= size:
            return mapped(leaves, size)
        return _in_chunks(mapped, func, leaves, dims, size, chunk_size, out_dims, randomness)

    return wrapper


def _map(
    func: Callable,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    structure: Any,
    size: int,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    """Return the results of `func` for a batch of this size."""
    check_refused()
    with opened(size, randomness) as level, running():
        number = number_of(level)
        samples = steps._create_batched_inputs(dims, leaves, number, structure)
        return steps._unwrap_batched(func(*samples, **kwargs), out_dims, number, size, func)


def one_by_one(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Callable:
    """`vmap` that calls `func` for one sample after the other: where only a class can compute, which knows nothing of samples."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = steps._process_batched_inputs(in_dims, args, func)
        one = functools.partial(_of_one_sample, func, dims, structure, out_dims, kwargs)
        return _in_chunks(one, func, leaves, dims, size, 1, out_dims, "different")

    return wrapper


def _of_one_sample(
    func: Callable, dims: Sequence[int | None], structure: Any, out_dims: Any, kwargs: dict[str, Any],
    batch: Sequence[Any], size: int,
) -> Any:  # fmt: skip
    """Return the results of `func` for a batch of one sample."""
    sample = [x if d is None else x.select(d, 0) for x, d in zip(batch, dims, strict=True)]
    result = func(*tree_unflatten(sample, structure), **kwargs)
    leaves, found = tree_flatten(result)
    placed = steps._out_dims(func, out_dims, result, found)
    return tree_unflatten(
        [x if d is None else x.unsqueeze(d) for x, d in zip(leaves, placed, strict=True)], found
    )


def _in_chunks(
    mapped: Callable,
    func: Callable,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    chunk_size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    """Return the results for parts of the batch, one after the other, joined."""
    columns: list[list] = []
    before = states() if randomness == "same" else None  # of the generators: each part draws the same numbers
    result: Any = None
    structure: Any = None
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        if before is not None:
            load_states(before)
        part = [x if d is None else x.narrow(d, start, length) for x, d in zip(leaves, dims, strict=True)]
        result = mapped(part, length)
        found, structure = tree_flatten(result)
        columns.append(found)
    placed = steps._out_dims(func, out_dims, result, structure)
    return tree_unflatten(
        [
            parts[0] if d is None else cat(parts, d)
            for parts, d in zip(zip(*columns, strict=True), placed, strict=True)
        ],
        structure,
    )
