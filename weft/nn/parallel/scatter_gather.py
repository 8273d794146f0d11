"""Shares containers of tensors out to GPUs, and joins them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ._functions import Gather, Scatter

__all__ = ["scatter", "scatter_kwargs", "gather"]


def _is_namedtuple(obj: Any) -> bool:
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


is_namedtuple = _is_namedtuple


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return for each GPU a container like `inputs`: with its part of each tensor, and the other objects themselves.

    >>> from weft.nn.parallel import scatter
    >>> scatter(("a", [1]), [0, 1])
    [('a', [1]), ('a', [1])]
    """
    if isinstance(inputs, Tensor):
        return Scatter.apply(target_gpus, None, dim, inputs)
    if isinstance(inputs, tuple | list) and inputs:
        columns = list(zip(*(scatter(each, target_gpus, dim) for each in inputs)))
        if _is_namedtuple(inputs):
            return [type(inputs)(*column) for column in columns]
        return [tuple(column) if isinstance(inputs, tuple) else list(column) for column in columns]
    if isinstance(inputs, dict) and inputs:
        columns = list(zip(*(scatter(item, target_gpus, dim) for item in inputs.items())))
        return [type(inputs)(column) for column in columns]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of the arguments of a call: as many of the one kind as of the other.

    >>> from weft.nn.parallel.scatter_gather import scatter_kwargs
    >>> scatter_kwargs((1,), {"a": 2}, [0])
    (((1,),), ({'a': 2},))
    """
    places = scatter(inputs, target_gpus, dim) if inputs else []
    names = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(places), len(names))
    places += [() for _ in range(count - len(places))]
    names += [{} for _ in range(count - len(names))]
    return tuple(places), tuple(names)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Return a container with the tensors of all `outputs` joined on one device.

    Raises: AssertionError for tensors on the CPU.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return Gather.apply(target_device, dim, *outputs)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([each[key] for each in outputs], target_device, dim)) for key in first
        )
    columns = [gather(list(column), target_device, dim) for column in zip(*outputs)]
    return type(first)(*columns) if _is_namedtuple(first) else type(first)(columns)
