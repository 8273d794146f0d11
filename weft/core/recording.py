"""The interface through which ops record operations. `weft/autograd`, which imports the ops, implements it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .batched import NoBatchingRule, is_recorded_around
from .grad_mode import mode
from .restoring import Restoring
from .tensor import Tensor, new_hooks

# The error of backward for an op without a rule.
NO_RULE = "the derivative of {} is not implemented"


class Tape:
    """The functions that record operations. `weft/autograd` sets them."""

    record: Callable  # (op, result, inputs, static) -> result
    recorder: Callable  # (op, result, inputs, static) -> function (result, *inputs) that records such calls
    start_inplace: Callable  # (op, target, inputs, static) -> node or None
    finish_inplace: Callable  # (node, target, inputs)
    can_record_after: (
        Callable  # (plan, op, target, inputs) -> whether `record_after` may take the place of the two
    )
    record_after: Callable  # (plan, target, inputs)
    can_overwrite: (
        Callable  # (target) -> whether `record_overwrite` may record a write that does not read the target
    )
    record_overwrite: Callable  # (op, target, source=None)
    recorded_view: Callable  # (view, input, several=False)
    note_view: Callable  # (view): a view with the grad_fn of its base follows in-place operations on the base
    check_write: Callable  # (target)
    rebase_history: Callable  # (target, result)
    take_grad_fn_of: Callable  # (target, result)
    require_grad: Callable  # (tensor, requires_grad=True) -> tensor: `requires_grad_` of weft's own code
    renew_leaf: Callable  # (tensor): the memory of a leaf was exchanged, so graphs recorded so far lead to another tensor
    rename: Callable  # (result, change): the node that made a result gets the name change(its name)
    rename_after: Callable  # (result, name): the node gets the name of the nodes of the function `name`, or this name of a node


tape = Tape()


def needs_recording(tensors: Sequence[Any]) -> bool:
    """Whether grad mode is on and one of the tensors requires grad or has tangents."""
    for each in tensors:
        if isinstance(each, Tensor) and each._autograd is not None:
            return mode.enabled
    return bool(new_hooks) and mode.enabled and any(map(is_recorded_around, tensors))


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """Record an operation with this result, which is a tensor or a tuple of tensors. Returns the result."""
    return tape.record(op, result, inputs, static)


def new_recorder(plan: Any, op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Callable:
    """The function `(result, *inputs)` that records the calls of a plan, made from the first of them; the plan keeps it."""
    plan.record = recorder = tape.recorder(op, result, inputs, static)
    return recorder


def record_inplace(
    op: Any, target: Tensor, inputs: Sequence[Any], static: tuple, write: Callable, *args: Any
) -> Tensor:
    """Call `write(*args)`, which modifies `target`, and record it as an in-place operation with these inputs."""
    if any(map(is_recorded_around, (target, *inputs))):  # the levels around would not see the write
        raise NoBatchingRule(f"vmap: {op.name} in place has no batching rule")
    node = tape.start_inplace(op, target, inputs, static)
    outer = mode.enabled
    mode.enabled = False
    try:
        write(*args)
    finally:
        mode.enabled = outer
    if node is not None:
        tape.finish_inplace(node, target, inputs)
    return target


def check_recorded_write(target: Tensor, *others: Any) -> None:
    """Raises: RuntimeError if autograd forbids the in-place operation. PyTorch raises this error before all others."""
    if needs_recording((target, *others)):
        tape.check_write(target)


class unrecorded(Restoring):  # noqa: N801 (used like a function)
    """A context without recording, for code that is recorded as one operation."""

    __slots__ = ("outer",)

    def __enter__(self) -> None:
        self.outer = mode.enabled
        mode.enabled = False

    def _restore(self) -> None:
        mode.enabled = self.outer
