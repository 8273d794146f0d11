"""`vmap`, `grad` and `grad_and_value`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.core.pytree import _broadcast_to_and_flatten, tree_flatten
from weft.func import grad, grad_and_value, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable:
    """`vmap` over `chunks` parts of the batch, one after the other, which needs less memory.

    >>> import weft as torch
    >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(4, 3))
    tensor([3., 3., 3., 3.])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        values, structure = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, structure) or []
        sizes = [value.shape[dim] for value, dim in zip(values, dims) if dim is not None]
        chunk_size = max(1, -(-sizes[0] // chunks)) if sizes else None
        return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)

    return wrapped
