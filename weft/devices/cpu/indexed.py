"""Gather, scatter and packing by a mask as compiled kernels."""

from __future__ import annotations

import functools
import math
from array import array as buffer
from collections.abc import Callable, Sequence

from ...core.dtype import DType
from ...engine.indexed import IndexedKernel, PackKernel, indexed_ir, pack_ir
from ...engine.kernel import Code, IndexedLaunch, Indexing, compile_loop, sharing, stride_class
from ...engine.loops import BROADCAST, Result, element_size, meta_words

faults = buffer("q", [0])  # kernels count here
_FAULTS = faults.buffer_info()[0]


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
    classes = "".join(stride_class(row[-1], size) for row, size in zip(strides, itemsizes, strict=True))
    indices = len(indexing.steps)
    in_order = indexing.in_order
    if in_order and classes[0] != BROADCAST and set(classes[-indices:]) == {BROADCAST}:
        in_order = False  # one index serves the whole inner loop, whose elements therefore differ
    displaced = indexing.displaced
    code = _compiled(
        IndexedKernel(
            tuple(results), tuple(operand_dtypes), classes, indices, displaced, indexing.wrap, in_order
        )
    )
    pairs = zip(indexing.sizes, indexing.steps, strict=True)
    table = buffer("q", [_FAULTS, *(value for pair in pairs for value in pair)])
    meta = buffer("q", meta_words(sizes, strides))
    # Writes through indices stay on one thread, because two of them may meet in one element.
    work = 0 if 0 in displaced else math.prod(sizes) * sum(itemsizes)
    return IndexedLaunch(
        sharing(code, work), table.buffer_info()[0], meta.buffer_info()[0], sizes[0], (table, meta)
    )


@functools.lru_cache(maxsize=64)
def _pack_code(itemsize: int, spread: bool) -> Code:
    return compile_loop(pack_ir(PackKernel(itemsize, spread)), 3, "ii")


def prepare_pack(
    itemsize: int, spread: bool, sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Callable[[int, int, int, int], int]:
    """See `devices/base.py`."""
    entry = _pack_code(itemsize, spread).entry
    meta = buffer("q", meta_words(sizes, strides))
    outermost = sizes[0]
    # A kernel that packs writes one element behind the last. One that spreads must not read there.
    behind = 1 if spread else 0

    def launch(target: int, source: int, mask: int, room: int) -> int:
        cursor = buffer("q", (0,))
        entry(
            target,
            source,
            mask,
            cursor.buffer_info()[0],
            room - behind,
            meta.buffer_info()[0],
            outermost,
        )
        return cursor[0]

    return launch
