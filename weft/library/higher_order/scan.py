"""`scan`: a function that carries a state from slice to slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.pytree import tree_flatten, tree_unflatten
from ...core.tensor import Tensor
from ..keys import DispatchKey
from ..namespaces import HigherOrderOperator
from .map import stacked
from .utils import call, check_same, refusal


class ScanOp(HigherOrderOperator):
    """`torch.ops.higher_order.scan`."""

    def __init__(self) -> None:
        super().__init__("scan")

    def __call__(self, combine_fn: Callable, init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
        return super().__call__(combine_fn, init, xs, additional_inputs)


scan_op = ScanOp()


@scan_op.py_impl(DispatchKey.CompositeExplicitAutograd)
def _scanned(combine_fn: Callable, init: list[Any], xs: list[Any], additional_inputs: Any) -> list[Any]:
    """Along the first dimension; gives the last state and the stacked results."""
    carry, columns = list(init), []
    for place in range(xs[0].shape[0]):
        found = combine_fn(*carry, *(x[place] for x in xs), *additional_inputs)
        carry = list(found[: len(init)])
        columns.append(found[len(init) :])
    return [*carry, *stacked("scan", columns)]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Call `carry, y = combine_fn(carry, slice)` for the slices of `xs` along `dim`; gives the last carry and the ys, stacked.

    init: the first carry, a tensor or a pytree of them. The ys are stacked along `dim`. reverse: from the last slice to
    the first; the ys are in the order of the slices.
    Raises: RuntimeError for other arguments; UncapturedHigherOrderOpError if the carry changes its shape or dtype.

    >>> import weft as torch
    >>> from weft._higher_order_ops import scan
    >>> scan(lambda c, x: (c + x, c * x), torch.zeros(()), torch.arange(4.))
    (tensor(6.), tensor([0., 0., 2., 9.]))
    """
    _check_options(combine_fn, dim, reverse)
    first, carried = tree_flatten(init)
    leaves, structure = tree_flatten(xs)
    _check_leaves(first, leaves, init, xs)
    moved = [each.movedim(dim, 0) for each in leaves]
    _check_lengths(moved)
    if reverse:
        moved = [each.flip(0) for each in moved]
    results: Any = None

    def flat(*values: Any) -> list[Any]:
        nonlocal results
        state = tree_unflatten(list(values[: len(first)]), carried)
        found = call("scan", combine_fn, state, tree_unflatten(list(values[len(first) :]), structure))
        if not isinstance(found, tuple) or len(found) != 2:
            raise refusal("scan", f"combine_fn must return the carry and a result, but returned {found!r}")
        carry, shape = tree_flatten(found[0])
        if shape != carried:
            raise refusal("scan", f"the carry must be nested as init is, {carried}, not as {shape}")
        check_same("scan", "the carry", carry, first)
        ys, results = tree_flatten(found[1])
        return [*carry, *ys]

    found = scan_op(flat, first, moved, ())
    ys = found[len(first) :]
    if reverse:
        ys = [each.flip(0) for each in ys]
    ys = [each.movedim(0, dim) for each in ys]
    return tree_unflatten(found[: len(first)], carried), tree_unflatten(ys, results)


def _check_options(combine_fn: Any, dim: Any, reverse: Any) -> None:
    if not callable(combine_fn):
        raise RuntimeError("Combine_fn must be a callable, but got " + repr(combine_fn))
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")


def _check_leaves(first: list[Any], leaves: list[Any], init: Any, xs: Any) -> None:
    if not first or not all(isinstance(each, Tensor) for each in first):
        raise RuntimeError(f"All init leaves must be a Tensor and there must be one, but got {init}")
    if not leaves or not all(isinstance(each, Tensor) for each in leaves):
        raise RuntimeError(f"All xs leaves must be a Tensor and there must be one, but got {xs}")


def _check_lengths(moved: list[Tensor]) -> None:
    if len({each.shape[0] for each in moved}) > 1:
        raise RuntimeError("All xs leaves must have the same size along the scanned dimension")
    if moved[0].shape[0] == 0:
        raise RuntimeError("All xs leaves must have a scan dimension > 0")
