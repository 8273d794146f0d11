"""Checkpoints save memory: they drop the tensors that a part of the model saves, and compute them again in backward."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..amp.autocast_mode import autocast_of_now
from ..autograd.backward import backward as _backward
from ..autograd.function import Function
from ..autograd.hooks import running, saved_tensors_hooks
from ..autograd.tensor import require_grad
from ..core.device import device
from ..core.generator import states
from ..core.grad_mode import enable_grad
from ..core.names import name_public
from ..core.pytree.flattening import tree_leaves
from ..core.restoring import contextmanager
from ..core.tensor import Tensor
from ..core.warn import user_level
from ._recomputation import CheckpointError, Recomputation, random_state
from ._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
    "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
    "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
    "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


def noop_context_fn() -> tuple:
    """Contexts for the first and the second run that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, of which only the arguments are kept for backward; it runs again there.

    use_reentrant: True runs a backward pass within the backward pass; False, the better choice, fills in what each step
    saved. early_stop: then leave the function when nothing more is needed. debug: errors list the functions that both runs
    called. context_fn: makes two contexts, for the first run and the second; see `create_selective_checkpoint_contexts`. preserve_rng_state: the second run draws the same random numbers. determinism_check: "default" compares shapes
    and dtypes of what both runs saved, "none" does not.

    Raises: ValueError for keyword arguments in the reentrant form; CheckpointError if both runs differ.

    >>> import weft as torch
    >>> from weft.utils.checkpoint import checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([5.4366, 5.4366])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True.",
            UserWarning,
            stacklevel=user_level(),
        )
        use_reentrant = True
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        check_backward_validity(args)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first, second = context_fn()
    stop = early_stop if _early_stop is None else _early_stop
    run = Recomputation(
        lambda: function(*args, **kwargs),
        second,
        preserve_rng_state,
        determinism_check,
        stop,
        debug if _debug is None else _debug,
    )
    with first, run.first_time(), saved_tensors_hooks(run.pack, run.unpack):
        result = function(*args, **kwargs)
    run.complete = True
    return result


_debug: bool | None = None  # what `set_checkpoint_debug_enabled` says
_early_stop: bool | None = None  # what `set_checkpoint_early_stop` says


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether checkpointed functions called in this context are left, the second time, when nothing more is needed."""
    global _early_stop
    outer, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = outer


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether errors of functions checkpointed in this context list what both runs called; None: as `debug` says."""
    global _debug
    outer, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = outer


class DefaultDeviceType:
    """The type of device whose random numbers are kept when no argument says which."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The numbers of the devices of the arguments, apart from those that draw with the CPU's generator, and the states of their generators.

    >>> import weft as torch
    >>> torch.utils.checkpoint.get_device_states(torch.ones(1))
    ([], [])
    """
    tensors = [each for each in tree_leaves(args) if isinstance(each, Tensor)]
    places = {each.device: each.device.backend.default_generator for each in tensors}
    found = [(place, generator) for place, generator in places.items() if generator is not None]
    return [place.index or 0 for place, _ in found], [generator.get_state() for _, generator in found]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Set the states that `get_device_states` returned.

    Raises: RuntimeError if there is no such device.
    """
    kind = device_type or DefaultDeviceType.get_device_type()
    for index, state in zip(devices, states, strict=True):
        generator = device(kind, index).backend.default_generator
        if generator is None:
            raise RuntimeError(f"set_device_states: {kind} devices have no generators")
        generator.set_state(state)


class GraphExecGroup:
    """A context for several backward passes over parts of a graph: checkpointed functions run again once for all of them.

    That is so without it, too: what a second run computes is kept until it is used.
    """

    _open: list[GraphExecGroup] = []

    def __enter__(self) -> None:
        if self._open:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        self._open.append(self)

    def __exit__(self, *exception: Any) -> None:
        self._open.remove(self)

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return cls._open[-1] if cls._open else None


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warn if none of the inputs requires grad."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=user_level()
        )


def detach_variable(inputs: tuple) -> tuple:
    """Return the tensors as new leaves that require grad if they did; other things as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )
    return tuple(require_grad(x.detach(), x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


class CheckpointFunction(Function):
    """The checkpointed call as one step, whose backward runs the call and its backward."""

    @staticmethod
    def forward(ctx: Any, function: Callable, keep_random: bool, *args: Any) -> Any:
        ctx.call = function
        ctx.autocast = autocast_of_now()
        ctx.random = states() if keep_random else None
        ctx.places = [k for k, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.rest = [None if isinstance(x, Tensor) else x for x in args]
        ctx.save_for_backward(*[args[k] for k in ctx.places])
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple:
        if running.now.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        args = list(ctx.rest)
        for k, saved in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[k] = require_grad(saved.detach(), ctx.needs_input_grad[k + 2])
        with random_state(ctx.random), ctx.autocast, enable_grad():
            outputs = ctx.call(*args)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (y, ct) for y, ct in zip(outputs, cts, strict=True) if isinstance(y, Tensor) and y.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        _backward([y for y, _ in pairs], [ct for _, ct in pairs])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in args])


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Run a chain of functions, or a Sequential, in `segments` parts, and checkpoint all but the last part."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            UserWarning,
            stacklevel=user_level(),
        )
        use_reentrant = True
    chain: Sequence[Callable] = (
        list(functions.children()) if hasattr(functions, "children") else list(functions)
    )
    size = len(chain) // segments

    def run(start: int, end: int) -> Callable:
        def call(value: Any) -> Any:
            for each in chain[start:end]:
                value = each(value)
            return value

        return call

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return run(end, len(chain))(input)


name_public(__name__, "utils._recomputation", "utils._selective")
