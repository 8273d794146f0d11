"""`torch.autograd.Function` on samples: by its static method `vmap`, by its `forward` on samples, or sample by sample."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..autograd.function import overrides
from ..core.batched import DataDependent, Level, NoBatchingRule, batched_at, physical, suspended, wrap
from ..core.dispatch import PLAIN
from ..core.grad_mode import mode
from ..core.tensor import Tensor
from .fallback import looped
from .rules import highest, in_autograd, outer_autograd


class VmapInfo(NamedTuple):
    """What the static method `vmap` of a Function is told of the batch."""

    batch_size: int
    randomness: str


def apply(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of `function.apply(*args, **kwargs)` if an argument is a sample, else PLAIN."""
    level = highest((*args, *kwargs.values()), None)
    if level is None:
        return PLAIN
    if overrides(function, "vmap"):
        if mode.enabled and in_autograd(args, level):
            return function.apply_unbatched(args, kwargs, lambda *samples: _by_rule(level, function, samples))
        return _by_rule(level, function, args)
    try:
        if not outer_autograd(args, level):
            return function.apply_unbatched(args, kwargs)
    except DataDependent:
        raise
    except NoBatchingRule as error:
        answer = looped(level, function.__name__, function.apply, args, kwargs)
        if answer is PLAIN:
            raise error
        return answer
    # Around vmap each sample is a step of its own, with the function's backward.
    return looped(level, function.__name__, function.apply, args, kwargs)


def _by_rule(level: Level, function: Any, args: tuple) -> Any:
    """The result of the static method `vmap` on the tensors beneath."""
    in_dims = tuple([0 if isinstance(x, Tensor) and batched_at(x, level) else None for x in args])
    with suspended(level):
        values = [physical(x, level) if isinstance(x, Tensor) else x for x in args]
        found, out_dims = function.vmap(VmapInfo(level.size, level.randomness), in_dims, *values)
        if not isinstance(found, tuple):
            return _sample(found, out_dims, level)
        dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(found)
        return tuple([_sample(each, dim, level) for each, dim in zip(found, dims, strict=True)])


def _sample(value: Any, dim: int | None, level: Level) -> Any:
    if dim is None or not isinstance(value, Tensor):
        return value
    return wrap(value.movedim(dim, 0), level)
