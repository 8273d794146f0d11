"""Joining, splitting and moving parts of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._builder import Builder
from .base import dims_of, given_sizes, per_dim, positive, translates
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


@translates("hstack", "vstack", "row_stack", "dstack")
def stacked(b: Builder, tensors: Any) -> str:
    rank = b.meta(tensors[0]).dim()
    axis = {"hstack": 0 if rank < 2 else 1, "dstack": 2}.get(b.called(), 0)
    parts = [b.tensor(each, b.result().dtype) for each in tensors]
    if b.called() != "hstack" and rank < b.result().dim():
        if rank != 1 or b.called() == "dstack":
            raise NotImplementedError(f"{b.called()} of tensors of {rank} dimensions")
        parts = [b.op("Unsqueeze", each, b.axes(0)) for each in parts]
    return b.op("Concat", *parts, axis=axis)


@translates("repeat_interleave")
def repeat_interleave(b: Builder, input: Any, repeats: Any, dim: Any = None, **_: Any) -> str:
    if b.is_tensor(repeats):
        raise NotImplementedError("repeat_interleave with a tensor of repeats")
    value, known = b.tensor(input), b.meta(input)
    sizes = b.sizes_of(input)
    if dim is None:
        value, sizes, dim = b.reshape(value, [-1]), [b.op("Size", value)], 0
    dim = positive(dim, max(known.dim(), 1))
    wide = b.op("Unsqueeze", value, b.axes(dim + 1))
    wide = b.op("Tile", wide, b.ints([1] * (dim + 1) + [repeats] + [1] * (len(sizes) - dim - 1)))
    return b.reshape(wide, [*sizes[:dim], -1, *sizes[dim + 1 :]])


@translates("unfold")
def unfold(b: Builder, input: Any, *arguments: Any, **options: Any) -> str:
    if b.current.op == "call_method":
        return _sliding(b, input, *arguments, **options)
    return _patches(b, input, *arguments, **options)


def _sliding(b: Builder, input: Any, dimension: int, size: int, step: int) -> str:
    """`Tensor.unfold`: windows along one dimension."""
    rank = b.meta(input).dim()
    dim = positive(dimension, rank)
    places = np.arange(b.result().shape[dim])[:, None] * step + np.arange(size)
    found = b.op("Gather", b.tensor(input), b.constant(places, np.int64), axis=dim)
    return b.op("Transpose", found, perm=[each for each in range(rank + 1) if each != dim + 1] + [dim + 1])


def _patches(
    b: Builder, input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> str:
    """`nn.functional.unfold`: patches of images, as columns."""
    kernel, dilations, pads, strides = (per_dim(each, 2) for each in (kernel_size, dilation, padding, stride))
    known = b.meta(input)
    value = b.op("Pad", b.tensor(input), b.constant([0, 0, *pads, 0, 0, *pads], np.int64))
    counts = []
    for axis, (size, k, d, p, s) in enumerate(zip(known.shape[2:], kernel, dilations, pads, strides)):
        counts.append((size + 2 * p - d * (k - 1) - 1) // s + 1)
        places = np.arange(k)[:, None] * d + np.arange(counts[-1]) * s
        value = b.op("Gather", value, b.constant(places, np.int64), axis=2 + 2 * axis)
    moved = b.op("Transpose", value, perm=[0, 1, 2, 4, 3, 5])
    return b.reshape(
        moved, [b.size_of(input, 0), known.shape[1] * kernel[0] * kernel[1], counts[0] * counts[1]]
    )


@translates("fold")
def fold(
    b: Builder,
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> str:
    sizes, kernel, dilations, pads, strides = (
        per_dim(each, 2) for each in (output_size, kernel_size, dilation, padding, stride)
    )
    return b.op("Col2Im", b.tensor(input), b.constant(sizes, np.int64), b.constant(kernel, np.int64), dilations=dilations,
                pads=pads * 2, strides=strides)  # fmt: skip
