"""The steps of `vmap` before and after the call of the mapped function.

Libraries with pytrees of their own replace `_process_batched_inputs`, `_create_batched_inputs` and `_unwrap_batched` by
functions that know these. So `vmap` looks the three up in this module in each call, and their arguments are PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..batching.numbered import add_batch_dim as _add_batch_dim
from ..batching.numbered import remove_batch_dim as _remove_batch_dim
from ..batching.numbered import same_for_all
from ..core.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten  # noqa: F401 (replaced steps import it)
from ..core.spec import Spec
from ..core.tensor import Tensor

in_dims_t = int | tuple
out_dims_t = int | tuple[int, ...]


def _process_batched_inputs(in_dims: Any, args: tuple, func: Callable) -> tuple[int, list, list, Any]:
    """The size of the batch, the dimension of each leaf of the arguments, the leaves, and the structure of the arguments."""
    leaves, structure = tree_flatten(args)
    call = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    dims = _wrapped(call, leaves, _in_dims(call, in_dims, args, structure))
    return _batch_size(leaves, dims), dims, leaves, structure


def _create_batched_inputs(
    flat_in_dims: Sequence[int | None], flat_args: Sequence[Any], vmap_level: int, args_spec: Any
) -> Any:
    """Return the arguments of one sample."""
    samples = [
        x if d is None else _add_batch_dim(x, d, vmap_level)
        for x, d in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(samples, args_spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable
) -> Any:
    """Return the results for the whole batch, made of the results of a sample."""
    leaves, structure = tree_flatten(batched_outputs)
    dims = _out_dims(func, out_dims, batched_outputs, structure)
    name = _get_name(func)
    return tree_unflatten(
        [
            _maybe_remove_batch_dim(name, each, vmap_level, batch_size, d)
            for each, d in zip(leaves, dims, strict=True)
        ],
        structure,
    )


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """A result as the caller of `vmap` sees it, with the batch dim at `out_dim`."""
    if isinstance(batched_output, Tensor):
        if out_dim is not None:
            return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
        plain = same_for_all(batched_output, vmap_level)
        if plain is None:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return plain
    if out_dim is not None:
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    return batched_output


def _get_name(func: Callable) -> str:
    """What messages call a function."""
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


def _in_dims(call: str, in_dims: Any, args: tuple, structure: Any) -> list:
    """Return a dimension for each leaf of the arguments."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"{call}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
            "inputs. The latter is unsupported."
        )
    for d in _others(in_dims):
        raise ValueError(
            f"{call}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
        )
    try:
        return _spread(in_dims, args)
    except _Mismatch:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {structure}."
        ) from None


def _others(dims: Any) -> list:
    """What in a pytree of dimensions is neither an int nor None."""
    return [d for d in tree_flatten(dims)[0] if d is not None and not isinstance(d, int)]


class _Mismatch(Exception):
    """The dims and the value that they belong to have different structures."""


def _spread(dim: Any, tree: Any) -> list:
    """A dimension for each leaf of a pytree. An int in `dim` that stands for a subtree holds for all its leaves."""
    if dim is None or isinstance(dim, int):
        return [dim] * len(tree_flatten(tree)[0])
    if isinstance(dim, dict) and isinstance(tree, dict) and dim.keys() == tree.keys():
        return [each for key in tree for each in _spread(dim[key], tree[key])]
    if not isinstance(dim, (tuple, list)) or type(dim) is not type(tree) or len(dim) != len(tree):
        raise _Mismatch
    return [each for part, branch in zip(dim, tree, strict=True) for each in _spread(part, branch)]


def _wrapped(call: str, leaves: Sequence[Any], dims: Sequence[Any]) -> list:
    """Return the dimensions counted from the front."""
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
        raise ValueError("vmap: Expected at least one Tensor to vmap over: all in_dims are None")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return sizes[0]


def _out_dims(func: Callable, out_dims: Any, result: Any, structure: Any) -> list:
    """Return a dimension for each leaf of the result."""
    if _others(out_dims):
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection "
            "of ints representing where in the outputs the vmapped dimension should appear."
        )
    single = isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
    try:
        return _spread(out_dims[0] if single else out_dims, result)
    except _Mismatch:
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure "
            f"{structure}."
        ) from None
