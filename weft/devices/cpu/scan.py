"""Scans as compiled kernels."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ...core.dtype import DType
from ...engine.column_scan import ColumnScan
from ...engine.kernel import (
    PARALLEL_BYTES,
    SHARED_BYTES,
    Code,
    Launch,
    block,
    compile_row,
    meta_block,
    optimize,
    sharing,
    stride_class,
    stride_classes,
)
from ...engine.loops import CONTIGUOUS, element_size
from ...engine.monoid import Monoid
from ...engine.scan import ScanKernel, scan_ir


@functools.lru_cache(maxsize=1024)
def _side_by_side(kernel: ColumnScan) -> Code:
    return compile_row(kernel.ir(), len(kernel.strides), "i", vectorize=False)


@functools.lru_cache(maxsize=1024)
def _compiled(kernel: ScanKernel) -> Code:
    return compile_row(scan_ir(kernel), len(kernel.strides), "")


def prepare_scan(
    monoid: Monoid, operand_dtypes: Sequence[DType], sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Launch:
    """See `devices/base.py`."""
    itemsizes = [*map(element_size, monoid.finish), *(dtype.itemsize for dtype in operand_dtypes)]
    if len(sizes) > 1:
        across = "".join(stride_class(row[-2], size) for row, size in zip(strides, itemsizes, strict=True))
        along = "".join(stride_class(row[-1], size) for row, size in zip(strides, itemsizes, strict=True))
        kernel = ColumnScan(monoid, tuple(operand_dtypes), across)
        in_vectors = monoid.exact and set(along) == {CONTIGUOUS}
        if sizes[-2] >= kernel.lanes and not in_vectors:
            return _prepare_side_by_side(kernel, itemsizes, sizes, strides)
    classes = stride_classes(sizes[-1], strides, itemsizes)
    code = _compiled(ScanKernel(monoid, tuple(operand_dtypes), classes))
    meta = meta_block(sizes, strides)
    rows = len(sizes) > 1 and sizes[0] > 1  # that workers can share
    moved = sum(itemsizes) * math.prod(sizes)
    if moved >= PARALLEL_BYTES:
        optimize(code)
    return Launch(sharing(code, moved if rows else 0), meta.address, sizes[0], meta)


def _prepare_side_by_side(
    kernel: ColumnScan, itemsizes: Sequence[int], sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Launch:
    code = _side_by_side(kernel)
    meta = meta_block(sizes[:-1], [row[:-1] for row in strides])
    scanned = block((sizes[-1], *(row[-1] for row in strides)))
    grain = kernel.lanes if len(sizes) == 2 else 1
    moved = sum(itemsizes) * math.prod(sizes)
    # The work comes first, so that one template serves all small sizes.
    entry = sharing(code, moved, grain) if moved >= SHARED_BYTES and sizes[0] > grain else code.entry
    given = scanned.address

    def launch(*arguments: int) -> None:
        entry(*arguments[:-2], given, *arguments[-2:])

    return Launch(launch, meta.address, sizes[0], (meta, scanned))
