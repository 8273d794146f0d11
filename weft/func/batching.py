"""`vmap`: a function of one sample as a function of a batch.

The function runs once for each sample and the results are stacked. So everything works inside, Python's `if` on values and
writes in place included, and derivatives and nesting come by themselves; it is not faster than a loop, being one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.generator import default_generator
from ..core.op import FUNCTIONS
from ..core.tensor import Tensor, wrap_dim
from ..utils._pytree import tree_flatten, tree_unflatten


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """A function that maps `func` over a dimension of its arguments.

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
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten(args)
        dims = _in_dims(in_dims, args, len(leaves))
        named, named_structure = tree_flatten(kwargs)
        leaves, dims = leaves + named, dims + [0 if isinstance(x, Tensor) else None for x in named]
        size = _batch_size(leaves, dims)
        count = len(leaves) - len(named)
        columns: list[list] = []
        out_structure: Any = None
        state = default_generator.get_state()
        for index in range(size):
            sample = [x if d is None else x.select(d, index) for x, d in zip(leaves, dims, strict=True)]
            if randomness == "same":
                default_generator.set_state(state)
            result = func(
                *tree_unflatten(sample[:count], structure), **tree_unflatten(sample[count:], named_structure)
            )
            found, out_structure = tree_flatten(result)
            columns.append(found)
        if randomness == "error" and not FUNCTIONS["equal"](state, default_generator.get_state()):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
        placed = _out_dims(out_dims, result, len(found))
        return tree_unflatten(
            [_stacked(each, d) for each, d in zip(zip(*columns, strict=True), placed, strict=True)],
            out_structure,
        )

    return wrapper


def _in_dims(in_dims: Any, args: tuple, count: int) -> list:
    if not isinstance(in_dims, (int, tuple, list)) and in_dims is not None:
        raise ValueError(
            f"vmap(func, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError("vmap(func)(<no inputs>): got no inputs. Maybe you forgot to add inputs?")
    if isinstance(in_dims, (tuple, list)) and len(in_dims) != len(args):
        raise ValueError(
            f"vmap(func, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of inputs: "
            f"{len(in_dims)} dims for {len(args)} inputs"
        )
    given = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
    found: list = []
    for dim, arg in zip(given, args, strict=True):
        leaves, _ = tree_flatten(arg)
        found += _spread(dim, arg, len(leaves))
    return [
        d if d is None else wrap_dim(d, x.dim()) for d, x in zip(found, tree_flatten(args)[0], strict=True)
    ]


def _spread(dim: Any, tree: Any, count: int) -> list:
    """A dimension for each tensor of a pytree."""
    if dim is None or isinstance(dim, int):
        return [dim] * count
    pairs = dim.items() if isinstance(dim, dict) else enumerate(dim)
    found: list = []
    for key, each in pairs:
        found += _spread(each, tree[key], len(tree_flatten(tree[key])[0]))
    return found


def _batch_size(leaves: Sequence[Any], dims: Sequence[Any]) -> int:
    sizes = set()
    for x, d in zip(leaves, dims, strict=True):
        if d is not None:
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"vmap(func)(<inputs>): Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap "
                    "over non-Tensor arguments, please use None as the respective in_dim"
                )
            if not x.dim():
                raise ValueError(
                    f"vmap(func)(<inputs>): Got in_dim={d} for some input, but that input is a Tensor of dimensionality 0 "
                    "so expected in_dim to satisfy -0 <= in_dim < 0."
                )
            sizes.add(x.shape[d])
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over: all in_dims are None")
    if len(sizes) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} for the "
            "mapped dimension"
        )
    (size,) = sizes
    if not size:
        raise NotImplementedError(
            "vmap over a dimension of size 0: the function never runs, so its result is unknown"
        )
    return size


def _out_dims(out_dims: Any, result: Any, count: int) -> list:
    if isinstance(out_dims, int) or out_dims is None:
        return [out_dims] * count
    return _spread(out_dims, result if isinstance(result, (tuple, list, dict)) else (result,), count)


def _stacked(samples: Sequence[Any], dim: int | None) -> Any:
    for each in samples:
        if not isinstance(each, Tensor):
            raise ValueError(f"vmap(func, ...): `func` must only return Tensors, got type {type(each)}")
    if dim is None:
        return samples[0]
    return FUNCTIONS["stack"](tuple(samples), dim)
