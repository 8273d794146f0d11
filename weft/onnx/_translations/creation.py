"""Types, and tensors made of sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import int64
from .._builder import Builder, element_type
from .base import given_sizes, translates


@translates("tril", "tril_")
def tril(b: Builder, input: Any, diagonal: Any = 0) -> str:
    return b.op("Trilu", b.tensor(input), b.tensor(diagonal, int64), upper=0)


@translates("triu", "triu_")
def triu(b: Builder, input: Any, diagonal: Any = 0) -> str:
    return b.op("Trilu", b.tensor(input), b.tensor(diagonal, int64), upper=1)


@translates("to", "type", "float", "double", "half", "long", "int", "bool", "bfloat16", "type_as", "_to_copy")
def to(b: Builder, input: Any, *_: Any, **__: Any) -> str:
    return b.op("Cast", b.tensor(input), to=element_type(b.result().dtype))


def _filled(b: Builder, sizes: list[Any], value: Any) -> str:
    return b.op("Expand", b.tensor(value, b.result().dtype), b.ints(sizes))


@translates("zeros", "empty", "ones", "full")
def created(b: Builder, *sizes: Any, **options: Any) -> str:
    name = b.called()
    if name == "full":
        return _filled(b, list(sizes[0]), sizes[1] if len(sizes) > 1 else options["fill_value"])
    return _filled(b, given_sizes(sizes), 1 if name == "ones" else 0)


@translates("new_zeros", "new_empty", "new_ones", "new_full")
def created_like(b: Builder, input: Any, *sizes: Any, **options: Any) -> str:
    name = b.called()
    if name == "new_full":
        return _filled(b, list(sizes[0]), sizes[1] if len(sizes) > 1 else options["fill_value"])
    return _filled(b, given_sizes(sizes), 1 if name == "new_ones" else 0)


def _like(value: Any) -> Callable[..., Any]:
    return lambda b, input, *given, **__: _filled(b, b.sizes_of(input), given[0] if value is None else value)


translates("zeros_like", "empty_like", "zero_")(_like(0))
translates("ones_like")(_like(1))
translates("full_like", "fill_")(_like(None))


@translates("arange")
def arange(b: Builder, *bounds: Any, **_: Any) -> str:
    dtype = b.result().dtype
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    return b.op("Range", b.tensor(start, dtype), b.tensor(end, dtype), b.tensor(step, dtype))


def _random(kind: str, **options: Any) -> Callable[..., Any]:
    def translation(b: Builder, *given: Any, **__: Any) -> str:
        dtype = element_type(b.result().dtype)
        sizes = b.sizes_of(given[0]) if given and b.is_tensor(given[0]) else given_sizes(given)
        shape = b.op("Expand", b.tensor(0, b.result().dtype), b.ints(sizes))
        return b.op(kind, shape, dtype=dtype, **options)

    return translation


translates("rand", "rand_like")(_random("RandomUniformLike", low=0.0, high=1.0))
translates("randn", "randn_like")(_random("RandomNormalLike", mean=0.0, scale=1.0))


@translates("linspace")
def linspace(b: Builder, start: Any, end: Any, steps: int, **_: Any) -> str:
    dtype = b.result().dtype
    places = b.op("Range", b.tensor(0, dtype), b.tensor(steps, dtype), b.tensor(1, dtype))
    step = b.op(
        "Div",
        b.op("Sub", b.tensor(end, dtype), b.tensor(start, dtype)),
        b.tensor(max(int(steps) - 1, 1), dtype),
    )
    return b.op("Add", b.op("Mul", places, step), b.tensor(start, dtype))


@translates("eye")
def eye(b: Builder, n: Any, m: Any = None, **_: Any) -> str:
    shape = b.op("Expand", b.constant(0, np.int64), b.ints([n, n if m is None else m]))
    return b.op("EyeLike", shape, dtype=element_type(b.result().dtype))
