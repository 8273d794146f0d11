"""Applies `torch.autograd.Function` to samples: by its method `vmap`, its `forward`, or sample by sample."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..autograd.function import overrides
from ..core.batched import DataDependent, Level, NoBatchingRule, batched_at, physical, suspended, wrap
from ..core.dispatch import PLAIN
from ..core.grad_mode import mode
from ..core.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
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
        _check_rule(function, kwargs)
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
    """Return the result of the static method `vmap` on the tensors beneath."""
    leaves, structure = tree_flatten(args)
    dims = [0 if isinstance(x, Tensor) and batched_at(x, level) else None for x in leaves]
    with suspended(level):
        values = [physical(x, level) if isinstance(x, Tensor) else x for x in leaves]
        found, out_dims = _two_returns(
            function.vmap(
                VmapInfo(level.size, level.randomness),
                tree_unflatten(dims, structure),
                *tree_unflatten(values, structure),
            )
        )
        outputs, out_structure = tree_flatten(found)
        placed = _broadcast_to_and_flatten(out_dims, out_structure)
        if placed is None:
            raise RuntimeError(
                "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
                f"{tree_flatten(out_dims)[1]} but output has structure {out_structure}."
            )
        samples = [_sample(each, dim, level) for each, dim in zip(outputs, placed, strict=True)]
        return tree_unflatten(samples, out_structure)


def _check_rule(function: Any, kwargs: dict[str, Any]) -> None:
    if function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
        )
    if any(isinstance(x, Tensor) for x in kwargs.values()):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            "autograd.Function."
        )


def _two_returns(result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple) and len(result) == 2:
        return result
    got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
    raise RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
        f"the output. Got {got} instead"
    )


def _sample(value: Any, dim: int | None, level: Level) -> Any:
    if dim is None or not isinstance(value, Tensor):
        return value
    return wrap(value.movedim(dim, 0), level)
