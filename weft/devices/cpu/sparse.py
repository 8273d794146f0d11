"""Products with a compressed sparse matrix on the CPU: see `engine/sparse_products.py`. Tensors come as addresses, contiguous."""

from __future__ import annotations

import ctypes
from array import array

import numpy as np

from ...core.dtype import DType
from ...engine import workers
from ...engine.kernel import SHARED_BYTES, Code, sharing
from ...engine.sparse_dots import vector_code
from ...engine.sparse_products import SparseMatrix, columns_code, rows_code, sampled_code


def sparse_rows(result: int, matrix: SparseMatrix, dense: int, width: int, dtype: DType) -> None:
    """result [majors, width] = matrix @ dense [minors, width].

    Raises: RuntimeError if an index is out of range.
    """
    reals = width * (2 if dtype.is_complex else 1)
    code = (vector_code if width == 1 else rows_code)(dtype, matrix.index_dtype)
    work = matrix.entries * (width + 1) * dtype.itemsize + matrix.majors * width * dtype.itemsize
    _run(code, matrix, result, (matrix.values, dense), reals, work)


def sparse_columns(result: int, matrix: SparseMatrix, dense: int, width: int, dtype: DType) -> None:
    """result [minors, width] += matrix transposed @ dense [majors, width].

    Raises: RuntimeError if an index is out of range.
    """
    reals, group = width * (2 if dtype.is_complex else 1), 64 // (dtype.part or dtype).itemsize
    groups = -(-reals // group)
    work = matrix.entries * width * dtype.itemsize if groups > 1 else 0
    words = array("q", (0, *matrix[:3], reals, group))
    place = words.buffer_info()[0]
    entry = sharing(columns_code(dtype, matrix.index_dtype), work)
    entry(result, place, *matrix[4:], dense, place + 8, groups)
    _check(words)


def sparse_sampled(
    result: int, matrix: SparseMatrix, left: int, right: int, width: int, dtype: DType
) -> None:
    """result [entries] = at each entry, the product of its row of left [majors, width] and of right [minors, width].

    Raises: RuntimeError if an index is out of range.
    """
    work = matrix.entries * width * dtype.itemsize
    _run(sampled_code(dtype, matrix.index_dtype), matrix, result, (left, right), width, work)


def _run(
    code: Code, matrix: SparseMatrix, result: int, inputs: tuple[int, int], reals: int, work: int
) -> None:
    """Run a kernel whose parts are ranges of majors."""
    bounds = _bounds(matrix, workers.get_num_threads()) if work >= SHARED_BYTES else (0, matrix.majors)
    words = array("q", (0, *matrix[:3], reals, *bounds))
    place = words.buffer_info()[0]
    entry = sharing(code, work)
    entry(result, place, *matrix[4:6], *inputs, place + 8 * 5, place + 8, len(bounds) - 1)
    _check(words)


def _bounds(matrix: SparseMatrix, parts: int) -> list[int]:
    """The first major of each part, and behind them the number of majors: the parts have about equally many entries.

    The bounds rise, whatever the pointers are.
    """
    pointers = _pointers(matrix)
    parts = min(parts, matrix.majors)
    wanted = (np.arange(1, parts) * matrix.entries // parts).astype(pointers.dtype)
    inner = np.maximum.accumulate(np.searchsorted(pointers[:-1], wanted))
    return [0, *inner.tolist(), matrix.majors]


def _pointers(matrix: SparseMatrix) -> np.ndarray:
    kind = ctypes.c_int32 if matrix.index_dtype.itemsize == 4 else ctypes.c_int64
    return np.ctypeslib.as_array((kind * (matrix.majors + 1)).from_address(matrix.pointers))


def _check(words: array) -> None:
    """The first of the words counts faults."""
    if words[0]:
        raise RuntimeError("the indices of a sparse matrix are out of range")
