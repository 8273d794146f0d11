"""Backward hooks of modules are called by identity steps around `forward`, through which the gradients pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.function import Function
from ..core.grad_mode import is_grad_enabled
from ..core.tensor import Tensor
from ..core.warn import user_level


class BackwardHookFunction(Function):
    """Is the identity; in backward, `hook(gradients)` returns the gradients to pass on. `grad_fn` shows its name."""

    @staticmethod
    def forward(ctx: Any, hook: Callable, materialize: bool, *tensors: Tensor) -> Any:
        ctx.hook = hook
        ctx.set_materialize_grads(materialize)
        ctx.mark_non_differentiable(*(tensor for tensor in tensors if not tensor.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, *ctx.hook(gradients)


class Passage:
    """One call of a module that has full backward hooks. `enter` takes the arguments, `leave` the output.

    Gradients meet the step after the module first, which calls `pre_hooks`, then the one before it, which calls
    `hooks`. Where no input requires a gradient there is no step before it, and the first one calls both.
    """

    def __init__(self, module: Any, hooks: Sequence[Callable], pre_hooks: Sequence[Callable]):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple | None = None
        self.input_places: list[int] | None = None  # the positions of the tensors among the arguments
        self.n_inputs = self.n_outputs = 0

    def enter(self, args: tuple) -> tuple:
        self.n_inputs = len(args)
        args, self.input_places = _through(args, self._on_grad_input, materialize=True)
        return args

    def leave(self, result: Any) -> Any:
        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        if not any(isinstance(each, Tensor) for each in results):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}",
                stacklevel=user_level(),
            )
        results, self.output_places = _through(results, self._on_grad_output, materialize=False)
        if type(result) is tuple:
            return results
        return type(result)(*results) if isinstance(result, tuple) else results[0]  # or a named tuple

    def _on_grad_output(self, gradients: tuple) -> Sequence[Any]:
        grad_outputs = _spread(gradients, self.output_places, self.n_outputs)
        for hook in self.pre_hooks:
            grad_outputs = _replaced(hook(self.module, grad_outputs), grad_outputs, "pre hook", "grad_output")
        if self.input_places is None:
            self._call_without_inputs(grad_outputs)
        else:
            self.grad_outputs = grad_outputs
        return [grad_outputs[place] for place in self.output_places or ()]

    def _on_grad_input(self, gradients: tuple) -> Sequence[Any]:
        if self.grad_outputs is None:  # no gradient passed through the output, as in a second derivative
            return gradients
        grad_inputs = _spread(gradients, self.input_places, self.n_inputs)
        for hook in self.hooks:
            result = hook(self.module, grad_inputs, self.grad_outputs)
            grad_inputs = _replaced(result, grad_inputs, "hook", "grad_input")
        self.grad_outputs = None
        return [grad_inputs[place] for place in self.input_places or ()]

    def _call_without_inputs(self, grad_outputs: tuple) -> None:
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.",
                stacklevel=user_level(),
            )
        for hook in self.hooks:
            result = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(r is None for r in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )


def _through(values: tuple, hook: Callable, materialize: bool) -> tuple[tuple, list[int] | None]:
    """Pass the tensors of `values` through the identity. Returns None for the step if no tensor requires a gradient."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = [values[i] for i in places]
    if not (is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
        return values, None
    passed = BackwardHookFunction.apply(hook, materialize, *tensors)
    result = list(values)
    for place, tensor in zip(places, passed):
        result[place] = tensor
    return tuple(result), places


def _spread(gradients: Sequence[Any], places: Sequence[int] | None, count: int) -> tuple:
    """Return `count` items: the gradients at their positions, None elsewhere."""
    result = [None] * count
    for place, gradient in zip(places or (), gradients):
        result[place] = gradient
    return tuple(result)


def _replaced(result: Any, gradients: tuple, kind: str, name: str) -> tuple:
    """Return the gradients that a hook returned, or else its arguments. Raises: RuntimeError if the numbers differ."""
    if result is None:
        return gradients
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(gradients):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {name}, got {len(result)}, but expected {len(gradients)}"
        )
    return result


def hook_last_node(module: Any, hooks: Sequence[Callable], args: tuple, result: Any) -> None:
    """Call an old backward hook with the gradients that the last step of `forward` receives and returns."""
    last = result
    while not isinstance(last, Tensor):
        last = next(iter(last.values())) if isinstance(last, dict) else last[0]
    node = last.grad_fn
    if node is None:
        return
    problem = _unseen(args, result, node)
    if problem:
        warnings.warn(problem, FutureWarning, stacklevel=user_level())
    for hook in hooks:
        node.register_hook(lambda grad_input, grad_output, hook=hook: hook(module, grad_input, grad_output))


_DEPRECATED = "is deprecated and will be removed in future versions. This hook will be missing some"
_BETTER = "Please use register_full_backward_hook to get the documented behavior."


def _unseen(args: tuple, result: Any, last: Any) -> str | None:
    """What an old backward hook at the node `last` does not see of this call, as a warning; None if it sees all."""
    results = (result,) if isinstance(result, Tensor) else result
    if not _are_tensors(results):
        return (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
            f"{_DEPRECATED} of the grad_output. {_BETTER}"
        )
    if not _are_tensors(args):
        return (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors "
            f"{_DEPRECATED} of the grad_input. {_BETTER}"
        )
    if len({each.grad_fn for each in results} - {None}) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes "
            f"{_DEPRECATED} grad_output. {_BETTER}"
        )
    if {each.grad_fn for each in args} - {None} != {node for node, _ in last.next_functions}:
        return (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes "
            f"{_DEPRECATED} grad_input. {_BETTER}"
        )
    return None


def _are_tensors(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(each, Tensor) for each in values)
