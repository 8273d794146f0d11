"""`Op`: the protocol of all operations. Each family of ops, and each op that belongs to no family, inherits it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .derivative import Derivative, as_derivative
from .dispatch import PLAIN, watch_switches, watched, watchers
from .recording import needs_recording, tape
from .templates import add_atoms

_classes: list[type[Op]] = []  # the classes that define `run`


class Op:
    """An operation: its computation and its derivative.

    `op(*args, **static)` computes a new result and records the step for autograd. A subclass says in `run` how. Methods
    that write into a tensor (`write`, `inplace`, `into`) ask the watchers as `__call__` does, because a watcher must see
    every launch (see `core/dispatch.py`).

    An object of this class itself computes nothing: it stands for a step that another function computes and records.
    """

    name: str
    # None if the op has no derivative yet: backward raises NotImplementedError when it meets the op.
    derivative: Derivative | None = None
    # PyTorch's name for the nodes of the op, if `autograd.graph.node_name` does not derive it from the op's name: a string, or
    # a function of (inputs, static arguments).
    node_name: str | Callable | None = None

    def __init__(self, name: str, derivative: Any = None, node_name: str | Callable | None = None):
        self.name, self.derivative, self.node_name = name, as_derivative(derivative), node_name

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "run" in vars(cls):
            _classes.append(cls)
            _set_call(cls, bool(watchers))

    def __call__(self, *args: Any, **static: Any) -> Any:
        """The result of the op; the subclass says what the arguments are.

        This function is the `__call__` of all ops while there are watchers. While there are none, `run` itself is, so
        that other calls do not pay for the question: 14 bytecodes and 0.18 us of a call of 0.6 us (AMD Zen 3, CPython 3.11).
        """
        if (answer := watched(self, "run", args, static)) is not PLAIN:
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


add_atoms(Op)
_asking_call = Op.__call__


def _set_call(cls: type[Op], is_watched: bool) -> None:
    cls.__call__ = _asking_call if is_watched else vars(cls)["run"]  # type: ignore[method-assign]


@watch_switches.append
def _set_calls(is_watched: bool) -> None:
    for cls in _classes:
        _set_call(cls, is_watched)
