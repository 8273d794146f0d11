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


class CustomVjp(Op):
    """An op made of other ops; its arguments are positional, tensors or not, and all are inputs of the step.

    What it computes on the way is not recorded. Results that only its rules need are further results of the step.
    """

    def __init__(
        self,
        function: Callable,
        *rules: Callable | None,
        joint: Callable | None = None,
        results: tuple[int, ...] | None = None,
    ):
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__.strip("_")
        self.node_name: str | Callable | None = None  # where it does not follow from the name
        self.derivative = Derivative(*rules, joint=joint, results=results)

    def run(self, *args: Any) -> Any:
        try:
            if not needs_recording(args):
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
        return record(self, result, args)


def custom_vjp(
    *rules: Callable | None, joint: Callable | None = None, results: tuple[int, ...] | None = None
) -> Callable[[Callable], CustomVjp]:
    """Decorator: make a function a `CustomVjp` with these rules."""
    return lambda function: CustomVjp(function, *rules, joint=joint, results=results)
