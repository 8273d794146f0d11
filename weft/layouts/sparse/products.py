"""Products of compressed sparse matrices. All functions take and return contiguous strided tensors, and record nothing for autograd.

A matrix is given by its parts, compressed along its rows. What holds for rows and columns of CSR holds for columns and rows of CSC, so
that the product of a CSC matrix is `transposed_matmul`.
"""

from __future__ import annotations

from typing import Any

from ...core.dtype import DType, bfloat16, complex64, complex128, float16, float32, float64, int64
from ...core.tensor import Tensor, address
from ...engine.sparse_products import SparseMatrix
from ...families.array_op import inside
from ...ops.creation.creation import empty, zeros
from ...ops.creation.ranges import arange
from .compression import Compressed, check_inner, check_pointers, majors_of, pointers
from .coordinates import runs, stable_order, sums_of_runs

# Dtypes that the kernels of a device multiply.
_FAST = (float32, float64, complex64, complex128)
# Dtypes whose products are added up as float32 and rounded once.
NARROW = (float16, bfloat16)


def matmul(parts: Compressed, minors: int, dense: Tensor) -> Tensor:
    """Return the product [majors, ...] of a matrix [majors, minors] and a dense one or vector [minors, ...], of one dtype.

    Raises: RuntimeError if an index is out of range.
    """
    if parts.values.dtype in NARROW:
        return matmul(_wide(parts), minors, dense.to(float32)).to(parts.values.dtype)
    outer, inner, values = parts
    majors, width = outer.shape[0] - 1, dense.shape[1:].numel()
    result = empty((majors, *dense.shape[1:]), dtype=values.dtype, device=values.device)
    if not result.numel():
        return result
    if not inner.numel():
        check_pointers(outer, 0)
        return result.zero_()
    if (run := _kernel("sparse_rows", values)) is not None:
        dense = dense.contiguous()
        with inside("matmul", [values, dense]):
            run(address(result), _matrix(parts, minors), address(dense), width, values.dtype)
        return result
    check_inner(inner, minors)
    rows = majors_of(outer, len(inner)).to(int64)
    return result.zero_().index_add_(0, rows, _terms(values, dense.index_select(0, inner)))


def transposed_matmul(parts: Compressed, minors: int, dense: Tensor) -> Tensor:
    """Return the product [minors, ...] of a transposed matrix [majors, minors] and a dense one or vector [majors, ...].

    Raises: RuntimeError if an index is out of range.
    """
    if parts.values.dtype in NARROW:
        return transposed_matmul(_wide(parts), minors, dense.to(float32)).to(parts.values.dtype)
    outer, inner, values = parts
    result = zeros((minors, *dense.shape[1:]), dtype=values.dtype, device=values.device)
    if not result.numel() or not inner.numel():
        check_pointers(outer, inner.shape[0])
        return result
    if (run := _kernel("sparse_columns", values)) is not None:
        width, dense = dense.shape[1:].numel(), dense.contiguous()
        with inside("matmul", [values, dense]):
            run(address(result), _matrix(parts, minors), address(dense), width, values.dtype)
        return result
    check_inner(inner, minors)
    rows = majors_of(outer, len(inner))
    return result.index_add_(0, inner.to(int64), _terms(values, dense.index_select(0, rows)))


def sampled_matmul(parts: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """The elements [nnz] of left @ right.T where a matrix has entries; its values are not read. left [majors, n], right [minors, n].

    Raises: RuntimeError if an index is out of range.
    """
    if left.dtype in NARROW:
        return sampled_matmul(parts, left.to(float32), right.to(float32)).to(left.dtype)
    outer, inner, _ = parts
    (minors, width), dtype = right.shape, left.dtype
    result = empty(len(inner), dtype=dtype, device=left.device)
    if not width or not len(inner):
        check_pointers(outer, len(inner))
        return result.zero_()
    if not dtype.is_complex and (run := _kernel("sparse_sampled", left)) is not None:
        left, right = left.contiguous(), right.contiguous()
        with inside("sampled_addmm", [left, right]):
            run(address(result), _matrix(parts, minors), address(left), address(right), width, dtype)
        return result
    check_inner(inner, minors)
    rows = majors_of(outer, len(inner))
    return (left.index_select(0, rows) * right.index_select(0, inner)).sum(1, dtype=dtype)


def block_matmul(parts: Compressed, minors: int, dense: Tensor) -> Tensor:
    """The product [majors * height, n] of a BSR matrix, whose blocks are [height, width], and a dense matrix [minors * width, n].

    Raises: RuntimeError if an index is out of range.
    """
    outer, inner, values = parts
    check_inner(inner, minors)
    (nnz, height, width), n = values.shape, dense.shape[1]
    majors = outer.shape[0] - 1
    rows = majors_of(outer, nnz).to(int64)
    result = zeros((majors, height, n), dtype=values.dtype, device=values.device)
    if nnz:
        blocks = dense.contiguous().view(minors, width, n).index_select(0, inner)
        result.index_add_(0, rows, values.bmm(blocks))
    return result.view(majors * height, n)


# Rows or columns: products of sparse matrices with more are not computed by kernels, because each thread of these has an array of all.
_MOST_COLUMNS = 1 << 24


def multiplies_pairs(left: Compressed, right: Compressed, minors: int) -> bool:
    """Whether there are kernels for `matmul_pairs` of these matrices and for its derivative."""
    sizes = len(left.outer), len(right.outer), minors
    some = len(left.inner) and len(right.inner)
    return bool(
        some and max(sizes) <= _MOST_COLUMNS and _kernel("sparse_pairs_count", left.values) is not None
    )


def matmul_pairs(left: Compressed, right: Compressed, minors: int) -> Compressed:
    """`matmul_sparse` by kernels, see `multiplies_pairs`. The numbers are the same."""
    middle, majors, index = len(right.outer) - 1, len(left.outer) - 1, left.inner.dtype
    right = _with_index(right, index)
    extras, operands = left.values.device.backend.extras, (_matrix(left, middle), _matrix(right, minors))
    counts = zeros(majors + 1, dtype=int64, device=left.values.device)
    with inside("matmul", [left.values, right.values]):
        extras["sparse_pairs_count"](address(counts) + int64.itemsize, *operands)
    outer = counts.cumsum(0)
    nnz = int(outer[-1])
    inner = empty(nnz, dtype=index, device=outer.device)
    values = empty(nnz, dtype=left.values.dtype, device=outer.device)
    with inside("matmul", [left.values, right.values]):
        places = address(outer), address(inner), address(values)
        extras["sparse_pairs_fill"](*places, *operands, values.dtype)
    return Compressed(outer.to(index), inner, values)


def sampled_pairs(pattern: Compressed, left: Compressed, right: Compressed, width: int) -> Tensor:
    """The elements [nnz] of left @ right.T where a matrix has entries; its values are not read. left [majors, width], right [minors, width].

    All are sparse; left and right have the same dtype, which `multiplies_pairs`.
    Raises: RuntimeError if an index is out of range.
    """
    index, values = pattern.inner.dtype, left.values
    result = empty(len(pattern.inner), dtype=values.dtype, device=values.device)
    left, right = _with_index(left, index), _with_index(right, index)
    matrices = _matrix(pattern, len(right.outer) - 1), _matrix(left, width), _matrix(right, width)
    with inside("matmul", [values, right.values]):
        run = values.device.backend.extras["sparse_pairs_sampled"]
        run(address(result), *matrices, values.dtype)
    return result


def matmul_sparse(left: Compressed, right: Compressed, minors: int) -> Compressed:
    """Return the product of two matrices, [majors, k] and [k, minors], compressed along rows. dtype: of both values.

    Each product of an entry of `left` and an entry of `right` is made, and those of the same element are added in order.
    Raises: RuntimeError if an index is out of range.
    """
    middle, majors = len(right.outer) - 1, len(left.outer) - 1
    check_inner(left.inner, middle)
    check_inner(right.inner, minors)
    check_pointers(right.outer, len(right.inner))
    rows, counts = majors_of(left.outer, len(left.inner)).to(int64), right.outer.diff()
    chosen = counts.index_select(0, left.inner).to(int64)
    entry = arange(len(left.inner), device=rows.device).repeat_interleave(chosen)
    first = right.outer[:-1].index_select(0, left.inner).to(int64) - (chosen.cumsum(0) - chosen)
    other = first.index_select(0, entry) + arange(len(entry), device=rows.device)
    keys = rows.index_select(0, entry) * minors + right.inner.index_select(0, other)
    terms = left.values.index_select(0, entry) * right.values.index_select(0, other)
    index = left.inner.dtype
    if not len(keys):
        return Compressed(zeros(majors + 1, dtype=index), keys.to(index), terms)
    order = stable_order(keys)
    if order is not None:
        keys, terms = keys.index_select(0, order), terms.index_select(0, order)
    begins = runs(keys)
    keys = keys.index_select(0, begins.first)
    found = keys // minors
    return Compressed(
        pointers(found, majors).to(index), (keys - found * minors).to(index), sums_of_runs(terms, begins)
    )


def reduced_matmul(parts: Compressed, minors: int, dense: Tensor, kind: str) -> Tensor:
    """Return `matmul` with the "sum", "mean", "amax" or "amin" of the terms of a row's entries; 0 without entries."""
    outer, inner, values = parts
    if kind in ("sum", "mean"):
        result = matmul(parts, minors, dense)
        return result if kind == "sum" else result / outer.diff().clamp(min=1).view(-1, 1)
    check_inner(inner, minors)
    rows = majors_of(outer, len(inner)).to(int64)
    result = zeros((outer.shape[0] - 1, dense.shape[1]), dtype=values.dtype, device=values.device)
    return result.index_reduce_(
        0, rows, _terms(values, dense.index_select(0, inner)), kind, include_self=False
    )


def _wide(parts: Compressed) -> Compressed:
    return parts._replace(values=parts.values.to(float32))


def _terms(values: Tensor, rows: Tensor) -> Tensor:
    return rows * values.view(-1, *[1] * (rows.dim() - 1))


def _kernel(name: str, values: Tensor) -> Any:
    """The device's kernel of this name, if it multiplies numbers of the dtype of the values."""
    return values.device.backend.extras.get(name) if values.dtype in _FAST else None


def _with_index(parts: Compressed, dtype: DType) -> Compressed:
    return Compressed(parts.outer.to(dtype), parts.inner.to(dtype), parts.values)


def _matrix(parts: Compressed, minors: int) -> SparseMatrix:
    if not minors:
        check_inner(parts.inner, minors)
    outer, inner, values = parts
    if len(values) != len(inner):
        raise RuntimeError(
            f"a sparse matrix has {len(inner)} indices and {len(values)} values, which must be as many"
        )
    sizes = len(outer) - 1, minors, len(inner)
    return SparseMatrix(*sizes, inner.dtype, address(outer), address(inner), address(values))
