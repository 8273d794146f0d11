"""`make_graphed_callables`: modules and functions whose forward and backward passes are replays of graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled
from ..autograd.backward import grad
from ..autograd.function import Function, once_differentiable
from ..core.pytree.flattening import arg_tree_leaves, tree_flatten, tree_unflatten
from ..core.tensor import Tensor
from ..nn.module import Module
from ..ops.creation.creation import empty_like


class _Part:
    """One callable: its captured passes, and the tensors that they read and write."""

    def __init__(self, function: Callable, sample: Sequence[Any], allow_unused: bool):
        self._function, self._sample = function, sample
        self._allow_unused = allow_unused
        self.arguments = arg_tree_leaves(*sample)
        if not all(isinstance(each, Tensor) for each in self.arguments):
            raise AssertionError(
                "make_graphed_callables: the sample_args of each callable must be tensors, or containers of tensors"
            )
        self.parameters = list(function.parameters()) if isinstance(function, Module) else []
        self.inputs = [*self.arguments, *self.parameters]
        self.results: list[Tensor] = []
        self.structure: Any = None
        self.cotangents: list[Tensor | None] = []
        self.gradients: list[Tensor | None] = []
        self.forward_graph: Any = None
        self.backward_graph: Any = None  # None without a gradient

    def run(self) -> None:
        """Compute the results of the sample."""
        self.results, self.structure = tree_flatten(self._function(*self._sample))

    def run_backward(self) -> None:
        """Compute the gradients of the inputs for the present cotangents."""
        wanted = [each for each in self.inputs if each.requires_grad]
        pairs = [
            (result, cotangent)
            for result, cotangent in zip(self.results, self.cotangents, strict=True)
            if cotangent is not None
        ]
        results, cotangents = zip(*pairs, strict=True)
        found = iter(grad(results, wanted, cotangents, allow_unused=self._allow_unused))
        self.gradients = [next(found) if each.requires_grad else None for each in self.inputs]

    def make_cotangents(self) -> bool:
        """Make room for the cotangents of the results; whether there is a gradient."""
        self.cotangents = [empty_like(each) if each.requires_grad else None for each in self.results]
        return any(each is not None for each in self.cotangents) and any(
            each.requires_grad for each in self.inputs
        )

    def warm_up(self) -> None:
        self.run()
        if self.make_cotangents():
            self.run_backward()
        self.results, self.cotangents, self.gradients = [], [], []


class _Replay(Function):
    """A call of a part: its forward graph, and its backward graph in backward passes."""

    @staticmethod
    def forward(ctx: Any, part: _Part, *inputs: Tensor) -> Any:
        ctx.part = part
        for captured, given in zip(part.arguments, inputs, strict=False):
            if captured is not given:
                captured.detach().copy_(given)
        part.forward_graph.replay()
        return tuple(each.detach() for each in part.results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        part = ctx.part
        for captured, given in zip(part.cotangents, cotangents, strict=True):
            if captured is not None:
                captured.copy_(given)
        part.backward_graph.replay()
        return None, *(None if each is None else each.detach() for each in part.gradients)


def _call(part: _Part, *arguments: Any) -> Any:
    results = _Replay.apply(part, *arg_tree_leaves(*arguments), *part.parameters)
    return tree_unflatten(results, part.structure)


def graphed_callables(
    kinds: tuple[Any, Any], callables: Any, sample_args: Any, warmups: int, allow_unused: bool, pool: Any
) -> Any:
    """See `torch.cuda.make_graphed_callables`. kinds: the class of graphs, and the context that captures one."""
    make_graph, capture = kinds
    if is_autocast_enabled() and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    is_one = not isinstance(callables, tuple)
    functions = (callables,) if is_one else callables
    samples = (sample_args,) if is_one else sample_args
    for each in functions:
        _check(each)
    parts = [_Part(f, s, allow_unused) for f, s in zip(functions, samples, strict=True)]
    for part in parts:
        for _ in range(warmups):
            part.warm_up()
    for part in parts:
        part.forward_graph = make_graph()
        with capture(part.forward_graph, pool=pool):
            part.run()
        pool = (
            part.forward_graph.pool()
        )  # all passes share one pool, because they run in the order of their captures
    for part in reversed(parts):
        if part.make_cotangents():
            part.backward_graph = make_graph()
            with capture(part.backward_graph, pool=pool):
                part.run_backward()
    found = [_with_graphs(f, part) for f, part in zip(functions, parts, strict=True)]
    return found[0] if is_one else tuple(found)


def _check(function: Any) -> None:
    if not isinstance(function, Module):
        return
    if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
        raise AssertionError(
            "make_graphed_callables: a module must not have hooks when it is passed. They may be registered afterwards."
        )
    if any(each.requires_grad for each in function.buffers()):
        raise AssertionError("make_graphed_callables: the buffers of a module must not require grad")


def _with_graphs(function: Any, part: _Part) -> Any:
    """The function that replays the graphs; a module gets it as its `forward`, for the mode (training or not) of the capture."""
    replay = functools.partial(_call, part)
    if not isinstance(function, Module):
        return replay
    mode, usual = function.training, function.forward

    def forward(*arguments: Any, **options: Any) -> Any:
        return (
            replay(*arguments) if function.training == mode and not options else usual(*arguments, **options)
        )

    function.forward = forward  # type: ignore[method-assign]
    return function
