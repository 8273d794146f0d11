"""`torch.while_loop`: a function again and again, as long as another says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.pytree import tree_flatten, tree_leaves
from ...core.tensor import Tensor
from ..keys import DispatchKey
from ..namespaces import HigherOrderOperator
from .utils import call, check_same, refusal


class WhileLoopOp(HigherOrderOperator):
    """`torch.ops.higher_order.while_loop`."""

    def __init__(self) -> None:
        super().__init__("while_loop")

    def __call__(
        self, cond_fn: Callable, body_fn: Callable, carried_inputs: Any, additional_inputs: Any = (), /
    ) -> Any:
        for each, name in ((carried_inputs, "carried_inputs"), (additional_inputs, "additional_inputs")):
            if not isinstance(each, (tuple, list)):
                raise RuntimeError(f"{name} must be a tuple or list, got {type(each)}")
        return super().__call__(cond_fn, body_fn, carried_inputs, additional_inputs)


while_loop_op = WhileLoopOp()


@while_loop_op.py_impl(DispatchKey.CompositeExplicitAutograd)
def _repeated(cond_fn: Callable, body_fn: Callable, carried_inputs: Any, additional_inputs: Any) -> Any:
    carried = carried_inputs
    leaves, structure = tree_flatten(tuple(carried))
    while _goes_on(cond_fn(*carried, *additional_inputs)):
        result = call("torch.while_loop", body_fn, *carried, *additional_inputs)
        if isinstance(result, Tensor) and len(carried) == 1:
            result = (result,)
        found, made = tree_flatten(tuple(result))
        if made != structure:
            raise refusal(
                "torch.while_loop", f"body_fn must return what it got, nested as {structure}, not as {made}"
            )
        check_same("torch.while_loop", "what body_fn returns", found, leaves)
        carried = result
    return tuple(carried) if isinstance(carried, list) else carried


def _goes_on(answer: Any) -> bool:
    if isinstance(answer, bool):
        return answer
    if not isinstance(answer, Tensor) or answer.numel() != 1 or str(answer.dtype) != "torch.bool":
        raise refusal(
            "torch.while_loop",
            f"cond_fn must return a boolean scalar tensor or a bool, but returned {answer!r}",
        )
    return bool(answer)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: Any) -> Any:
    """Call `body_fn(*carried)`, which gives the next values of `carried`, as long as `cond_fn(*carried)` is true.

    Each value keeps its shape and dtype, and `body_fn` must not write to its arguments.
    Raises: RuntimeError for other arguments; UncapturedHigherOrderOpError if a function breaks these rules.

    >>> import weft as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """
    if not callable(cond_fn):
        raise RuntimeError("Expect cond_fn to be callable.")
    if not callable(body_fn):
        raise RuntimeError("Expect body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise AssertionError(f"carried_inputs must be a tuple or list, got {type(carried_inputs)}")
    for each in tree_leaves(carried_inputs):
        if not isinstance(each, (Tensor, int, float)):
            raise AssertionError(f"carried_inputs must be tensors or numbers, got {type(each)}")
    return while_loop_op(cond_fn, body_fn, carried_inputs, ())
