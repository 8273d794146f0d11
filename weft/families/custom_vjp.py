"""Functions composed of other ops that autograd records as one step, with a derivative of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.derivative import Derivative
from ..core.grad_mode import mode
from ..core.op import Op
from ..core.out_of_memory import from_memory_error
from ..core.recording import needs_recording, record
from ..core.tensor import Tensor, end_view
from .launches import Launches


class CustomVjp(Op):
    """A function composed of other ops, which autograd records as one step with its own derivative.

    All arguments are positional. The first `inputs` of them are the inputs of the step (None: all of them, tensors or
    not), the others are static. The function itself is not recorded. Results that only the rules need are further results
    of the step. Without a name the op is called as the function is. `launches(*args)` says what a call launches, None if that is not known;
    without it no call is replayed.
    """

    def __init__(
        self,
        function: Callable,
        *rules: Callable | None,
        joint: Callable | None = None,
        results: tuple[int, ...] | None = None,
        inputs: int | None = None,
        name: str = "",
        node_name: str | Callable | None = None,
        launches: Callable[..., Launches | None] | None = None,
    ):
        derivative = Derivative(*rules, joint=joint, results=results)
        super().__init__(name or function.__name__.strip("_"), derivative, node_name)
        functools.update_wrapper(self, function)
        self.function = function
        self.inputs = inputs
        self.launches = launches

    def run(self, *args: Any) -> Any:
        inputs = args[: self.inputs]
        try:
            if not needs_recording(inputs):
                return self.function(*args)
            mode.enabled = False
            try:
                result = self.function(*args)
            finally:
                mode.enabled = True
        except MemoryError as error:
            raise from_memory_error(error) from None
        for each in (result,) if isinstance(result, Tensor) else result:
            end_view(each)
        return record(self, result, inputs, args[len(inputs) :])


def custom_vjp(*rules: Callable | None, **options: Any) -> Callable[[Callable], CustomVjp]:
    """Decorator: make a function a `CustomVjp` with these rules and options."""
    return lambda function: CustomVjp(function, *rules, **options)
