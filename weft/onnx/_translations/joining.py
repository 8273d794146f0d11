"""Joining, splitting and moving parts of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._builder import Builder
from .base import dims_of, given_sizes, positive, translates
from .indexing import _END


@translates("cat", "concat", "concatenate")
def cat(b: Builder, tensors: Any, dim: int = 0) -> str:
    dtype = b.result().dtype
    return b.op("Concat", *(b.tensor(each, dtype) for each in tensors), axis=dim)


@translates("stack")
def stack(b: Builder, tensors: Any, dim: int = 0) -> str:
    dtype = b.result().dtype
    rank = b.result().dim()
    axis = positive(dim, rank)
    parts = [b.op("Unsqueeze", b.tensor(each, dtype), b.axes(axis)) for each in tensors]
    return b.op("Concat", *parts, axis=axis)


@translates("chunk", "split", "split_with_sizes", "tensor_split")
def split(b: Builder, input: Any, *_: Any, **options: Any) -> tuple:
    dim = options.get("dim", _[1] if len(_) > 1 else 0)
    sizes = [each.shape[dim] for each in b.result()]
    if dim % b.meta(input).dim() in (input.meta.get("dynamic") or ()):
        raise NotImplementedError("splitting a dynamic dimension")
    if len(sizes) == 1:
        return (b.op("Identity", b.tensor(input)),)
    return b.op("Split", b.tensor(input), b.ints(sizes), axis=dim, outputs=len(sizes))


@translates("unbind")
def unbind(b: Builder, input: Any, dim: int = 0) -> tuple:
    return tuple(
        b.op("Gather", b.tensor(input), b.constant(i, np.int64), axis=dim) for i in range(len(b.result()))
    )


@translates("flip")
def flip(b: Builder, input: Any, *dims: Any) -> str:
    wanted = given_sizes(dims)
    ends = b.constant([-_END] * len(wanted), np.int64)
    minus = b.constant([-1] * len(wanted), np.int64)
    return b.op("Slice", b.tensor(input), minus, ends, b.axes(*wanted), minus)


@translates("roll")
def roll(b: Builder, input: Any, shifts: Any, dims: Any = None) -> str:
    value = b.tensor(input)
    if dims is None:
        raise NotImplementedError("roll of a flattened tensor")
    for shift, dim in zip(dims_of(shifts), dims_of(dims), strict=True):
        first = b.op("Slice", value, b.axes(-shift), b.axes(_END), b.axes(dim))
        second = b.op("Slice", value, b.axes(0), b.axes(-shift), b.axes(dim))
        value = b.op("Concat", first, second, axis=dim) if shift else value
    return value


@translates("pad")
def pad(b: Builder, input: Any, pad: Any, mode: str = "constant", value: Any = None) -> str:
    kinds = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    rank = b.meta(input).dim()
    before = [0] * rank
    after = [0] * rank
    for place in range(len(pad) // 2):
        before[rank - 1 - place], after[rank - 1 - place] = pad[2 * place], pad[2 * place + 1]
    fill = b.constant(value or 0, b.result().dtype) if mode == "constant" else ""
    return b.op("Pad", b.tensor(input), b.ints([*before, *after]), fill, mode=kinds[mode])


@translates("pixel_shuffle")
def pixel_shuffle(b: Builder, input: Any, upscale_factor: int) -> str:
    return b.op("DepthToSpace", b.tensor(input), blocksize=upscale_factor, mode="CRD")
