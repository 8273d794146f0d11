"""What functions launch that fill a new tensor with random numbers, so that such a call can be run again without Python.

A call draws other numbers each time. So it cannot be run once more to see what it does, as `autograd/replays.py` does with other
calls: `drawn` notes how a call fills tensors while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, int64
from ...core.generator import SCRATCH, Generator, default_generator
from ...core.spec import Spec
from ...core.tensor import Tensor, address
from ...engine.distributions import shuffle, turns_of
from ...engine.storages import allocator
from ...engine.twister import draw
from ...families.launches import OBJECT, OF_RESULT, OF_SCRATCH, Launches
from ..assembly.copying import plan_of_copy
from .random_filling import drawers
from .ranges import arange

_RESULT, _SCRATCH = (OF_RESULT, 0, 0), (OF_SCRATCH, 0, 0)


class Draws(NamedTuple):
    """The arguments of a drawer, see `random_filling.py`."""

    distribution: str
    generator: Generator
    tensor: Tensor
    elements: int
    dtype: DType
    parameters: dict[str, Any]


def drawn(function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Draws]]:
    """The result of a call, and how it fills tensors."""
    found: list[Draws] = []
    thread = threading.get_ident()

    def drawer(*given: Any) -> None:
        draws = Draws(*given)
        if threading.get_ident() == thread:
            found.append(draws)
        others = [each for each in drawers if each is not drawer]
        if others:  # another thread records a function
            others[-1](*given)
        else:
            distribution, generator, tensor, count, dtype, parameters = draws
            backend = tensor.spec.device.backend
            backend.fill(distribution, generator, address(tensor), count, dtype, **parameters)

    drawers.append(drawer)
    try:
        return function(*args, **kwargs), found
    finally:
        drawers.remove(drawer)


def launches_of_draws(name: str, result: Tensor, draws: list[Draws]) -> Launches | None:
    """What a call of the function `name` on the CPU launches, which drew from the default generator; None if that is not known.

    The launches run without a bytecode in between. So no other thread runs meanwhile, and they need not take the generator's lock.
    They draw into memory of their own, because another thread may have left words in the generator's memory.
    """
    spec = result.spec
    if name == "randperm":
        return None if draws else _launches_of_permutation(spec)
    if len(draws) != 1 or draws[0].generator is not default_generator:
        return None
    distribution, _, filled, count, dtype, parameters = draws[0]
    if filled._storage is not result._storage or count * dtype.itemsize != spec.nbytes:
        return None
    found = turns_of(distribution, count, dtype, parameters)
    if found is None:
        return None
    turns, numbers = found
    steps = []
    for words, to_values, first, groups in turns:
        steps.append(_draw(words))
        if to_values is not None:
            place = OF_RESULT, 0, first * dtype.itemsize
            steps.append((to_values, [_SCRATCH, place, *map(_object, (*numbers, 0, groups))]))
    return Launches([allocator(spec.nbytes)], steps, allocator(4 * max(turn.words for turn in turns)))


def _launches_of_permutation(spec: Spec) -> Launches | None:
    """They copy the integers in order, draw, and shuffle."""
    if type(spec) is not Spec or spec.dtype is not int64 or not 1 < spec.numel <= SCRATCH:
        return None
    ordered, plan = arange(spec.numel, device=spec.device), plan_of_copy(spec, spec)
    if plan is None:
        return None
    steps = [
        (plan.entry, [_RESULT, *map(_object, (address(ordered), plan.meta, plan.count))]),
        _draw(spec.numel - 1),
        (shuffle(), [_RESULT, _SCRATCH, _object(0), _object(spec.numel)]),
    ]
    return Launches([plan.allocate], steps, allocator(4 * (spec.numel - 1)), keepalive=(ordered, plan))


def _draw(words: int) -> tuple[Callable, list]:
    """The launch that draws so many words into the scratch memory."""
    return draw(), [_object(default_generator.address), _SCRATCH, _object(0), _object(words)]


def _object(value: Any) -> tuple[int, Any, int]:
    return OBJECT, value, 0
