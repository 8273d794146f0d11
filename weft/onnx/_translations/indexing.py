"""Elements chosen by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import bool_, int64
from .._builder import Builder
from .base import positive, translates


@translates("select")
def select(b: Builder, input: Any, dim: int, index: Any) -> str:
    return b.op("Gather", b.tensor(input), b.tensor(index, int64), axis=dim)


@translates("narrow")
def narrow(b: Builder, input: Any, dim: int, start: Any, length: Any) -> str:
    first = b.int_vector(start)
    end = b.op("Add", first, b.int_vector(length))
    return b.op("Slice", b.tensor(input), first, end, b.axes(dim))


_END = 2**63 - 1


@translates("getitem", "__getitem__")
def getitem(b: Builder, input: Any, index: Any) -> Any:
    if not b.is_tensor(input):  # an item of a tuple of results
        return b.values[input][index]
    return _chosen(b, b.tensor(input), b.meta(input).dim(), index)


def _chosen(b: Builder, value: str, rank: int, index: Any) -> str:
    """The elements of an ONNX value that an index of Python's chooses."""
    items = list(index) if isinstance(index, (tuple, list)) else [index]
    used = sum(_rank_of(b, each) for each in items if each is not None and each is not ...)
    if ... in [each if not b.is_tensor(each) else 0 for each in items]:
        place = next(i for i, each in enumerate(items) if each is ...)
        items[place : place + 1] = [slice(None)] * (rank - used)
    dim, tensors, start = 0, [], value
    for each in items:
        if each is None:
            value, rank, dim = b.op("Unsqueeze", value, b.axes(dim)), rank + 1, dim + 1
        elif isinstance(each, slice):
            value, dim = _sliced(b, value, each, dim), dim + 1
        elif b.is_tensor(each):
            tensors.append((dim, each))
            dim += _rank_of(b, each)
        elif isinstance(each, bool):
            raise NotImplementedError("an index that is True or False")
        else:
            value, rank = b.op("Gather", value, b.tensor(each, int64), axis=dim), rank - 1
    return (
        _indexed(b, value, tensors, rank)
        if tensors
        else (b.op("Identity", value) if value is start else value)
    )


def _rank_of(b: Builder, index: Any) -> int:
    """How many dimensions an index is for: a mask is for as many as it has."""
    return b.meta(index).dim() if b.is_tensor(index) and b.meta(index).dtype == bool_ else 1


def _sliced(b: Builder, value: str, part: slice, dim: int) -> str:
    if part == slice(None):
        return value
    step = 1 if part.step is None else part.step
    start, stop = part.start or 0, _END if part.stop is None else part.stop
    return b.op("Slice", value, b.int_vector(start), b.int_vector(stop), b.axes(dim), b.int_vector(step))


def _indexed(b: Builder, value: str, tensors: list[tuple[int, Any]], rank: int) -> str:
    """Indexing by tensors: by one, by a mask, or by several for neighbouring dimensions."""
    if len(tensors) == 1 and b.meta(tensors[0][1]).dtype != bool_:
        dim, index = tensors[0]
        return b.op("Gather", value, b.tensor(index, int64), axis=dim)
    if len(tensors) == 1 and b.meta(tensors[0][1]).dim() == 1:
        return b.op("Compress", value, b.tensor(tensors[0][1]), axis=tensors[0][0])
    first = tensors[0][0]
    columns: list[str] = []
    places: list[int] = []
    for dim, index in tensors:
        places += range(dim, dim + _rank_of(b, index))
        if b.meta(index).dtype == bool_:
            found = b.op("NonZero", b.tensor(index))
            columns += [
                b.op("Gather", found, b.constant(i, np.int64), axis=0) for i in range(b.meta(index).dim())
            ]
        else:
            columns.append(b.tensor(index, int64))
    if places != list(range(first, first + len(places))):
        raise NotImplementedError("index tensors with other indices between them")
    # GatherND indexes the first dimensions, so the indexed ones come first and go back afterwards.
    last = first + len(places)
    if first:
        value = b.op("Transpose", value, perm=[*range(first, last), *range(first), *range(last, rank)])
    shape = b.op("Shape", columns[0])
    for each in columns[1:]:
        shape = b.op("Max", shape, b.op("Shape", each)) if _is_aligned(b, tensors) else _broadcast(b, columns)
    stacked = b.op(
        "Concat", *(b.op("Unsqueeze", b.op("Expand", each, shape), b.axes(-1)) for each in columns), axis=-1
    )
    found = b.op("GatherND", value, stacked)
    if not first:
        return found
    count = (
        1
        if any(b.meta(each).dtype == bool_ for _, each in tensors)
        else max(b.meta(each).dim() for _, each in tensors)
    )
    order = [*range(count, count + first), *range(count), *range(count + first, count + rank - len(places))]
    return b.op("Transpose", found, perm=order)


def _is_aligned(b: Builder, tensors: list[tuple[int, Any]]) -> bool:
    """Whether all index tensors have the same number of dimensions."""
    return len({b.meta(each).dim() for _, each in tensors}) == 1


def _broadcast(b: Builder, values: list[str]) -> str:
    """The common shape of several values."""
    total = values[0]
    for each in values[1:]:
        total = b.op("Add", total, each)
    return b.op("Shape", total)


# ---- Writing ----------------------------------------------------------------------------------------------------------------


def _positions(b: Builder, input: Any) -> str:
    """For each element of a tensor its place among all of them."""
    value = b.tensor(input)
    count = b.op("Range", b.constant(0, np.int64), b.op("Size", value), b.constant(1, np.int64))
    return b.op("Reshape", count, b.op("Shape", value))


def replaced(b: Builder, input: Any, positions: str, values: Any, reduction: str | None = None) -> str:
    """A tensor whose elements at these places are replaced by `values`, which are broadcast."""
    dtype = b.meta(input).dtype
    name = b.tensor(input)
    spread = b.op("Expand", b.tensor(values, dtype), b.op("Shape", positions))
    flat, places, updates = (b.reshape(each, [-1]) for each in (name, positions, spread))
    found = b.op("ScatterElements", flat, places, updates, axis=0, reduction=reduction)
    return b.op("Reshape", found, b.op("Shape", name))


@translates("setitem", "__setitem__")
def setitem(b: Builder, input: Any, index: Any, value: Any) -> str:
    if b.is_tensor(index) and b.meta(index).dtype == bool_:
        rank = b.meta(input).dim()
        if not b.is_tensor(value) or b.meta(value).dim() == 0:
            mask = b.tensor(index)
            missing = rank - b.meta(index).dim()
            mask = b.op("Unsqueeze", mask, b.axes(*range(-missing, 0))) if missing else mask
            return b.op("Where", mask, b.tensor(value, b.meta(input).dtype), b.tensor(input))
    return replaced(b, input, _chosen(b, _positions(b, input), b.meta(input).dim(), index), value)


@translates("index_put", "index_put_")
def index_put(b: Builder, input: Any, indices: Any, values: Any, accumulate: bool = False) -> str:
    positions = _chosen(b, _positions(b, input), b.meta(input).dim(), tuple(indices))
    return replaced(b, input, positions, values, "add" if accumulate else None)


@translates("index_add", "index_add_")
def index_add(b: Builder, input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> str:
    positions = b.op("Gather", _positions(b, input), b.tensor(index, int64), axis=dim)
    scaled = b.op("Mul", b.tensor(source), b.constant(alpha, b.meta(source).dtype))
    return replaced(b, input, positions, scaled, "add")


@translates("index_copy", "index_copy_", "index_fill", "index_fill_")
def index_copy(b: Builder, input: Any, dim: int, index: Any, source: Any) -> str:
    return replaced(b, input, b.op("Gather", _positions(b, input), b.tensor(index, int64), axis=dim), source)


@translates("copy_", "copy")
def copy(b: Builder, input: Any, source: Any, non_blocking: bool = False) -> str:
    return b.op("Expand", b.tensor(source, b.meta(input).dtype), b.op("Shape", b.tensor(input)))


@translates("nonzero", "argwhere")
def nonzero(b: Builder, input: Any, *, as_tuple: bool = False) -> Any:
    found = b.op("NonZero", b.tensor(input))
    if not as_tuple:
        return b.op("Transpose", found, perm=[1, 0])
    return tuple(b.op("Gather", found, b.constant(i, np.int64), axis=0) for i in range(b.meta(input).dim()))


@translates("masked_select")
def masked_select(b: Builder, input: Any, mask: Any) -> str:
    shape = _broadcast(b, [b.tensor(input, int64), b.tensor(mask, int64)])
    value, chosen = b.op("Expand", b.tensor(input), shape), b.op("Expand", b.tensor(mask), shape)
    return b.op("Compress", b.reshape(value, [-1]), b.reshape(chosen, [-1]))


@translates("take")
def take(b: Builder, input: Any, index: Any) -> str:
    return b.op("Gather", b.reshape(b.tensor(input), [-1]), b.tensor(index, int64), axis=0)


@translates("diagonal")
def diagonal(b: Builder, input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    known = b.meta(input)
    rows, columns = positive(dim1, known.dim()), positive(dim2, known.dim())
    count = b.result().shape[-1]
    rest = [each for each in range(known.dim()) if each not in (rows, columns)]
    value = b.op("Transpose", b.tensor(input), perm=[rows, columns, *rest])
    first = np.arange(count) + max(-offset, 0)
    second = np.arange(count) + max(offset, 0)
    found = b.op("GatherND", value, b.constant(np.stack([first, second], -1), np.int64))
    return b.op("Transpose", found, perm=[*range(1, len(rest) + 1), 0])


@translates("index_select")
def index_select(b: Builder, input: Any, dim: int, index: Any) -> str:
    return b.op("Gather", b.tensor(input), b.tensor(index, int64), axis=dim)


@translates("gather", "take_along_dim")
def gather(b: Builder, input: Any, dim: int, index: Any, **_: Any) -> str:
    return b.op("GatherElements", b.tensor(input), b.tensor(index, int64), axis=dim)


@translates("scatter", "scatter_")
def scatter(
    b: Builder,
    input: Any,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> str:
    kinds = {None: None, "add": "add", "multiply": "mul"}
    return _scattered(b, input, dim, index, value if src is None else src, kinds[reduce])


def _scattered(b: Builder, input: Any, dim: int, index: Any, src: Any, reduction: str | None) -> str:
    positions, source = b.tensor(index, int64), b.tensor(src, b.result().dtype)
    if not b.is_tensor(src):
        source = b.op("Expand", source, b.op("Shape", positions))
    elif b.meta(src).shape != b.meta(index).shape:  # elements beyond the index are not used
        axes = list(range(b.meta(index).dim()))
        ends = b.op("Shape", positions)
        source = b.op("Slice", source, b.axes(*[0] * len(axes)), ends, b.axes(*axes))
    return b.op("ScatterElements", b.tensor(input), positions, source, axis=dim, reduction=reduction)


@translates("scatter_add", "scatter_add_")
def scatter_add(b: Builder, input: Any, dim: int, index: Any, src: Any) -> str:
    return _scattered(b, input, dim, index, src, "add")


@translates("scatter_reduce", "scatter_reduce_")
def scatter_reduce(
    b: Builder, input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> str:
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in kinds or not include_self:
        raise NotImplementedError(f"scatter_reduce with reduce={reduce!r}, include_self={include_self}")
    return _scattered(b, input, dim, index, src, kinds[reduce])


@translates("embedding")
def embedding(b: Builder, input: Any, weight: Any, *_: Any, **__: Any) -> str:
    return b.op("Gather", b.tensor(weight), b.tensor(input, int64), axis=0)


@translates("one_hot")
def one_hot(b: Builder, tensor: Any, num_classes: int = -1) -> str:
    return b.op(
        "OneHot",
        b.tensor(tensor),
        b.constant(b.result().shape[-1], np.int64),
        b.constant([0, 1], np.int64),
        axis=-1,
    )
