"""`vmap`: a function of one sample as a function of a batch.

The function runs once for each sample and the results are stacked. So everything works inside, Python's `if` on values and
writes in place included, and derivatives and nesting come by themselves; it is not faster than a loop, being one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.generator import default_generator
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """A function that maps `func` over a dimension of its positional arguments.

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
        call = f"vmap({getattr(func, '__name__', repr(func))}, in_dims={in_dims}, ...)(<inputs>)"
        leaves, structure = tree_flatten(args)
        dims = _in_dims(call, in_dims, args, structure)
        dims = _wrapped(call, leaves, dims)
        size = _batch_size(leaves, dims)
        columns: list[list] = []
        result: Any = None
        out_structure: Any = None
        state = default_generator.get_state()
        for index in range(max(size, 1)):
            sample = [x if d is None else _sample(x, d, index) for x, d in zip(leaves, dims, strict=True)]
            if randomness == "same":
                default_generator.set_state(state)
            result = func(*tree_unflatten(sample, structure), **kwargs)
            found, out_structure = tree_flatten(result)
            columns.append(found)
        if randomness == "error" and not FUNCTIONS["equal"](state, default_generator.get_state()):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
        placed = _out_dims(func, out_dims, result, out_structure)
        return tree_unflatten(
            [
                _stacked(func, each, d, size)
                for each, d in zip(zip(*columns, strict=True), placed, strict=True)
            ],
            out_structure,
        )

    return wrapper


def _sample(x: Tensor, dim: int, index: int) -> Tensor:
    """One sample; of an empty batch one of zeros, which tells what the results look like."""
    if x.shape[dim]:
        return x.select(dim, index)
    return x.new_zeros([size for k, size in enumerate(x.shape) if k != dim])


def _in_dims(call: str, in_dims: Any, args: tuple, structure: Any) -> list:
    """A dimension for each leaf of the arguments."""
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"{call}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
            "inputs. The latter is unsupported."
        )
    try:
        return _spread(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args)
    except _Mismatch:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {structure}."
        ) from None


class _Mismatch(Exception):
    """Dims do not have the structure of what they are for."""


def _spread(dim: Any, tree: Any) -> list:
    """A dimension for each leaf of a pytree; those of a pytree that begins like it go to all leaves below."""
    if dim is None or isinstance(dim, int):
        return [dim] * len(tree_flatten(tree)[0])
    if isinstance(dim, dict) and isinstance(tree, dict) and dim.keys() == tree.keys():
        return [each for key in tree for each in _spread(dim[key], tree[key])]
    if not isinstance(dim, (tuple, list)) or not isinstance(tree, (tuple, list)) or len(dim) != len(tree):
        raise _Mismatch
    return [each for part, branch in zip(dim, tree, strict=True) for each in _spread(part, branch)]


def _wrapped(call: str, leaves: Sequence[Any], dims: Sequence[Any]) -> list:
    """The dimensions counted from the front."""
    found: list = []
    for x, d in zip(leaves, dims, strict=True):
        if d is not None and not isinstance(x, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        if d is not None and not -x.dim() <= d < x.dim():
            raise ValueError(
                f"{call}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.dim()} so "
                f"expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
            )
        found.append(d if d is None else d % x.dim())
    return found


def _batch_size(leaves: Sequence[Any], dims: Sequence[Any]) -> int:
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over: all in_dims are None")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return sizes[0]


def _out_dims(func: Callable, out_dims: Any, result: Any, structure: Any) -> list:
    """A dimension for each leaf of the result."""
    try:
        if isinstance(result, Tensor) and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
            out_dims = out_dims[0]
        return _spread(out_dims, result)
    except _Mismatch:
        raise ValueError(
            f"vmap({getattr(func, '__name__', repr(func))}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure "
            f"{structure}."
        ) from None


def _stacked(func: Callable, samples: Sequence[Any], dim: int | None, size: int) -> Any:
    if dim is None:
        return samples[0]
    for each in samples:
        if not isinstance(each, Tensor):
            name = getattr(func, "__name__", repr(func))
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(each)}. Did you mean to set out_dims= "
                "to None for output?"
            )
    stacked = FUNCTIONS["stack"](tuple(samples), dim)
    return stacked if size else stacked.narrow(dim, 0, 0)
