"""What programs ask of the backward pass that runs in this thread, under the names of PyTorch's engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .graph import Leaf, Node
from .hooks import running

_numbers = itertools.count()


def _current(reason: str) -> Any:
    if running.now is None:
        raise RuntimeError(reason)
    return running.now


class ExecutionEngine:
    """`Variable._execution_engine`."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Call `callback()` at the end of the backward pass that runs in this thread.

        Raises: RuntimeError outside of a backward pass.
        """
        now = _current("Final callbacks can only be installed during backward pass.")
        now.callbacks = [*now.callbacks, callback]

    def is_checkpoint_valid(self) -> bool:
        """Whether the pass that runs computes the gradients of all leaves, as reentrant checkpoints require."""
        return running.now is None or running.now.wanted is None


def adds_to_leaves() -> bool:
    """Whether the backward pass that runs adds the gradients of all leaves to their `.grad`, and returns none."""
    now = running.now
    return now is not None and now.accumulate and now.wanted is None and not now.create_graph


def owe(leaf: Any) -> Callable[[Any], None]:
    """Let the backward pass that runs wait for one more gradient of a tensor, until the function that is returned gives it.

    The tensor is a leaf of the graph. Its hooks run when it has all of its gradient, as if an operation of the graph had given this one. The last moment to give it
    is a callback at the end of the pass. None stands for no gradient.
    """
    now, place = running.now, leaf._autograd
    now.uses[place] += 1

    def give(gradient: Any) -> None:
        if gradient is None:
            now._give_leaf_nothing(place)
        else:
            now._give_leaf(place, gradient, False)

    return give


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs in this thread, -1 if there is none."""
    now = running.now
    if now is None:
        return -1
    if now.number is None:
        now.number = next(_numbers)
    return now.number


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward pass that runs keeps what nodes have saved; True if none runs."""
    return running.now is None or running.now.keep_graph


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that runs in this thread runs a node.

    Raises: RuntimeError outside of a backward pass, for other objects, and for leaves that `torch.autograd.grad` is asked for.
    """
    if not isinstance(node, (Node, Leaf)):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    now = _current("_get_should_execute_nodes should only be called during the backward pass")
    if type(node) is Leaf:
        if now.wanted is not None and not now.accumulate:
            raise RuntimeError(
                "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). "
                "This is currently not supported."
            )
        return now.reaches(node)
    runs = node in now.seen
    return runs if now.needed is None else runs and node in now.needed
