"""`vmap`: a function of one sample as a function of a batch.

The function runs once. Each of its operations does what the batching rule of the op says (`weft/batching`), for all
samples together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..batching import families  # noqa: F401 (the rules)
from ..batching.opening import opened
from ..core.batched import Level, as_batch, batched_at, physical, wrap
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ..utils._pytree import tree_flatten, tree_unflatten
from .running import running


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
    if chunk_size is not None and not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten(args)
        call = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"
        dims = _wrapped(call, leaves, _in_dims(call, in_dims, args, structure))
        size = _batch_size(leaves, dims)

        def mapped(batch: Sequence[Any], size: int) -> Any:
            return _map(func, batch, dims, structure, size, out_dims, randomness, kwargs)

        if chunk_size is None or chunk_size >= size:
            return mapped(leaves, size)
        return _in_chunks(mapped, func, leaves, dims, size, chunk_size, out_dims)

    return wrapper


def name_of(func: Callable) -> str:
    """What messages call a function."""
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


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
    """The results of `func` for a batch of this size."""
    with opened(size, randomness) as level, running():
        batches = [x if d in (0, None) else x.movedim(d, 0) for x, d in zip(leaves, dims, strict=True)]
        samples = [x if d is None else wrap(x, level) for x, d in zip(batches, dims, strict=True)]
        result = func(*tree_unflatten(samples, structure), **kwargs)
        found, out_structure = tree_flatten(result)
        placed = _out_dims(func, out_dims, result, out_structure)
    return tree_unflatten(
        [_unwrapped(func, each, d, level) for each, d in zip(found, placed, strict=True)], out_structure
    )


def _in_chunks(
    mapped: Callable,
    func: Callable,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    chunk_size: int,
    out_dims: Any,
) -> Any:
    """The results for parts of the batch, one after the other, joined."""
    columns: list[list] = []
    result: Any = None
    structure: Any = None
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        part = [x if d is None else x.narrow(d, start, length) for x, d in zip(leaves, dims, strict=True)]
        result = mapped(part, length)
        found, structure = tree_flatten(result)
        columns.append(found)
    placed = _out_dims(func, out_dims, result, structure)
    return tree_unflatten(
        [
            parts[0] if d is None else cat(parts, d)
            for parts, d in zip(zip(*columns, strict=True), placed, strict=True)
        ],
        structure,
    )


def _unwrapped(func: Callable, result: Any, dim: int | None, level: Level) -> Any:
    """A result as the caller of `vmap` sees it, with the batch dim at `dim`."""
    if dim is None:
        if isinstance(result, Tensor):
            if batched_at(result, level):
                name = name_of(func)
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
                )
            return physical(result, level)
        return result
    if not isinstance(result, Tensor):
        name = name_of(func)
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. Did you mean to set out_dims= "
            "to None for output?"
        )
    batch = as_batch(result, level)
    return batch if dim == 0 else batch.movedim(0, dim)


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
    """The dims and the value that they belong to have different structures."""


def _spread(dim: Any, tree: Any) -> list:
    """A dimension for each leaf of a pytree. An int in `dim` that stands for a subtree holds for all its leaves."""
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
        if d is not None and type(x.spec) is not Spec:
            raise NotImplementedError(
                f"{call}: samples of {x.spec.rules.name} tensors: {x.spec.rules.instead}"
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
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure "
            f"{structure}."
        ) from None
