"""`torch.cond`: one function or the other, as a value says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.pytree import tree_leaves
from ...core.tensor import Tensor
from ..keys import DispatchKey
from ..namespaces import HigherOrderOperator
from .utils import call, refusal


class CondOp(HigherOrderOperator):
    """`torch.ops.higher_order.cond`."""

    def __init__(self) -> None:
        super().__init__("cond")

    def __call__(self, pred: Any, true_fn: Callable, false_fn: Callable, operands: Any) -> Any:
        return super().__call__(pred, true_fn, false_fn, operands)


cond_op = CondOp()


@cond_op.py_impl(DispatchKey.CompositeExplicitAutograd)
def _chosen(pred: Any, true_fn: Callable, false_fn: Callable, operands: Sequence[Any]) -> Any:
    result = call("torch.cond", true_fn if pred else false_fn, *operands)
    for each in tree_leaves(result):
        if each is not None and not isinstance(each, (Tensor, int)):
            raise refusal(
                "torch.cond", f"the function must return tensors or ints, not {type(each).__name__}"
            )
    return result


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable,
    false_fn: Callable,
    operands: tuple | list = (),
) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    pred: a bool or a tensor of one element. With a tensor, the functions must not write to the operands or return them.
    Raises: RuntimeError for other arguments.

    >>> import weft as torch
    >>> x = torch.ones(2)
    >>> torch.cond(x.sum() > 1, lambda x: x * 2, lambda x: x - 1, (x,))
    tensor([2., 2.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if not isinstance(pred, Tensor):  # as PyTorch, which has nothing to trace then
        return (true_fn if pred else false_fn)(*operands)
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(
        isinstance(each, Tensor) for each in tree_leaves(operands)
    ):
        raise RuntimeError(
            f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}."
        )
    return cond_op(pred, true_fn, false_fn, operands)
