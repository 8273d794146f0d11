"""Products with a compressed sparse matrix on the CPU: see `engine/sparse_products.py`. Tensors come as addresses, contiguous."""

from __future__ import annotations

import numpy as np

from ...core.dtype import DType
from ...engine.kernel import sharing
from ...engine.sparse_products import SparseMatrix, columns_code, rows_code, sampled_code, vector_code

# Parts that the majors are cut into, with about equally many entries each. Threads take neighbouring parts.
_PARTS = 64


def sparse_rows(result: int, matrix: SparseMatrix, dense: int, width: int, dtype: DType) -> None:
    """result [majors, width] = matrix @ dense [minors, width].

    Raises: RuntimeError if an index is out of range.
    """
    reals = width * (2 if dtype.is_complex else 1)
    code = (vector_code if width == 1 else rows_code)(dtype, matrix.index_dtype)
    work = matrix.entries * (width + 1) * dtype.itemsize + matrix.majors * width * dtype.itemsize
    _run(code, matrix, (result,), (matrix.values, dense), reals, work)


def sparse_columns(result: int, matrix: SparseMatrix, dense: int, width: int, dtype: DType) -> None:
    """result [minors, width] += matrix transposed @ dense [majors, width].

    Raises: RuntimeError if an index is out of range.
    """
    reals, group = width * (2 if dtype.is_complex else 1), 64 // (dtype.part or dtype).itemsize
    faults = np.zeros(1, np.int64)
    meta = np.array([matrix.majors, matrix.minors, matrix.entries, reals, group], np.int64)
    work = matrix.entries * width * dtype.itemsize
    addresses = faults.ctypes.data, matrix.pointers.ctypes.data, matrix.minor_indices, matrix.values, dense
    entry = sharing(columns_code(dtype, matrix.index_dtype), work if reals > group else 0)
    entry(result, *addresses, meta.ctypes.data, -(-reals // group))
    _check(faults)


def sparse_sampled(
    result: int, matrix: SparseMatrix, left: int, right: int, width: int, dtype: DType
) -> None:
    """result [entries] = at each entry, the product of its row of left [majors, width] and of right [minors, width].

    Raises: RuntimeError if an index is out of range.
    """
    work = matrix.entries * width * dtype.itemsize
    _run(sampled_code(dtype, matrix.index_dtype), matrix, (result,), (left, right), width, work)


def _run(code, matrix: SparseMatrix, results, inputs, reals: int, work: float) -> None:
    faults = np.zeros(1, np.int64)
    meta = np.array([matrix.majors, matrix.minors, matrix.entries, reals], np.int64)
    bounds = _bounds(matrix)
    addresses = (
        *results, faults.ctypes.data, matrix.pointers.ctypes.data, matrix.minor_indices, *inputs, bounds.ctypes.data
    )  # fmt: skip
    sharing(code, work)(*addresses, meta.ctypes.data, len(bounds) - 1)
    _check(faults)


def _bounds(matrix: SparseMatrix) -> np.ndarray:
    """The first major of each part, and behind them the number of majors. They rise, whatever the pointers are."""
    parts = min(_PARTS, matrix.majors)
    wanted = (np.arange(parts + 1) * matrix.entries // parts).astype(matrix.pointers.dtype)
    places = np.searchsorted(matrix.pointers, wanted)
    places[0], places[-1] = 0, matrix.majors
    return np.minimum(np.maximum.accumulate(places), matrix.majors).astype(np.int64)


def _check(faults: np.ndarray) -> None:
    if faults[0]:
        raise RuntimeError("the indices of a sparse matrix are out of range")
