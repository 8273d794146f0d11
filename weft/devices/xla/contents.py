"""Views of the contents of blocks, for functions that JAX traces.

A content is a one-dimensional array, whose dtype is that of the elements written last. Elements of another dtype are the same bits.
Where strides are nested, as in slices, transposes and broadcasts, a view is slices and reshapes of the content, which XLA computes
together with what uses them. Other views, such as overlapping windows, are gathers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtype import DType, bool_

_BYTE = np.dtype(np.uint8)
# The number of a block among those of a launch, and a position in its bytes. The position may be a number that the compiled function gets; then
# it is a multiple of the element's size.
Place = tuple[int, Any]


class Contents:
    """The contents of the blocks of one launch. None stands for uninitialised bytes."""

    def __init__(self, arrays: Sequence[Any], nbytes: Sequence[int]):
        self.arrays, self.nbytes = list(arrays), nbytes

    def whole(self, block: int, dtype: np.dtype) -> Any:
        """The content of a block as elements of a dtype; zeros follow if it ends within an element."""
        count = -(-self.nbytes[block] // dtype.itemsize)
        array = self.arrays[block]
        return jnp.zeros(count, dtype) if array is None else recast(array, dtype)

    def load(self, place: Place, dtype: DType, sizes: Sequence[int], strides: Sequence[int]) -> Any:
        """The elements that lie `strides` bytes apart. Any byte but 0 is true."""
        if dtype is bool_:
            return self._load(place, _BYTE, sizes, strides) != 0
        return self._load(place, dtype.numpy, sizes, strides)

    def _load(self, place: Place, dtype: np.dtype, sizes: Sequence[int], strides: Sequence[int]) -> Any:
        block, start = place
        size = dtype.itemsize
        if 0 in sizes:
            return jnp.zeros(tuple(sizes), dtype)
        if not _is_aligned(start, strides, size):
            octets = self._load(place, _BYTE, (*sizes, size), (*strides, 1))
            return lax.bitcast_convert_type(octets, dtype)
        steps = [step // size for step in strides]
        content, first = self.whole(block, dtype), start // size
        if not isinstance(start, int):
            content, first, _ = _span(content, first, sizes, steps)
        return take(content, first, sizes, steps)

    def store(self, place: Place, parts: Sequence[Any], sizes: Sequence[int], strides: Sequence[int]) -> None:
        """Write elements that lie `strides` bytes apart. They have one part, or a real and an imaginary one."""
        parts = [jnp.broadcast_to(part, tuple(sizes)) for part in parts]
        if len(parts) == 1:
            self._store(place, parts[0], sizes, strides)
        else:
            whole = jnp.stack(parts, -1)
            self._store(place, whole, (*sizes, len(parts)), (*strides, whole.dtype.itemsize))

    def _store(self, place: Place, values: Any, sizes: Sequence[int], strides: Sequence[int]) -> None:
        if values.dtype == np.bool_:
            values = values.astype(_BYTE)
        block, start = place
        size = values.dtype.itemsize
        if size > 1 and (self.nbytes[block] % size or not _is_aligned(start, strides, size)):
            values = lax.bitcast_convert_type(values, _BYTE)
            self._store(place, values, (*sizes, size), (*strides, 1))
            return
        steps = [step // size for step in strides]
        content, first = self.whole(block, values.dtype), start // size
        if isinstance(start, int):
            self.arrays[block] = put(content, first, sizes, steps, values)
            return
        span, own, begin = _span(content, first, sizes, steps)
        span = put(span, own, sizes, steps, values)
        self.arrays[block] = lax.dynamic_update_slice_in_dim(content, span, begin, 0)


def _is_aligned(start: Any, strides: Sequence[int], size: int) -> bool:
    starts = (start,) if isinstance(start, int) else ()
    return size == 1 or not any(distance % size for distance in (*starts, *strides))


def _span(content: Any, start: Any, sizes: Sequence[int], steps: Sequence[int]) -> tuple[Any, int, Any]:
    """The part of a content with all elements of a view, where the view starts in it, and where it begins in the content."""
    reach = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
    own = -sum(distance for distance in reach if distance < 0)
    length = own + sum(distance for distance in reach if distance > 0) + 1
    return lax.dynamic_slice_in_dim(content, start - own, length), own, start - own


def covers(start: int, sizes: Sequence[int], strides: Sequence[int], itemsize: int, nbytes: int) -> bool:
    """Whether elements fill a block of so many bytes."""
    expected = itemsize
    for stride, size in sorted((stride, size) for size, stride in zip(sizes, strides) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return start == 0 and expected == nbytes


def recast(array: Any, dtype: np.dtype) -> Any:
    """The bits of a one-dimensional array as elements of another dtype; zeros follow if it ends within an element."""
    old, new = array.dtype.itemsize, dtype.itemsize
    if array.dtype == dtype:
        return array
    if new > old:
        array = jnp.pad(array, (0, -array.size % (new // old))).reshape(-1, new // old)
    return lax.bitcast_convert_type(array, dtype).reshape(-1)


# ---- Strides ---------------------------------------------------------------------------------------------------------
# Starts and steps count elements.

Dims = list[tuple[int, int]]  # sizes and steps, of descending steps


class _View:
    """A view as its dims that move, ordered so that steps descend, and what leads from them to all dims."""

    def __init__(self, start: int, sizes: Sequence[int], steps: Sequence[int]):
        moving = [k for k, (size, step) in enumerate(zip(sizes, steps)) if size > 1 and step]
        self.sizes = tuple(sizes)
        self.start = start + sum((sizes[k] - 1) * steps[k] for k in moving if steps[k] < 0)
        self.order = sorted(moving, key=lambda k: -abs(steps[k]))
        self.dims: Dims = [(sizes[k], abs(steps[k])) for k in self.order]
        self.reversed = [place for place, k in enumerate(self.order) if steps[k] < 0]
        self.is_nested = all(
            _reach(self.dims[place + 1 :]) < step for place, (_, step) in enumerate(self.dims)
        )

    def expand(self, values: Any) -> Any:
        """The elements of all dims, from those of the dims that move."""
        values = lax.rev(values, self.reversed) if self.reversed else values
        values = lax.transpose(values, sorted(range(len(self.order)), key=self.order.__getitem__))
        return lax.broadcast_in_dim(values, self.sizes, sorted(self.order))

    def reduce(self, values: Any) -> Any:
        """The reverse of `expand`. Of the elements that share a place, the last one counts."""
        values = values[tuple(slice(None) if k in self.order else -1 for k in range(len(self.sizes)))]
        logical = sorted(self.order)
        values = lax.transpose(values, [logical.index(k) for k in self.order])
        return lax.rev(values, self.reversed) if self.reversed else values


def _reach(dims: Dims) -> int:
    return sum((size - 1) * step for size, step in dims)


def take(content: Any, start: int, sizes: Sequence[int], steps: Sequence[int]) -> Any:
    """The elements of a view."""
    view = _View(start, sizes, steps)
    if view.is_nested:
        return view.expand(_cut(content, view.start, view.dims))
    return jnp.broadcast_to(content[start + grid(sizes, steps)], view.sizes)


def put(content: Any, start: int, sizes: Sequence[int], steps: Sequence[int], values: Any) -> Any:
    """The content with the elements of a view replaced."""
    view = _View(start, sizes, steps)
    values = view.reduce(values)
    if view.is_nested:
        return _replace(content, view.start, view.dims, values)
    return content.at[view.start + grid(*zip(*view.dims))].set(values)


def grid(sizes: Sequence[int], steps: Sequence[int]) -> Any:
    """How far each element lies behind the first one; size 1 along dims in which none lies farther."""
    places = jnp.zeros((1,) * len(sizes), np.int64)
    for dim, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        if step and size > 1:
            along = [size if k == dim else 1 for k in range(len(sizes))]
            places = places + lax.broadcasted_iota(np.int64, along, dim) * step
    return places


def _section(start: int, dims: Dims) -> tuple[int, int, int]:
    """Where the rows of the outermost dim begin and end, and where the first element lies in the first row.

    Rows are as long as a step. They may end behind the content, unless they are cut so that this can be avoided.
    """
    (size, step), *inner = dims
    first = start % step
    if first + _reach(inner) >= step:
        first = 0
    return start - first, start - first + size * step, first


def _cut(x: Any, start: int, dims: Dims) -> Any:
    """The elements of nested dims along the last axis."""
    if not dims:
        return lax.index_in_dim(x, start, x.ndim - 1, keepdims=False)
    if len(dims) == 1:
        size, step = dims[0]
        return lax.slice_in_dim(x, start, start + (size - 1) * step + 1, step, x.ndim - 1)
    begin, end, first = _section(start, dims)
    rows = _rows(x, begin, end, dims[0])
    return _cut(rows, first, dims[1:])


def _replace(x: Any, start: int, dims: Dims, values: Any) -> Any:
    """Write the elements of nested dims along the last axis."""
    if not dims:
        return _with(x, start, values[..., None])
    if len(dims) == 1 and dims[0][1] == 1:
        return _with(x, start, values)
    length = x.shape[-1]
    begin, end, first = _section(start, dims)
    rows = _rows(x, begin, end, dims[0])
    rows = _replace(rows, first, dims[1:], values)
    flat = rows.reshape(*x.shape[:-1], math.prod(dims[0]))
    return _with(x, begin, lax.slice_in_dim(flat, 0, min(length, end) - begin, axis=x.ndim - 1))


def _rows(x: Any, begin: int, end: int, shape: tuple[int, int]) -> Any:
    """The elements from `begin` to `end` of the last axis, some of which may lie behind its end, as rows."""
    behind = end - x.shape[-1]
    if behind > 0:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, behind)])
    return lax.slice_in_dim(x, begin, end, axis=x.ndim - 1).reshape(*x.shape[:-1], *shape)


def _with(x: Any, start: int, values: Any) -> Any:
    if values.shape == x.shape:
        return values
    return lax.dynamic_update_slice_in_dim(x, values, start, x.ndim - 1)
