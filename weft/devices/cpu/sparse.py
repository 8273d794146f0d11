"""Products with a compressed sparse matrix on the CPU: see `engine/sparse_products.py`. Tensors come as addresses, contiguous."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence

import numpy as np

from ...core.dtype import DType
from ...engine import workers
from ...engine.kernel import SHARED_BYTES, Code, sharing
from ...engine.pointers import majors_code, pointers_code
from ...engine.sparse_dots import vector_code
from ...engine.sparse_pairs import count_code, count_room, fill_code, fill_room, sampled_pairs_code, set_words
from ...engine.sparse_products import SparseMatrix, columns_code, rows_code, sampled_code


def sparse_rows(result: int, matrix: SparseMatrix, dense: int, width: int, dtype: DType) -> None:
    """Compute result [majors, width] = matrix @ dense [minors, width].

    Raises: RuntimeError if an index is out of range.
    """
    reals = width * (2 if dtype.is_complex else 1)
    code = (vector_code if width == 1 else rows_code)(dtype, matrix.index_dtype)
    work = matrix.entries * (width + 1) * dtype.itemsize + matrix.majors * width * dtype.itemsize
    _run(code, matrix, result, (matrix.values, dense), reals, work)


def sparse_columns(result: int, matrix: SparseMatrix, dense: int, width: int, dtype: DType) -> None:
    """Compute result [minors, width] += matrix transposed @ dense [majors, width].

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
    """Compute result [entries] = at each entry, the product of rows of left [majors, width] and right [minors, width].

    Raises: RuntimeError if an index is out of range.
    """
    work = matrix.entries * width * dtype.itemsize
    _run(sampled_code(dtype, matrix.index_dtype), matrix, result, (left, right), width, work)


def sparse_pairs_count(counts: int, left: SparseMatrix, right: SparseMatrix) -> None:
    """counts [majors], int64 = how many entries each row of left @ right has.

    Raises: RuntimeError if an index is out of range.
    """
    _run_pairs(count_code(left.index_dtype), (left, right), (counts,), (), (count_room(right.minors),), ())


def sparse_pairs_fill(
    pointers: int, minors: int, values: int, left: SparseMatrix, right: SparseMatrix, dtype: DType
) -> None:
    """The minors and values of left @ right, whose entries begin at the pointers, int64.

    Raises: RuntimeError if an index is out of range.
    """
    rooms = (fill_room(right.minors, dtype),)
    code = fill_code(dtype, left.index_dtype)
    _run_pairs(code, (left, right), (minors,), (values, pointers), rooms, set_words(right.minors))


def sparse_pairs_sampled(
    result: int, pattern: SparseMatrix, left: SparseMatrix, right: SparseMatrix, dtype: DType
) -> None:
    """Compute result [entries] = at each entry of the pattern, the dot product of a row of left and a column of right.

    Raises: RuntimeError if an index is out of range.
    """
    rooms = count_room(left.minors), dtype.itemsize * left.minors
    code = sampled_pairs_code(dtype, left.index_dtype)
    _run_pairs(code, (pattern, left, right), (result,), (), rooms, ())


# Bytes of work for each product of two entries: as many as fit the thresholds of `sharing`.
_PAIR_BYTES = 8


def _run_pairs(
    code: Code,
    matrices: Sequence[SparseMatrix],
    results: Sequence[int],
    more: Sequence[int],
    rooms: Sequence[int],
    numbers: Sequence[int],
) -> None:
    """Run a kernel of several sparse matrices, whose parts are ranges of majors of the first one. rooms: bytes, of each part."""
    first, last = matrices[0], matrices[-1]
    work = _PAIR_BYTES * first.entries * (1 + last.entries // max(last.majors, 1))
    bounds = _bounds(first, workers.get_num_threads()) if work >= SHARED_BYTES else (0, first.majors)
    parts = len(bounds) - 1
    sizes = [size for matrix in matrices for size in matrix[:3]]
    words = array("q", (0, *sizes, *rooms, *numbers, *bounds))
    place = words.buffer_info()[0]
    # Memory of the system that nobody has written to is zero, and takes no room.
    memory = [np.zeros(parts * size, np.uint8) for size in rooms]
    addresses = [address for matrix in matrices for address in matrix[4:]]
    entry = sharing(code, work)
    bounds_place = place + 8 * (len(words) - len(bounds))
    entry(
        *results,
        place,
        *addresses,
        *more,
        bounds_place,
        *[each.ctypes.data for each in memory],
        place + 8,
        parts,
    )
    _check(words)


def sparse_pointers(pointers: int, majors: int, size: int, entries: int, dtype: DType) -> None:
    """Compute pointers [size + 1] to the entries of each major, from sorted majors [entries], both of the dtype."""
    meta = array("q", (size, entries))
    pointers_code(dtype).entry(pointers, majors, meta.buffer_info()[0], 1)


def sparse_majors(majors: int, pointers: int, size: int, entries: int, dtype: DType) -> None:
    """Compute majors [entries] of the entries, from pointers [size + 1], both of the dtype, which rise from 0 to the number of entries."""
    meta = array("q", (size, entries))
    majors_code(dtype).entry(majors, pointers, meta.buffer_info()[0], 1)


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
