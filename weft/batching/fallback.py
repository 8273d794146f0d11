"""What has no batching rule: it runs once for each sample, and the results are stacked.

An op without a rule is looped over by `loop_over`. If other code reads the memory of a sample, `NoBatchingRule` is raised,
and the innermost public function that it passes through is looped over by `recover`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core.batched import (
    DataDependent,
    Level,
    NoBatchingRule,
    batched_at,
    open_levels,
    physical,
    suspended,
    wrap,
)
from ..core.derivative import Derivative
from ..core.generator import load_states, states
from ..core.grad_mode import enable_grad, mode
from ..core.grad_mode import open_levels as open_duals
from ..core.op import Op
from ..core.overrides import PLAIN, public_function
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.recording import tape
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.assembly.joining import stack
from .rules import Recordable, any_batched, check_writable, highest, in_autograd, record

_warned: set[str] = set()


class Settings:
    """What users have set about operations without a batching rule."""

    enabled = True  # whether they run sample by sample; else they raise
    warns_always = False  # whether each such call warns; else the first one of each operation


settings = Settings()
# Their results are not tensors, or they free the graph, so that they cannot run for each sample.
_VALUES = frozenset(
    "item tolist numpy __bool__ __int__ __float__ __index__ __array__ __dlpack__ __repr__ grad backward".split()
)


def loop_over(level: Level, op: Any, args: tuple, kwargs: dict[str, Any]) -> Recordable:
    """A call of an op, sample by sample. It is recorded with the derivative of the op."""
    found = per_sample(level, op.name, op, args, kwargs)
    inputs = op._signature.bind(*args, **kwargs)
    inputs.apply_defaults()
    return Recordable(found, (*inputs.args, *inputs.kwargs.values()))


def recover(function: Callable, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
    """The result of a public function that failed because something in it has no batching rule; else PLAIN."""
    if not isinstance(error, NoBatchingRule):
        return PLAIN
    name = public_function(function).__name__
    level = highest((*args, *kwargs.values()), None)
    if level is None and open_levels.stack:
        level = open_levels.stack[-1]  # where random numbers differ from sample to sample
    if level is None or name in _VALUES:
        return PLAIN
    return looped(level, name, function, args, kwargs)


def looped(level: Level, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    leaves, structure = tree_flatten((args, kwargs))
    if open_duals and in_autograd(leaves, level):
        return PLAIN  # the samples have tangents, which a loop would lose
    inplace = name.endswith("_") and not name.endswith("__") or name == "__setitem__"
    if inplace:
        check_writable(leaves[0], leaves[1:], level)
    with suspended(level):
        found = per_sample(level, name, function, args, kwargs)
    if not (mode.enabled and in_autograd(leaves, level)):
        return found
    if inplace:
        raise NotImplementedError(
            f"vmap: the derivative of {name}, which has no batching rule, with respect to samples"
        )
    results, result_structure = tree_flatten(found)
    recorded = record(_Looped(name, function, leaves, structure), tuple(results), leaves, (), level)
    return tree_unflatten(list(recorded), result_structure)


class _Looped(Op):
    """Wraps a function of samples as a recorded step: its derivative runs sample by sample as well."""

    def __init__(self, name: str, function: Callable, leaves: Sequence[Any], structure: Any):
        from ..autograd import grad  # which the rules of derivatives are part of

        def pulled(cts: Sequence[Any], *inputs: Any) -> list:
            """Return the cotangents of one sample."""
            recording = mode.enabled  # a derivative of these cotangents is wanted
            with enable_grad():
                values = [_as_input(x, recording) if _is_smooth(x) else x for x in inputs]
                args, kwargs = tree_unflatten(values, structure)
                outputs = tree_flatten(function(*args, **kwargs))[0]
            pairs = [
                (y, ct) for y, ct in zip(outputs, cts, strict=True) if ct is not None and y.requires_grad
            ]
            wanted = [x for x in values if _is_smooth(x)]
            found = grad(
                [y for y, _ in pairs],
                wanted,
                [ct for _, ct in pairs],
                create_graph=recording,
                allow_unused=True,
            )
            by_input = {id(x): ct for x, ct in zip(wanted, found, strict=True)}
            return [
                by_input[id(x)] if by_input.get(id(x)) is not None else x.new_zeros(x.shape) for x in wanted
            ]

        def joint(ct, out, *inputs):
            given = [x if x is not None else leaves[k] for k, x in enumerate(inputs)]
            level = highest((ct, given), None)
            if level is None:
                found = pulled(ct, *given)
            else:
                found = looped(level, f"the derivative of {name}", pulled, (ct, *given), {})
            rest = iter(found)
            return [next(rest) if _is_smooth(x) else None for x in given]

        super().__init__(name, Derivative(joint=joint))


def _as_input(x: Tensor, recording: bool) -> Tensor:
    """The tensor as something to differentiate with respect to, connected to its history if that is wanted."""
    return x.view_as(x) if recording and x.requires_grad else tape.require_grad(x.detach())


def _is_smooth(x: Any) -> bool:
    return isinstance(x, Tensor) and x.spec.dtype.category >= 2


def per_sample(level: Level, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return the results of all samples, stacked."""
    leaves, structure = tree_flatten((args, kwargs))
    if not any_batched(leaves, level) and level.randomness != "different":
        given, named = tree_unflatten(
            [physical(x, level) if isinstance(x, Tensor) else x for x in leaves], structure
        )
        return function(*given, **named)
    if not settings.enabled:
        raise RuntimeError(
            f"vmap: {name} has no batching rule, and running it once for each sample is disabled"
        )
    if settings.warns_always or name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {name}: it runs once "
            "for each sample.",
            UserWarning,
            stacklevel=user_level(),
        )
    columns: list[list] = []
    found_structure: Any = None
    written: dict[int, Tensor] = {}
    before = states() if level.randomness == "same" else None
    for index in range(max(level.size, 1)):
        if before is not None:
            load_states(before)
        sample = [_sample(x, index, level) if isinstance(x, Tensor) else x for x in leaves]
        given, named = tree_unflatten(sample, structure)
        found, found_structure = tree_flatten(function(*given, **named))
        columns.append(found)
        written = {id(one): x for one, x in zip(sample, leaves, strict=True) if isinstance(x, Tensor)}
    last = columns[-1]
    return tree_unflatten(
        [
            written[id(last[place])] if id(last[place]) in written else _stacked(each, level)
            for place, each in enumerate(zip(*columns, strict=True))
        ],
        found_structure,
    )


def _sample(x: Tensor, index: int, level: Level) -> Tensor:
    value = physical(x, level)
    if not batched_at(x, level):
        return value
    if not level.size:  # a call on zeros gives the metadata of the results
        return value.new_zeros(value.shape[1:])
    return value.select(0, index)


def _stacked(samples: Sequence[Any], level: Level) -> Any:
    if not isinstance(samples[0], Tensor):
        if any(each != samples[0] for each in samples):
            raise DataDependent("vmap: a result that is no tensor differs from sample to sample")
        return samples[0]
    stacked = stack(tuple(samples))
    return wrap(stacked if level.size else stacked.narrow(0, 0, 0), level)
