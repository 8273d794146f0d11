"""`associative_scan`: all partial results of an associative function of two slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.pytree import tree_flatten, tree_unflatten
from ...core.tensor import Tensor
from ...ops.assembly.joining import stack
from ..keys import DispatchKey
from ..namespaces import HigherOrderOperator
from .utils import call, check_same


class AssociativeScanOp(HigherOrderOperator):
    """`torch.ops.higher_order.associative_scan`."""

    def __init__(self) -> None:
        super().__init__("associative_scan")

    def __call__(self, combine_fn: Callable, xs: Any, additional_inputs: Any = ()) -> Any:
        return super().__call__(combine_fn, xs, additional_inputs)


associative_scan_op = AssociativeScanOp()


@associative_scan_op.py_impl(DispatchKey.CompositeExplicitAutograd)
def _scanned(combine_fn: Callable, xs: list[Tensor], additional_inputs: Any) -> list[Tensor]:
    """Along the first dimension, from left to right: `combine_fn` gets the slices before and this slice."""
    columns = [[each[0] for each in xs]]
    for place in range(1, xs[0].shape[0]):
        columns.append(combine_fn(*columns[-1], *(each[place] for each in xs), *additional_inputs))
    return [stack(list(each)) for each in zip(*columns, strict=True)]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """All partial results of combining the slices of `xs` along `dim`, from left to right.

    combine_fn: an associative function of two slices that gives one of their shape and dtype. reverse: from the last slice to
    the first. combine_mode: "generic"; "pointwise" is for GPUs.
    Raises: ValueError, TypeError or RuntimeError for other arguments.

    >>> import weft as torch
    >>> from weft._higher_order_ops import associative_scan
    >>> associative_scan(torch.mul, torch.arange(1., 5.), 0, combine_mode="generic")
    tensor([ 1.,  2.,  6., 24.])
    """
    _check_options(combine_fn, dim, reverse, combine_mode)
    leaves, structure = tree_flatten(xs)
    _check_leaves(leaves, xs, combine_mode)
    moved = [each.movedim(dim, 0) for each in leaves]
    _check_lengths(moved)
    if reverse:
        moved = [each.flip(0) for each in moved]

    def flat(*values: Any) -> list[Any]:
        left, right = (
            tree_unflatten(list(each), structure) for each in (values[: len(leaves)], values[len(leaves) :])
        )
        found, shape = tree_flatten(call("associative_scan", combine_fn, left, right))
        if shape != structure:
            raise AssertionError(
                f"The output of combine_fn must be nested as xs is, {structure}, not as {shape}"
            )
        check_same("associative_scan", "the output of combine_fn", found, values[: len(leaves)])
        return found

    results = associative_scan_op(flat, moved, ())
    if reverse:
        results = [each.flip(0) for each in results]
    return tree_unflatten([each.movedim(0, dim) for each in results], structure)


def _check_options(combine_fn: Any, dim: Any, reverse: Any, combine_mode: Any) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise TypeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must be either 'pointwise' or 'generic', but got {combine_mode}")


def _check_leaves(leaves: list[Any], xs: Any, combine_mode: str) -> None:
    if not leaves:
        raise IndexError("associative_scan: there must be a tensor in xs")
    if not all(isinstance(each, Tensor) for each in leaves):
        raise AttributeError(f"associative_scan: xs must consist of tensors, but got {xs}")
    if combine_mode == "pointwise" and any(each.device.type not in ("cuda", "xpu") for each in leaves):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU; use combine_mode='generic'"
        )
    if any(each.ndim == 0 for each in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")


def _check_lengths(moved: list[Tensor]) -> None:
    if any(each.shape[0] == 0 for each in moved):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    if len({each.shape[0] for each in moved}) > 1:
        raise AssertionError("All xs leaves must have the same size along the scanned dimension")
