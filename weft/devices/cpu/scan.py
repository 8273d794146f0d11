"""Scans as compiled kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...core.dtype import DType
from ...engine.kernel import Code, Launch, compile_row, sharing, stride_class
from ...engine.loops import element_size, meta_words
from ...engine.monoid import Monoid
from ...engine.scan import ScanKernel, scan_ir


@functools.lru_cache(maxsize=1024)
def _compiled(kernel: ScanKernel) -> Code:
    return compile_row(scan_ir(kernel), len(kernel.strides), "")


def prepare_scan(
    monoid: Monoid, operand_dtypes: Sequence[DType], sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Launch:
    """See `devices/base.py`."""
    itemsizes = [*map(element_size, monoid.finish), *(dtype.itemsize for dtype in operand_dtypes)]
    classes = "".join(stride_class(row[-1], size) for row, size in zip(strides, itemsizes, strict=True))
    code = _compiled(ScanKernel(monoid, tuple(operand_dtypes), classes))
    meta = np.array(meta_words(sizes, strides), np.int64)
    rows = len(sizes) > 1 and sizes[0] > 1  # that workers can share
    work = sum(itemsizes) * int(np.prod(sizes)) if rows else 0
    return Launch(sharing(code, work), meta.ctypes.data, sizes[0], meta)
