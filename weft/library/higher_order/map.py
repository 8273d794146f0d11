"""`map`: a function of one slice, for all slices along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.pytree import tree_flatten, tree_unflatten
from ...core.tensor import Tensor
from ...ops.assembly.joining import stack
from ..keys import DispatchKey
from ..namespaces import HigherOrderOperator
from .utils import call, check_same, refusal


class MapImpl(HigherOrderOperator):
    """`torch.ops.higher_order.map_impl`."""

    def __init__(self) -> None:
        super().__init__("map_impl")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


map_impl = MapImpl()


@map_impl.py_impl(DispatchKey.CompositeExplicitAutograd)
def _mapped(f: Callable, xs: Any, pos_args: Any) -> list[Any]:
    columns = [f(*(x[place] for x in xs), *pos_args) for place in range(xs[0].shape[0])]
    return stacked("map", columns)


def stacked(operator: str, columns: list[Any]) -> list[Any]:
    """The results of all slices, each stacked along a new first dimension.

    Raises: UncapturedHigherOrderOpError unless they have the same shapes and dtypes.
    """
    for each in columns:
        if not all(isinstance(leaf, Tensor) for leaf in each):
            raise refusal(operator, "the function must return tensors")
        check_same(operator, "what the function returns for each slice", each, columns[0])
    return [stack(list(each)) for each in zip(*columns, strict=True)]


def map(f: Callable, xs: Any, *args: Any) -> Any:  # noqa: A001 (PyTorch's name)
    """The results of `f(slice, *args)` for the slices of `xs` along its first dimension, stacked.

    xs: a tensor, or a pytree of tensors with the same first size.
    Raises: RuntimeError for other arguments.

    >>> import weft as torch
    >>> from weft._higher_order_ops import map
    >>> map(lambda x, y: (x * y).sum(), torch.ones(3, 2), torch.tensor([1., 2.]))
    tensor([3., 3., 3.])
    """
    leaves, structure = tree_flatten(xs)
    if not leaves:
        raise IndexError("map: xs has no tensors")
    if not all(isinstance(each, Tensor) for each in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    if any(each.ndim == 0 for each in leaves):
        raise IndexError("map: the tensors of xs must have a dimension to map over")
    sizes = [each.shape[0] for each in leaves]
    if 0 in sizes:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len(set(sizes)) > 1:
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes {[x.shape for x in leaves]}."
        )
    result_structure: Any = None

    def flat(*values: Any) -> Any:
        nonlocal result_structure
        slices = tree_unflatten(list(values[: len(leaves)]), structure)
        found, result_structure = tree_flatten(call("map", f, slices, *values[len(leaves) :]))
        return found

    if not callable(f):
        raise refusal("map", f"{f!r} is no function")
    results = map_impl(flat, leaves, args)
    return tree_unflatten(results, result_structure)
