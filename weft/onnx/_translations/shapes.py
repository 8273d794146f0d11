"""Other shapes of the same elements."""

from __future__ import annotations

from typing import Any

from ...core.dtype import int64
from .._builder import Builder
from .base import dims_of, given_sizes, positive, translate_rows, translates


@translates("view", "reshape", "view_copy", "_unsafe_view")
def reshape(b: Builder, input: Any, *shape: Any) -> str:
    return b.reshape(b.tensor(input), given_sizes(shape))


@translates("flatten")
def flatten(b: Builder, input: Any, start_dim: int = 0, end_dim: int = -1) -> str:
    rank = b.meta(input).dim()
    if rank == 0:
        return b.reshape(b.tensor(input), [1])
    start, end = positive(start_dim, rank), positive(end_dim, rank)
    sizes = b.sizes_of(input)
    return b.reshape(b.tensor(input), [*sizes[:start], -1, *sizes[end + 1 :]])


@translates("unflatten")
def unflatten(b: Builder, input: Any, dim: int, sizes: Any) -> str:
    dim = positive(dim, b.meta(input).dim())
    own = b.sizes_of(input)
    return b.reshape(b.tensor(input), [*own[:dim], *sizes, *own[dim + 1 :]])


@translates("transpose", "swapaxes", "swapdims")
def transpose(b: Builder, input: Any, dim0: int, dim1: int) -> str:
    order = list(range(b.meta(input).dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.op("Transpose", b.tensor(input), perm=order)


@translates("t")
def t(b: Builder, input: Any) -> str:
    return (
        b.op("Transpose", b.tensor(input)) if b.meta(input).dim() == 2 else b.op("Identity", b.tensor(input))
    )


@translates("permute")
def permute(b: Builder, input: Any, *dims: Any) -> str:
    rank = b.meta(input).dim()
    return b.op("Transpose", b.tensor(input), perm=[positive(each, rank) for each in given_sizes(dims)])


@translates("movedim", "moveaxis")
def movedim(b: Builder, input: Any, source: Any, destination: Any) -> str:
    rank = b.meta(input).dim()
    moved = dict(
        zip([positive(d, rank) for d in dims_of(destination)], [positive(d, rank) for d in dims_of(source)])
    )
    rest = iter([dim for dim in range(rank) if dim not in moved.values()])
    return b.op(
        "Transpose", b.tensor(input), perm=[moved[d] if d in moved else next(rest) for d in range(rank)]
    )


@translates("squeeze")
def squeeze(b: Builder, input: Any, dim: Any = None) -> str:
    shape = b.meta(input).shape
    dims = range(len(shape)) if dim is None else [positive(each, len(shape)) for each in dims_of(dim)]
    ones = [each for each in dims if shape[each] == 1]
    return b.op("Squeeze", b.tensor(input), b.axes(*ones)) if ones else b.op("Identity", b.tensor(input))


translate_rows(
    {
        "unsqueeze unsqueeze_": lambda b, input, dim: b.op("Unsqueeze", b.tensor(input), b.axes(dim)),
        "size": lambda b, input, dim: b.tensor(b.size_of(input, dim), int64),
        "numel nelement": lambda b, input: b.op("Size", b.tensor(input)),
    }
)


@translates("expand", "broadcast_to", "expand_as", "view_as", "reshape_as")
def expand(b: Builder, input: Any, *sizes: Any) -> str:
    name = b.called()
    if name.endswith("_as"):
        wanted = b.sizes_of(sizes[0])
        return (
            b.reshape(b.tensor(input), wanted)
            if name != "expand_as"
            else b.op("Expand", b.tensor(input), b.ints(wanted))
        )
    wanted = [1 if isinstance(each, int) and each == -1 else each for each in given_sizes(sizes)]
    return b.op("Expand", b.tensor(input), b.ints(wanted))


@translates("repeat", "tile")
def repeat(b: Builder, input: Any, *counts: Any) -> str:
    wanted = given_sizes(counts)
    value, rank = b.tensor(input), b.meta(input).dim()
    if len(wanted) > rank:
        value = b.reshape(value, [1] * (len(wanted) - rank) + b.sizes_of(input))
    return b.op("Tile", value, b.ints([1] * (rank - len(wanted)) + wanted))


@translates("meshgrid")
def meshgrid(b: Builder, *tensors: Any, indexing: str = "ij") -> tuple:
    given = given_sizes(tensors)
    count = len(given)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]
    sizes = [b.size_of(each, 0) if b.meta(each).dim() else 1 for each in given]
    shape = b.ints([sizes[order.index(place)] for place in range(count)])
    found = []
    for each, place in zip(given, order):
        column = b.reshape(b.tensor(each), [-1 if dim == place else 1 for dim in range(count)])
        found.append(b.op("Expand", column, shape))
    return tuple(found)


@translates("broadcast_tensors")
def broadcast_tensors(b: Builder, *tensors: Any) -> tuple:
    given = given_sizes(tensors)
    shape = b.op("Shape", b.op("Max", *(b.tensor(each, b.meta(given[0]).dtype) for each in given)))
    return tuple(b.op("Expand", b.tensor(each), shape) for each in given)


@translates("pixel_unshuffle")
def pixel_unshuffle(b: Builder, input: Any, downscale_factor: int) -> str:
    batch, channels, height, width = b.sizes_of(input)
    factor, known = downscale_factor, b.meta(input).shape
    parts = b.reshape(
        b.tensor(input), [batch, known[1], known[2] // factor, factor, known[3] // factor, factor]
    )
    moved = b.op("Transpose", parts, perm=[0, 1, 3, 5, 2, 4])
    return b.reshape(moved, [batch, known[1] * factor**2, known[2] // factor, known[3] // factor])


@translates("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(b: Builder, input: Any, groups: int) -> str:
    sizes = b.sizes_of(input)
    parts = b.reshape(b.tensor(input), [sizes[0], groups, b.meta(input).shape[1] // groups, *sizes[2:]])
    moved = b.op("Transpose", parts, perm=[0, 2, 1, *range(3, len(sizes) + 1)])
    return b.reshape(moved, sizes)


@translates("atleast_1d", "atleast_2d")
def atleast(b: Builder, input: Any) -> str:
    missing = b.result().dim() - b.meta(input).dim()
    return (
        b.op("Unsqueeze", b.tensor(input), b.axes(*range(missing)))
        if missing
        else b.op("Identity", b.tensor(input))
    )
