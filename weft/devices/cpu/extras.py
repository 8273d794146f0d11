"""Kernels that only the CPU has, because composing other kernels is much slower there: see `Backend.extras`.

Arrays are small tables on the host; tensors come as addresses, contiguous.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...core.dtype import DType, from_numpy_dtype
from ...core.symbols import per_plan
from ...engine import workers
from ...engine.alignments import alignment_steps
from ...engine.bilinear import bilinear_code
from ...engine.bisection import search_code
from ...engine.blending import CHANNELS, POINTS, blending_code
from ...engine.byte_bags import byte_bags
from ...engine.byte_convolution import byte_convolution as launch_convolution
from ...engine.byte_gemm import byte_products as launch_products
from ...engine.byte_tiles import Epilogue
from ...engine.counting import TABLES, count_code
from ...engine.depthwise import Places
from ...engine.depthwise import depthwise as launch_depthwise
from ...engine.kernel import SHARED_BYTES, Code, Launch, block, sharing
from ...engine.merging import merge_code
from ...engine.packed import packed_products
from ...engine.radix import element_bytes, order_code, room_bytes
from ...engine.ranks import rank_code
from ...engine.resample import resample_code
from ...engine.resample_rows import blocks_of, groups_of, resample_rows_code
from ...engine.selection import is_few, least_code
from ...engine.short_rows import MOST_KEYS
from ...engine.short_rows import order_code as counted_code
from ...engine.steps import Steps
from ...engine.storages import allocator
from ...engine.weight_gemm import times_bytes, times_nibbles
from .sliding import sliding_products, sliding_sums
from .sparse import (
    sparse_columns,
    sparse_majors,
    sparse_pairs_count,
    sparse_pairs_fill,
    sparse_pairs_sampled,
    sparse_pointers,
    sparse_rows,
    sparse_sampled,
)


def resample(
    result: int,
    input: int,
    dtype: DType,
    shape: tuple[int, int, int, int],
    bounds: np.ndarray,
    weights: np.ndarray,
    bits: int,
) -> None:
    """Weighted sums of neighbours: see `engine/resample.py`.

    shape: of result and input seen as [outer, size or own, inner], which are (outer, size, own, inner). bounds: first and
    count [size, 2]. weights: [size, taps], of integers with `bits` behind the point for bytes.
    """
    outer, size, own, inner = shape
    taps = weights.shape[1]
    work = outer * size * inner * dtype.itemsize * (1 + taps)
    blocks = blocks_of(dtype, outer, own, bounds) if inner == 1 else None
    if blocks is not None:
        meta = np.array([size, own, taps, bits, outer, len(blocks)], np.int64)
        tables = [each.ctypes.data for each in (weights, bounds, blocks, meta)]
        sharing(resample_rows_code(dtype), work)(result, input, *tables, groups_of(dtype, outer))
        return
    meta = np.array([size, own, inner, taps, bits, outer], np.int64)
    entry = sharing(resample_code(dtype, inner == 3), work)
    entry(result, input, weights.ctypes.data, bounds.ctypes.data, meta.ctypes.data, outer * size)


# Bytes of channels that PyTorch takes at once; it adds up their pixels in another order than those of the rest.
_VECTOR = 32


def bilinear(
    result: int,
    image: int,
    dtype: DType,
    images: int,
    channels: int,
    channels_last: bool,
    rows: tuple[int, np.ndarray, np.ndarray],
    columns: tuple[int, np.ndarray, np.ndarray],
) -> None:
    """Resize both dims of images at once. rows, columns: the input's size, the two neighbours [size, 2], their weights."""
    (height, row_places, row_weights), (width, column_places, column_weights) = rows, columns
    new_height, new_width = len(row_places), len(column_places)
    nbytes = images * channels * new_height * new_width * dtype.itemsize
    whole = channels - channels % (_VECTOR // dtype.itemsize)
    for order, begin, end in (("vector", 0, whole), ("single", whole, channels)):
        if begin < end:
            meta = np.array([channels, height, width, new_height, new_width, begin, end], np.int64)
            sharing(bilinear_code(dtype, order, channels_last), nbytes * 4)(
                result,
                image,
                row_places.ctypes.data,
                row_weights.ctypes.data,
                column_places.ctypes.data,
                column_weights.ctypes.data,
                meta.ctypes.data,
                images * new_height,
            )


def blend(
    result: int,
    planes: int,
    positions: int,
    weights: int,
    dtype: DType,
    shape: tuple[int, int, int, int, int],
    fused: bool,
) -> None:
    """Weighted sums of elements of planes: see `engine/blending.py`. shape: images, channels, elements of a plane, taps, points."""
    images, channels, size, taps, points = shape
    groups = -(-channels // CHANNELS)
    meta = np.array([channels, size, points, groups], np.int64)
    # The elements of a tap lie apart, so that loading one of them takes about as long as moving 16 bytes.
    work = images * channels * points * taps * 16
    entry = sharing(blending_code(dtype, taps, fused), work)
    entry(result, planes, positions, weights, meta.ctypes.data, images * groups * -(-points // POINTS))


def orders_rows(n: int, k: int) -> bool:
    """Whether `ordered_rows` is the fastest way to the first k positions of the order of rows of n keys."""
    return _is_counted(n, k) or k == n < 1 << 32


def _is_counted(n: int, k: int) -> bool:
    """Whether the place of a key is found by comparisons; else the whole row is sorted."""
    return n <= MOST_KEYS or is_few(n, k)


def ordered_rows(bits: int, rows: int, n: int, k: int) -> tuple[Launch, int]:
    """The first k positions of the stable order of rows of n unsigned keys: `entry(order, keys, room, meta, count)`.

    Returns the launch and the bytes of the room. Without a room, `entry(order, keys, meta, count)`.
    """
    if not _is_counted(n, k):
        return _sorted_rows(bits, rows, n)
    meta = block((n, k))
    entry = sharing(_rows_code(bits, n, k), rows * n * bits // 4)
    return Launch(entry, meta.address, rows, meta), 0


@per_plan
def _rows_code(bits: int, n: int, k: int) -> Code:
    return least_code(bits) if is_few(n, k) else counted_code(bits)


def at_rank(key: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """The first position of the key at `rank` of each row along the last axis; ranks have a last axis of size 1."""
    n = key.shape[-1]
    found, sizes = np.empty(rank.shape, np.int64), np.array((n,))
    key, rank = np.ascontiguousarray(key), np.ascontiguousarray(rank, np.int64)
    entry = sharing(rank_code(8 * key.itemsize), key.nbytes * 8 * key.itemsize)
    entry(found.ctypes.data, rank.ctypes.data, key.ctypes.data, sizes.ctypes.data, rank.size)
    return found


def _sorted_rows(bits: int, rows: int, n: int) -> tuple[Launch, int]:
    """Return the stable order of rows of n unsigned keys, `entry(order, keys, room, meta, count)`, and the room's bytes."""
    parts = min(rows, workers.get_num_threads())
    meta = block((n, rows, parts))
    work = rows * n * bits // 8 * element_bytes(bits)
    entry = sharing(order_code(bits), work if parts > 1 else 0)
    return Launch(entry, meta.address, parts, meta), parts * room_bytes(bits, n)


def stable_order(key: np.ndarray) -> np.ndarray:
    """Indices that sort the last axis of unsigned integers; equal keys stay in their order."""
    n = key.shape[-1]
    if key.itemsize < 8 and n >= 2**32:
        key = key.astype(np.uint64)
    key = np.ascontiguousarray(key)
    order = np.empty(key.shape, np.int64)
    launch, nbytes = _sorted_rows(8 * key.itemsize, key.size // n, n)
    room = allocator(nbytes)()
    launch.entry(order.ctypes.data, key.ctypes.data, room.ptr, launch.meta, launch.count)  # type: ignore[misc]
    return order


def search(sequences: np.ndarray, values: np.ndarray, right: bool, dtype: DType) -> np.ndarray:
    """Where binary searches for the values end: in one sequence [n], or each row of values [..., m] in its own one [..., n].

    Both are contiguous float32, float64 or int64. `right`: after equal elements. dtype: of the result, int32 or int64.
    """
    n = sequences.shape[-1]
    if n >= 2**31 and values.itemsize == 4:
        sequences, values = sequences.astype(np.float64), values.astype(np.float64)
    found = np.empty(values.shape, dtype.numpy)
    one = sequences.ndim == 1
    group = _SEARCHED_TOGETHER if one else values.shape[-1]
    groups = -(-values.size // group)
    meta = np.array((n, n.bit_length(), group, values.size, 0 if one else n * sequences.itemsize))
    code = search_code(from_numpy_dtype(values.dtype), right, dtype)
    entry = sharing(code, values.nbytes * (1 + n.bit_length()))
    entry(found.ctypes.data, sequences.ctypes.data, values.ctypes.data, meta.ctypes.data, groups)
    return found


def byte_products(epilogue: Epilogue, sizes: tuple[int, int, int], groups: int) -> Callable[..., None]:
    """Products of bytes, as a function of the operands of the kernel: see `engine/byte_gemm.py`. The rows are contiguous."""
    return _launching(launch_products(epilogue, sizes, groups * sizes[1], groups * sizes[2], groups))


def byte_convolution(
    epilogue: Epilogue, sizes: tuple[int, int, int, int], places: Places
) -> Callable[..., None]:
    """A convolution of bytes, as a function of the operands of the kernel: see `engine/byte_convolution.py`.

    sizes: images, channels, columns and groups.
    """
    return _launching(_byte_convolution(epilogue, sizes, places, workers.get_num_threads()))


def _launching(launch: Launch) -> Callable[..., None]:
    """A function of the operands of a launch, which keeps the memory that it reads."""

    def run(*operands: float) -> None:
        assert launch.entry is not None
        launch.entry(*operands, launch.meta, launch.count)

    return run


@functools.lru_cache(maxsize=256)  # a launch has 8 bytes for each position and group
def _byte_convolution(
    epilogue: Epilogue, sizes: tuple[int, int, int, int], places: Places, threads: int
) -> Launch:
    return launch_convolution(epilogue, *sizes, places)


def depthwise(epilogue: Epilogue, images: int, channels: int, places: Places) -> Callable[..., None]:
    """A convolution of bytes with a group for each channel, as a function of the operands of the kernel: see `engine/depthwise.py`."""
    return _launching(_depthwise(epilogue, images, channels, places, workers.get_num_threads()))


@functools.lru_cache(maxsize=1024)
def _depthwise(epilogue: Epilogue, images: int, channels: int, places: Places, threads: int) -> Launch:
    return launch_depthwise(epilogue, images, channels, places)


def _cached(make: Callable[..., Launch]) -> Callable:
    """A function of sizes and addresses that launches what `make` makes of the sizes."""

    @functools.lru_cache(maxsize=1024)
    def launch(sizes: tuple[int, ...], threads: int) -> Launch:
        return make(*sizes)

    def run(sizes: tuple[int, ...], *addresses: int) -> None:
        found = launch(sizes, workers.get_num_threads())
        assert found.entry is not None
        found.entry(*addresses, found.meta, found.count)

    return run


# Values: the least number that a thread searches for.
_SEARCHED_TOGETHER = 1024


def count(values: np.ndarray, low: int, span: int) -> np.ndarray:
    """How often each of `span` integers from `low` on occurs, and as the last element how many other values there are."""
    values = np.ascontiguousarray(values)
    parts, ways = 1, 1
    if span <= _FEW_COUNTED:
        parts = max(1, min(workers.get_num_threads(), values.nbytes // SHARED_BYTES))
        ways = TABLES
    tables = np.zeros((parts, ways, span + 1), np.int64)
    step = tables.strides[1] if ways > 1 else 0
    meta = np.array((values.size, parts, low % 2**64, span, step, tables.strides[0]), np.uint64)
    entry = sharing(count_code(from_numpy_dtype(values.dtype)), values.nbytes if parts > 1 else 0)
    entry(tables.ctypes.data, values.ctypes.data, meta.ctypes.data, parts)
    return tables.sum((0, 1)) if parts * ways > 1 else tables[0, 0]


# Integers: for as many as these, each thread has tables of its own, which stay in the first-level cache.
_FEW_COUNTED = 1024


def alignments(
    paths: int, emitted: int, start: int, skips: int, shape: tuple[int, int, int], dtype: DType
) -> None:
    """Compute paths [steps + 1, batch, 2 + states]: see `engine/alignments.py`. shape: steps, batch, states."""
    launch = alignment_steps(*shape, dtype)
    assert launch.entry is not None
    launch.entry(paths, emitted, start, skips, launch.meta, launch.count)


def merge(left: np.ndarray, right: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Merge two vectors of int64: the size of the merged one, and the place of each element in it. See `engine/merging.py`."""
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    size, meta = np.empty(1, np.int64), np.array((len(left), len(right)))
    places = np.empty(len(left), np.int64), np.empty(len(right), np.int64)
    arrays = *places, size, left, right
    merge_code().entry(*[each.ctypes.data for each in arrays], meta.ctypes.data, 1)
    return int(size[0]), *places


EXTRAS: dict[str, Callable] = {
    "alignments": alignments,
    "resample": resample,
    "bilinear": bilinear,
    "blend": blend,
    "byte_products": byte_products,
    "byte_convolution": byte_convolution,
    "depthwise": depthwise,
    "count": count,
    "at_rank": at_rank,
    "merge": merge,
    "search": search,
    "ordered_rows": ordered_rows,
    "orders_rows": orders_rows,
    "stable_order": stable_order,
    "sliding_sums": sliding_sums,
    "sliding_products": sliding_products,
    "times_bytes": _cached(times_bytes),
    "times_nibbles": _cached(times_nibbles),
    "byte_bags": _cached(byte_bags),
    "packed_products": packed_products,
    "steps_as_one": Steps.as_one,
    "sparse_rows": sparse_rows,
    "sparse_columns": sparse_columns,
    "sparse_sampled": sparse_sampled,
    "sparse_pointers": sparse_pointers,
    "sparse_majors": sparse_majors,
    "sparse_pairs_count": sparse_pairs_count,
    "sparse_pairs_fill": sparse_pairs_fill,
    "sparse_pairs_sampled": sparse_pairs_sampled,
}
