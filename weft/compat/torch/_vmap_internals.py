"""`torch._vmap_internals`: `vmap` with its older rules. Functions return one tensor or a tuple, and dims do not count from the end."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from weft.core.pytree import tree_flatten
from weft.core.tensor import Tensor
from weft.func import steps
from weft.func import vmap as newer_vmap

from ...core.warn import user_level

in_dims_t = out_dims_t = int | tuple[int, ...]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """The older `torch.vmap`, which has more limits.

    Raises: ValueError for dims that a tensor does not have, and for results other than a tensor or a tuple of tensors.
    """
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.",
        FutureWarning,
        stacklevel=user_level(),
    )
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`vmap` without its warning. allow_none_pass_through: results that are None stay None, which weft's `vmap` refuses."""
    if allow_none_pass_through:
        raise NotImplementedError("torch._vmap_internals._vmap: weft's vmap takes no results that are None")
    name = steps._get_name(func)

    @functools.wraps(func)
    def checked(*args: Any) -> Any:
        results = func(*args)
        _check_results(name, results, out_dims)
        return results

    mapped = newer_vmap(checked, in_dims, out_dims)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        _check_in_dims(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)", in_dims, args)
        return mapped(*args)

    return wrapped


def _check_in_dims(call: str, in_dims: Any, args: tuple) -> None:
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    leaves, structure = tree_flatten(args)
    for leaf, dim in zip(leaves, steps._in_dims(call, in_dims, args, structure), strict=True):
        if isinstance(leaf, Tensor) and dim is not None and not 0 <= dim < leaf.dim():
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} so "
                f"expected in_dim to satisfy 0 <= in_dim < {leaf.dim()}."
            )


def _check_results(name: str, results: Any, out_dims: Any) -> None:
    several = isinstance(results, tuple)
    for place, each in enumerate(results if several else (results,)):
        if not isinstance(each, Tensor):
            where = f"for return {place}" if several else "as the return"
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(each)} {where}."
            )
    dims = (out_dims,) if isinstance(out_dims, int) else out_dims
    call = f"vmap({name}, ..., out_dims={out_dims})"
    if not isinstance(dims, tuple) or not all(isinstance(each, int) for each in dims):
        raise ValueError(
            f"{call}: `out_dims` must be an int or a tuple of int that says where the mapped dimension is in the outputs."
        )
    count = len(results) if several else 1
    if not isinstance(out_dims, int) and len(dims) != count:
        raise ValueError(f"{call}: `out_dims` must have one dim per output (got {count} outputs) of {name}.")
