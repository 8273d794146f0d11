"""Matrix products: BLAS, called by machine code or through NumPy, straight into the memory of the result."""

from __future__ import annotations

import contextvars
import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtype import INTEGER, DType, bfloat16, compute_type, float16, numpy_dtype
from ...core.spec import Spec, contiguous_spec, contiguous_stride, make_spec
from ...engine import blas, narrow_gemm
from ...engine.gemm import Places, products
from ...engine.host import converts_half
from ...engine.kernel import Launch
from ...engine.vectors import multiplies_and_adds, multiplies_bfloat16

# NumPy warns about overflow and NaN, PyTorch does not. Entering a context costs a tenth of `np.errstate`.
_QUIET: Any = contextvars.Context()
_QUIET.run(np.seterr, all="ignore")

# Below this many multiplications the detour of integers over floats does not pay.
SMALL_INTEGER_WORK = 1 << 15

# Products of more multiplications are left to BLAS, whose threads share the copies that it makes of the operands.
MOST_WORK = 1 << 28
MOST_PRODUCTS = 1 << 14  # each needs a few words of the plan
# Products with a vector of more multiplications are left to NumPy, which calls BLAS's function for them.
VECTOR_WORK = 1 << 16

NARROW = (bfloat16, float16)

# Columns, and multiplications: with fewer columns and more work, BLAS in float32 is faster than tiles of 32 columns of bfloat16.
FEW_COLUMNS = 16
SMALL_NARROW_WORK = 1 << 14

_ndarray = np.ndarray
# All memory as one buffer: an array at an address. The caller of a launch holds the tensors until the launch returns.
# It starts at an address that is never used, but not at 0, which NumPy takes for no buffer.
_BASE = 64
_MEMORY: Any = (ctypes.c_char * 2**62).from_address(_BASE)


def prepare_product(a: Spec, b: Spec, result: Spec) -> Launch:
    """See `devices/base.py`."""
    if a.dtype.category <= INTEGER:
        return Launch(_integers(a, b, result), 0, 0, None)
    if a.dtype in NARROW:
        return _narrow(a, b, result)
    return _direct(a, b, result)


def product_operands(a: Spec, b: Spec) -> tuple[Spec, Spec]:
    """The specs that BLAS can read: the operands' own, or those of copies."""
    if a.dtype.category <= INTEGER:
        return _without_negation(a), _without_negation(b)
    if a.dtype in NARROW and _suits_narrow(a, b):
        if _columns_of(b) == 1:  # the product of the transposes
            # A stack of single rows is multiplied as one matrix, so the stride between its rows counts.
            dims = (-1,) if len(a.shape) > 2 and a.shape[-2] == 1 else (-1, -2)
            return _with_neighbours(a, dims), _with_neighbours(b, (-min(2, len(b.shape)),))
        if b.neg and _is_row_by_columns(a, b):
            *outer, across, down = contiguous_stride((*b.shape[:-2], b.shape[-1], b.shape[-2]))
            b = make_spec(b.shape, (*outer, down, across), b.dtype, b.device)
        return _with_neighbours(a, (-1,)), _with_neighbours(b, (-1, -2))
    a, b = _readable_one(a), _readable_one(b)
    left = blas_strides(a)
    assert left is not None
    if len(b.shape) == 2 < len(a.shape) and left[-1] == 1 and not _is_even(a.shape[:-1], left[:-1]):
        # A batch in order is one product instead of one for each of its matrices.
        a = contiguous_spec(a.shape, a.dtype, a.device)
    return a, b


def _without_negation(spec: Spec) -> Spec:
    return contiguous_spec(spec.shape, spec.dtype, spec.device) if spec.neg else spec


def _readable_one(spec: Spec) -> Spec:
    """The compute type, in a memory order that BLAS takes: a transposed matrix stays transposed."""
    if blas_strides(spec) is not None:
        return spec
    dtype = compute_type(spec.dtype)
    wanted = make_spec(spec.shape, spec.stride, dtype, spec.device)
    if spec.is_dense and blas_strides(wanted) is not None:
        return wanted
    return contiguous_spec(spec.shape, dtype, spec.device)


def blas_strides(spec: Spec) -> tuple[int, ...] | None:
    """Strides (elements) by which BLAS can read the matrices where they are, or None.

    A matrix must have unit stride one way and must not overlap the other way; a vector must be contiguous.
    """
    if spec.dtype not in blas.LETTERS or spec.conj or spec.neg:
        return None
    if len(spec.shape) == 1:
        return (1,) if spec.stride[0] == 1 or spec.numel <= 1 else None
    (rows, columns), (down, across) = spec.shape[-2:], spec.stride[-2:]
    # The stride of a dim of size 1 is never used, but BLAS checks it.
    if (across == 1 or columns <= 1) and (down >= columns or rows <= 1):
        return (*spec.stride[:-2], down if rows > 1 else max(columns, 1), 1)
    if (down == 1 or rows <= 1) and (across >= rows or columns <= 1):
        return (*spec.stride[:-2], 1, across if columns > 1 else max(rows, 1))
    return None


def _direct(a: Spec, b: Spec, result: Spec) -> Launch:
    left, right = blas_strides(a), blas_strides(b)
    assert left is not None and right is not None
    a_shape, b_shape, shape = tuple(a.shape), tuple(b.shape), tuple(result.shape)
    if len(a_shape) > 2 and len(b_shape) <= 2 and left[-1] == 1 and _is_even(a_shape[:-1], left[:-1]):
        # One product: the batch is more rows.
        rows = math.prod(a_shape[:-1])
        a_shape, left, shape = (rows, a_shape[-1]), left[-2:], (rows, *b_shape[1:])
    found = _by_kernel(a_shape, left, b_shape, right, shape, a.dtype)
    if found is None:
        return Launch(_by_numpy(a_shape, left, b_shape, right, shape, a.dtype), 0, 0, None)
    return found


def _suits_narrow(a: Spec, b: Spec) -> bool:
    """Whether narrow operands are multiplied as they are. The tiles of the kernel waste their work on few columns."""
    rows, columns, terms = math.prod(a.shape[:-1]), _columns_of(b), a.shape[-1]
    if not terms or len(a.shape) == len(b.shape) == 1:
        return False
    if a.stride[-1] == 1 if columns == 1 else _is_row_by_columns(a, b):
        return multiplies_and_adds() and (a.dtype is bfloat16 or converts_half())  # dot products
    if a.dtype is float16 or not multiplies_bfloat16():
        return False
    if columns == 1:
        columns = rows
    return terms <= narrow_gemm.MOST_TERMS and (
        columns >= FEW_COLUMNS or rows * columns * terms <= SMALL_NARROW_WORK
    )


def _is_row_by_columns(a: Spec, b: Spec) -> bool:
    """Whether each product is one of a row and of columns whose terms are neighbours."""
    single = math.prod(a.shape[:-1]) == 1 or (len(b.shape) > 2 and a.shape[-2] == 1)
    return single and b.stride[-2] == 1


def _columns_of(b: Spec) -> int:
    return b.shape[-1] if len(b.shape) > 1 else 1


def _with_neighbours(spec: Spec, dims: Sequence[int]) -> Spec:
    """The spec itself if it has unit stride along one of the dims and no pending negation, else that of a contiguous copy."""
    if not spec.neg and any(spec.stride[dim] == 1 or spec.shape[dim] == 1 for dim in dims[: len(spec.shape)]):
        return spec
    return contiguous_spec(spec.shape, spec.dtype, spec.device)


def _narrow(a: Spec, b: Spec, result: Spec) -> Launch:
    """The product of narrow operands as `_with_neighbours` wants them."""
    a_shape, b_shape, shape = tuple(a.shape), tuple(b.shape), tuple(result.shape)
    left, right = tuple(a.stride), tuple(b.stride)
    if len(a_shape) == 1:  # a row
        a_shape, left, shape = (1, *a_shape), (0, *left), (*shape[:-1], 1, *shape[-1:])
    if len(b_shape) == 1:  # a column
        b_shape, right, shape = (*b_shape, 1), (*right, 1), (*shape, 1)
    if len(a_shape) > 2 == len(b_shape) and _is_even(a_shape[:-1], left[:-1]):
        # One product: the batch is more rows.
        rows = math.prod(a_shape[:-1])
        a_shape, left, shape = (rows, a_shape[-1]), left[-2:], (rows, shape[-1])
    batch = shape[:-2]
    places = _places(batch, math.prod(shape[-2:]), (a_shape, left), (b_shape, right))
    sizes = a_shape[-2], a_shape[-1], b_shape[-1]
    return narrow_gemm.products(a.dtype, result.dtype, sizes, left[-2:], right[-2:], places)


def _by_kernel(a_shape, left, b_shape, right, shape, dtype: DType) -> Launch | None:
    """The products of matrices as a kernel; None if NumPy does better."""
    batch = shape[: len(shape) - (len(a_shape) > 1) - (len(b_shape) > 1)]
    if len(a_shape) == 1:  # a row
        a_shape, left = (1, *a_shape), (a_shape[0], 1)
    if len(b_shape) == 1:  # a column
        b_shape, right = (*b_shape, 1), (1, 1)
    sizes = (a_shape[-2], a_shape[-1], b_shape[-1])
    each, count = math.prod(sizes), math.prod(batch)
    if each > MOST_WORK or count > MOST_PRODUCTS or not each:
        return None
    if 1 in (sizes[0], sizes[2]) and each > VECTOR_WORK:
        return None
    places = _places(batch, sizes[0] * sizes[2], (a_shape, left), (b_shape, right))
    return products(dtype, sizes, left[-2:], right[-2:], places)


def _by_numpy(a_shape, left, b_shape, right, shape, dtype: DType) -> Callable:
    a_stride, b_stride = (tuple(step * dtype.itemsize for step in stride) for stride in (left, right))
    own = numpy_dtype(dtype)
    # np.dot makes the same BLAS call as np.matmul with half the overhead, but broadcasts differently.
    multiply: Any = np.dot if len(a_shape) <= 2 and len(b_shape) <= 2 else np.matmul

    def entry(result: int, a: int, b: int, meta: int, count: int) -> None:
        _QUIET.copy().run(
            multiply,
            _ndarray(a_shape, own, _MEMORY, a - _BASE, a_stride),
            _ndarray(b_shape, own, _MEMORY, b - _BASE, b_stride),
            _ndarray(shape, own, _MEMORY, result - _BASE),
        )

    return entry


def _places(batch: Sequence[int], each: int, *operands: tuple[Sequence[int], Sequence[int]]) -> Places:
    """Where each matrix of a stack lies. each: elements of a result. operands: the sizes and strides of a and of b."""
    rows = [tuple([stride * each for stride in contiguous_stride(batch)])]
    for sizes, strides in operands:
        own = [0 if size == 1 else stride for size, stride in zip(sizes[:-2], strides[:-2])]
        rows.append((*[0] * (len(batch) - len(own)), *own))
    return Places(tuple(batch), *rows)


def _is_even(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether stepping through all dims in order always moves by the last stride."""
    return all(
        outer == size * inner for outer, size, inner in zip(strides, sizes[1:], strides[1:], strict=False)
    )


def _integers(a: Spec, b: Spec, result: Spec) -> Callable:
    """Integer products wrap around. NumPy's loops are slow, so BLAS does what floats represent exactly."""
    layouts = [
        (each.shape, numpy_dtype(each.dtype), tuple(step * each.dtype.itemsize for step in each.stride))
        for each in (result, a, b)
    ]

    def entry(result: int, a: int, b: int, meta: int, count: int) -> None:
        _multiply_integers(
            *[
                _ndarray(sizes, dtype, _MEMORY, address - _BASE, strides)
                for address, (sizes, dtype, strides) in zip((result, a, b), layouts, strict=True)
            ]
        )

    return entry


def _multiply_integers(out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    terms = x.shape[-1]
    if out.size * terms >= SMALL_INTEGER_WORK:
        bound = terms * _magnitude(x) * _magnitude(y)  # of every partial sum, in whatever order
        if bound < 2**53:
            wide: Any = np.float32 if bound < 2**24 else np.float64
            np.copyto(out, np.matmul(x.astype(wide), y.astype(wide)).astype(np.int64), casting="unsafe")
            return
    np.matmul(x, y, out=out)


def _magnitude(values: np.ndarray) -> int:
    return max(int(values.max()), -int(values.min()))
