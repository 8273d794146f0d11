"""`Op`: the protocol of all operations. Each family of ops, and each op that belongs to no family, inherits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .derivative import Derivative
from .dispatch import PLAIN, watched, watchers
from .recording import needs_recording, tape


class Op:
    """An operation: what it computes, and its derivative.

    `op(*args, **static)` computes a new result and records the step for autograd. A subclass says in `run` how. Methods
    that write into a tensor (`write`, `inplace`, `into`) ask the watchers as `__call__` does, because a watcher must see
    every launch (see `core/dispatch.py`).

    An object of this class itself computes nothing: it stands for a step that another function computes and records.
    """

    name: str
    # None if the op has no derivative yet: backward raises NotImplementedError when it meets the op.
    derivative: Derivative | None = None
    # The name of its nodes in autograd's graph, if that does not follow from the op's name: see `autograd.graph.type_for`.
    node_name: Any = None

    def __init__(self, name: str, derivative: Derivative | None, node_name: Any = None):
        self.name, self.derivative, self.node_name = name, derivative, node_name

    def __call__(self, *args: Any, **static: Any) -> Any:
        """The result of the op; the subclass says what the arguments are."""
        if watchers and (answer := watched(self, "run", args, static)) is not PLAIN:
            return answer
        return self.run(*args, **static)

    def run(self, *args: Any, **static: Any) -> Any:
        """Compute the result and record the step; watchers are not asked."""
        raise NotImplementedError(f"{type(self).__name__}.run")

    def recorded(self, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
        """`result`, recorded as this op's if one of the inputs takes part in autograd."""
        return tape.record(self, result, inputs, static) if needs_recording(inputs) else result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"
