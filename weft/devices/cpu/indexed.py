"""Gathers, scatters and packs by a mask as compiled kernels."""

from __future__ import annotations

import functools
import math
from array import array as buffer
from collections.abc import Callable, Sequence

from ...core.dtype import DType
from ...core.templates import add_atoms
from ...engine import workers
from ...engine.indexed import IndexedKernel, PackKernel, indexed_ir, pack_ir
from ...engine.kernel import (
    PARALLEL_BYTES,
    SHARED_BYTES,
    Code,
    IndexedLaunch,
    Indexing,
    block,
    compile_loop,
    meta_block,
    optimize,
    sharing,
    stride_classes,
)
from ...engine.loops import BROADCAST, Result, element_size
from ...engine.memory import FENCE

faults = buffer("q", [0])  # kernels count here
_FAULTS = faults.buffer_info()[0]
add_atoms(buffer)


# Bytes that the indices reach over. A gather within less computes displacements in blocks and then moves elements one by one. Beyond,
# vectors that gather elements wait for more of them at once. Measured on AMD Zen 4, one thread, 10^6 float32: within rows of 4 KB
# 0.8 ms and 1.5 ms, within 4 MB 1.8 ms and 1.1 ms.
_NEAR = 1 << 18


# Elements: an innermost loop that is not longer costs as much as its call.
_SHORT = 1 if FENCE else 16


def _apart_outermost(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], one_index: bool
) -> tuple[Sequence[int], Sequence[Sequence[int]]]:
    """The loop with a dim of the target (operand 0) as the outermost one, or a part of it, so that workers write apart.

    Elements that meet have the same position in such a dim, so that their order stays.

    The innermost dim is not divided if it has `one_index`, because such a loop waits for memory, and workers would write to one cache
    line of each row at the same time. Measured on AMD Zen 4: index_add of 1000 rows of 1000 float32 takes 103 us, divided 138 us.
    """
    target = strides[0]
    dim = next((dim for dim, stride in enumerate(target) if stride), None)
    if not dim:  # there is none, or it is the outermost one
        return sizes, strides
    threads = workers.get_num_threads()
    parts = next((parts for parts in range(threads, 64) if sizes[dim] % parts == 0), 1)
    size = sizes[dim] // parts
    if parts == 1 or (dim == len(sizes) - 1 and (one_index or size < _SHORT)):
        return sizes, strides
    sizes = (parts, *sizes[:dim], size, *sizes[dim + 1 :])
    return sizes, tuple((row[dim] * size, *row) for row in strides)


@functools.lru_cache(maxsize=1024)
def _compiled(kernel: IndexedKernel) -> Code:
    return compile_loop(indexed_ir(kernel), len(kernel.strides), "i")


def prepare_indexed(
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
    indexing: Indexing,
) -> IndexedLaunch:
    """See `devices/base.py`."""
    itemsizes = [*map(element_size, results), *(dtype.itemsize for dtype in operand_dtypes)]
    classes = stride_classes(sizes[-1], strides, itemsizes)
    indices, displaced, in_order = len(indexing.steps), indexing.displaced, indexing.in_order
    work = math.prod(sizes) * sum(itemsizes)
    one_index = set(classes[-indices:]) == {BROADCAST}  # it serves the whole inner loop
    if 0 in displaced and indexing.apart and work >= SHARED_BYTES:
        sizes, strides = _apart_outermost(sizes, strides, one_index)
    if in_order and classes[0] != BROADCAST and one_index:
        in_order = False  # the elements of the inner loop differ
    reach = sum(size * abs(step) for size, step in zip(indexing.sizes, indexing.steps, strict=True))
    in_blocks = bool(results) and not one_index and (0 in displaced or reach < _NEAR)
    code = _compiled(
        IndexedKernel(
            tuple(results),
            tuple(operand_dtypes),
            classes,
            indices,
            displaced,
            indexing.wrap,
            in_order,
            in_blocks,
        )
    )
    pairs = zip(indexing.sizes, indexing.steps, strict=True)
    table = block((_FAULTS, *(value for pair in pairs for value in pair)))
    meta = meta_block(sizes, strides)
    # Two writes through indices may meet in one element, unless the outermost dim is one of the target.
    shared = 0 not in displaced or (indexing.apart and strides[0][0])
    if work >= PARALLEL_BYTES:
        optimize(code)
    return IndexedLaunch(
        sharing(code, work if shared else 0), table.address, meta.address, sizes[0], (table, meta)
    )


@functools.lru_cache(maxsize=64)
def _pack_code(nbytes: int, itemsize: int, spread: bool) -> Code:
    return compile_loop(pack_ir(PackKernel(nbytes, itemsize, spread)), 3, "ii")


def prepare_pack(
    nbytes: int, itemsize: int, spread: bool, sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Callable[[int, int, int, int], int]:
    """See `devices/base.py`."""
    code = _pack_code(nbytes, itemsize, spread)
    if math.prod(sizes) * nbytes >= PARALLEL_BYTES:
        optimize(code)
    entry = code.entry
    meta = meta_block(sizes, strides)
    outermost = sizes[0]
    # A kernel that packs writes one element behind the last. One that spreads must not read there.
    behind = 1 if spread else 0

    def launch(target: int, source: int, mask: int, room: int) -> int:
        cursor = buffer("q", (0,))
        entry(target, source, mask, cursor.buffer_info()[0], room - behind, meta.address, outermost)
        return cursor[0]

    return launch
