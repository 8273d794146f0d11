"""Plans of linear algebra that call LAPACK on the memory of tensors (`engine/lapack.py`).

Each `..._plan` takes the specs of the tensors and the static arguments of a MatrixOp, and returns a function of the tensors. The
function returns None for values that need a closer look, such as NaN and singular matrices. Then, and where a plan is None
because NumPy comes without OpenBLAS, the op computes on arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.device import CPU
from ...core.dtype import complex64, complex128, float32, from_numpy_dtype, int32, int64
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, address
from ...engine.lapack import SMALL_LU, Place, Routines, Scratch, Step, available, work_sizes
from ...families.array_op import memory_array
from ...families.map import COPY
from . import blocked, lane_plans, stacks
from .lapack import all_finite, columns_like, columns_spec, real_like
from .operands import Copied, New, any_failed, is_any, read_as, readable_spec

_PIVOT = 8  # bytes of an integer of LAPACK


def _has(spec: Spec, *names: str) -> bool:
    """Whether a spec has elements in the CPU's memory, and LAPACK has these routines for its dtype."""
    return spec.device is CPU and spec.numel > 0 and available(spec.dtype, *names)


def _matrix(operand: int, spec: Spec, row: int = 0, column: int = 0) -> Place:
    """An element of each matrix of a dense stack that is stored column by column."""
    height, width = spec.shape[-2:]
    itemsize = spec.dtype.itemsize
    return Place(operand, height * width * itemsize, (column * height + row) * itemsize)


def _each(operand: int, itemsize: int) -> Place:
    """Compute `itemsize` bytes for each matrix, one after the other."""
    return Place(operand, itemsize)


def _infos(batch: Sequence[int]) -> New:
    """Allocates LAPACK's infos, or its pivots. NumPy's LAPACK has integers of 64 bits; `_narrow` copies them to 32."""
    return New(contiguous_spec(tuple(batch), int64))


def _narrow(batch: Sequence[int]) -> Copied:
    shape = tuple(batch)
    return Copied(contiguous_spec(shape, int64), contiguous_spec(shape, int32))


def _is_finite(a: Tensor) -> bool:
    return all_finite(memory_array(a))


# ---- Factorizations --------------------------------------------------------------------------------------------------


def cholesky_plan(a: Spec, upper: bool) -> Callable | None:
    if lane_plans.fits(a):
        return lane_plans.cholesky_plan(a, upper)
    if not _has(a, "potrf", "laset") or stacks.beats_numpy(a):
        return None
    *batch, n, _ = a.shape
    spec = columns_like(a.shape, a)
    other = _matrix(0, spec, 1, 0) if upper else _matrix(0, spec, 0, 1)
    steps = [
        Step("potrf", ("U" if upper else "L", n, _matrix(0, spec), n, _each(1, 8))),
        Step("laset", ("L" if upper else "U", n - 1, n - 1, 0.0, 0.0, other, n)),
    ]
    routines = Routines(a.dtype, steps, math.prod(batch), 2, n * n, n**3 // 6, small=SMALL_LU)
    copied, infos, narrow = Copied(a, spec), _infos(batch), _narrow(batch)

    def run(a: Tensor) -> tuple[Tensor, Tensor] | None:
        factor, info = copied(a), infos()
        routines(factor._storage.ptr, info._storage.ptr)
        # OpenBLAS continues after NaN on the diagonal and reports no error, but then the last element of the diagonal is NaN.
        if any_failed(info) or is_any(np.isnan(memory_array(factor)[..., -1, -1])):
            return None
        return factor, narrow(info)

    return run


def lu_plan(a: Spec, wide: bool = False) -> Callable | None:
    """`wide`: the pivots and infos stay integers of 64 bits."""
    if lane_plans.fits(a) and not wide:
        return lane_plans.lu_plan(a)
    if not _has(a, "getrf") or stacks.beats_lu(a):
        return None
    *batch, m, n = a.shape
    k = min(m, n)
    spec = columns_like(a.shape, a)
    step = Step("getrf", (m, n, _matrix(0, spec), m, _each(1, k * _PIVOT), _each(2, 8)))
    routines = Routines(a.dtype, [step], math.prod(batch), 3, m * n, m * n * k // 3, small=SMALL_LU)
    copied, infos, narrow = Copied(a, spec), _infos(batch), _narrow(batch)
    pivots, narrow_pivots = _infos((*batch, k)), _narrow((*batch, k))

    def run(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        factors, swaps, info = copied(a), pivots(), infos()
        routines(factors._storage.ptr, swaps._storage.ptr, info._storage.ptr)
        if wide:
            return factors, swaps, info
        return factors, narrow_pivots(swaps), narrow(info)

    return run


def qr_plan(a: Spec, mode: str) -> Callable | None:
    """R is the upper triangle that geqrf leaves; orgqr (of complex matrices ungqr) makes Q of what it leaves below."""
    if lane_plans.fits(a):
        return lane_plans.qr_plan(a, mode)
    if blocked.fits(a, "geqrt", "gemqrt", "lacpy", "laset"):
        return blocked.qr_plan(a, mode)
    product = "ungqr" if a.dtype.is_complex else "orgqr"
    if not _has(a, "geqrf", product, "lacpy", "laset"):
        return None
    *batch, m, n = a.shape
    k = min(m, n)
    width = m if mode == "complete" else k
    spec, upper = columns_like(a.shape, a), columns_like((*batch, width, n), a)
    basis = columns_like((*batch, m, width), a)
    work = max(
        work_sizes("geqrf", a.dtype, m, n, ..., m, ..., ..., -1)[5],
        work_sizes(product, a.dtype, m, width, k, ..., m, ..., ..., -1)[6],
    )
    scales = Scratch(work * a.dtype.itemsize)
    steps = [
        Step("geqrf", (m, n, _matrix(0, spec), m, scales, Scratch(0), work, Scratch(_after(a, work, k)))),
        Step("lacpy", ("U", width, n, _matrix(0, spec), m, _matrix(1, upper), width)),
        Step("laset", ("L", width - 1, n, 0.0, 0.0, _matrix(1, upper, 1, 0), width)),
    ]
    if mode != "r":
        steps += [
            Step("lacpy", ("L", m, k, _matrix(0, spec), m, _matrix(2, basis), m)),
            Step(
                product,
                (m, width, k, _matrix(2, basis), m, scales, Scratch(0), work, Scratch(_after(a, work, k))),
            ),
        ]
    scratch = _after(a, work, k) + 8
    routines = Routines(a.dtype, steps, math.prod(batch), 3, m * n, m * n * k, scratch)
    copied, new_upper, new_basis = Copied(a, spec), New(upper), New(basis)

    def run(a: Tensor) -> tuple[Tensor, ...]:
        reflectors, upper = copied(a), new_upper()
        if mode == "r":
            routines(reflectors._storage.ptr, upper._storage.ptr, 0)
            return (upper,)
        basis = new_basis()
        routines(reflectors._storage.ptr, upper._storage.ptr, basis._storage.ptr)
        return basis, upper

    return run


def _after(a: Spec, *counts: int) -> int:
    """The offset of an integer in a workspace that begins with so many numbers."""
    return -(-sum(counts) * a.dtype.itemsize // 8) * 8


def triangle_plan(a: Spec) -> Callable | None:
    """Of square matrices: the diagonals of U as an array [n, *stack], and -1 where an odd number of rows was swapped, else 1."""
    if lane_plans.fits(a):
        return lane_plans.triangle_plan(a)
    factorize = lu_plan(a, wide=True)
    if factorize is None:
        return None
    unswapped = np.arange(1, a.shape[-1] + 1)
    is_stack = len(a.shape) > 2

    def run(a: Tensor) -> tuple[np.ndarray, Any]:
        factors, pivots, _ = factorize(a)
        diagonal = memory_array(factors).diagonal(0, -2, -1)
        swapped = memory_array(pivots) != unswapped
        swaps = swapped.sum(-1) if is_stack else np.count_nonzero(swapped)
        return np.moveaxis(diagonal, -1, 0) if is_stack else diagonal, 1 - 2 * (swaps % 2)

    return run


def permutations_plan(pivots: Spec, size: int, dtype: np.dtype) -> Callable | None:
    """The swaps of the identity's rows, which LAPACK stores column by column, are the transpose of the permutation."""
    *batch, count = pivots.shape
    spec = contiguous_spec((*batch, size, size), from_numpy_dtype(dtype))
    if pivots.device is not CPU or not spec.numel or not count or math.prod(batch) > _MOST_PERMUTED:
        return None
    if not available(spec.dtype, "laset", "laswp"):
        return None
    steps = [
        Step("laset", ("A", size, size, 0.0, 1.0, _matrix(0, spec), size)),
        Step("laswp", (size, _matrix(0, spec), size, 1, count, _each(1, count * _PIVOT), 1)),
    ]
    routines = Routines(spec.dtype, steps, math.prod(batch), 2, size * size, size * count)
    new, wide = New(spec), Copied(pivots, contiguous_spec(pivots.shape, int64))

    def run(pivots: Tensor) -> Tensor | None:
        swaps = wide(pivots)
        values = memory_array(swaps)
        if not 1 <= values.min() <= values.max() <= size:
            return None
        result = new()
        routines(result._storage.ptr, swaps._storage.ptr)
        return result

    return run


# Matrices; for larger stacks, NumPy's operations on the whole stack are faster.
_MOST_PERMUTED = 64


# ---- Equations -------------------------------------------------------------------------------------------------------


def _same_batch(a: Spec, b: Spec) -> bool:
    return a.shape[:-2] == b.shape[:-2] or (len(a.shape) == 2 and len(b.shape) > 2)


def solve_plan(a: Spec, b: Spec) -> Callable | None:
    if (plan := lane_plans.solve_plan(a, b)) is not None:
        return plan
    if len(b.shape) == 2 and b.numel and blocked.fits(a, "getrf", "laswp", "trsm", "gemm", "laset"):
        return blocked.solve_plan(a, b)
    if not _has(a, "getrf", "getrs") or not b.numel or not _same_batch(a, b) or stacks.beats_lu(a, b):
        return None
    *batch, n, k = b.shape
    factors, solution = columns_like(a.shape, a), columns_like(b.shape, b)
    step = Step("getrf", (n, n, _matrix(0, factors), n, _each(1, n * _PIVOT), _each(2, 8)))
    count = math.prod(a.shape[:-2])
    factor = Routines(a.dtype, [step], count, 3, n * n, n**3 // 3, small=SMALL_LU)
    solve = _substitution(a, len(a.shape) == len(b.shape), factors, solution, "N")
    copied, right = Copied(a, factors), Copied(b, solution)
    infos, narrow, pivots = _infos(a.shape[:-2]), _narrow(a.shape[:-2]), _infos((*a.shape[:-2], n))

    def run(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor] | None:
        factors, swaps, info = copied(a), pivots(), infos()
        factor(factors._storage.ptr, swaps._storage.ptr, info._storage.ptr)
        if any_failed(info):
            return None
        result = right(b)
        solve(factors._storage.ptr, swaps._storage.ptr, result._storage.ptr)
        return result, narrow(info)

    return run


def _substitution(a: Spec, is_stack: bool, factors: Spec, solution: Spec, transposition: str) -> Routines:
    """getrs with the factors (0), the pivots (1) and the right sides (2), which the solutions replace."""
    *batch, n, k = solution.shape
    count = math.prod(batch)
    pivots = _each(1, n * _PIVOT)
    own = _matrix(0, factors)
    if not is_stack:  # one matrix: all right sides lie side by side
        count, k = 1, count * k
    right = Place(2, n * k * a.dtype.itemsize)
    step = Step("getrs", (transposition, n, k, own, n, pivots, right, n, Scratch(0)))
    return Routines(a.dtype, [step], count, 3, n * max(n, k), n * n * k, 8, small=SMALL_LU)


def lu_solve_plan(factors: Spec, pivots: Spec, b: Spec, adjoint: bool) -> Callable | None:
    if not _has(factors, "getrs") or not b.numel or not _same_batch(factors, b):
        return None
    if stacks.beats_lu(factors, b):
        return None
    own, solution = columns_like(factors.shape, factors), columns_like(b.shape, b)
    wide = contiguous_spec(pivots.shape, int64)
    solve = _substitution(factors, len(factors.shape) == len(b.shape), own, solution, "C" if adjoint else "N")
    readable, right, swaps = read_as(factors, own), Copied(b, solution), Copied(pivots, wide)

    def run(factors: Tensor, pivots: Tensor, b: Tensor) -> Tensor:
        factors, order, result = readable(factors), swaps(pivots), right(b)
        solve(address(factors), order._storage.ptr, result._storage.ptr)
        return result

    return run


def triangular_plan(a: Spec, b: Spec, upper: bool, left: bool, unitriangular: bool) -> Callable | None:
    if left and (plan := lane_plans.triangular_plan(a, b, upper, unitriangular)) is not None:
        return plan
    if not _has(a, "trsm") or not b.numel or not _same_batch(a, b) or stacks.beats_trsm(a, b):
        return None
    n = a.shape[-1]
    is_stack = len(a.shape) == len(b.shape)
    if not is_stack and not left:
        return None
    *batch, rows, width = b.shape
    count = math.prod(batch)
    solution = columns_like(b.shape, b)
    own, transposed = readable_spec(a)
    uplo = "U" if upper != transposed else "L"
    if not is_stack:
        count, width = 1, count * width
    triangle = Place(0, n * n * a.dtype.itemsize)
    right = Place(1, rows * width * a.dtype.itemsize)
    diagonal = "U" if unitriangular else "N"
    side = "L" if left else "R"
    form = "T" if transposed else "N"
    step = Step("trsm", (side, uplo, form, diagonal, rows, width, 1.0, triangle, n, right, rows))
    routines = Routines(a.dtype, [step], count, 2, max(n * n, rows * width), n * rows * width // 2)
    readable, right_sides = read_as(a, own), Copied(b, solution)

    def run(a: Tensor, b: Tensor) -> Tensor:
        a, result = readable(a), right_sides(b)
        routines(address(a), result._storage.ptr)
        return result

    return run


# Rows; up to here the inverse is the solution for the identity, because then zeros have the signs of PyTorch's, which a person
# who prints a small inverse sees. From getri, which takes 0.6 of the time, the zeros of a diagonal matrix are negative.
_PRINTED = 16


def inverse_plan(a: Spec) -> Callable | None:
    if lane_plans.fits(a):
        return lane_plans.inverse_plan(a)
    if not _has(a, "getrf", "getri") or a.shape[-1] <= _PRINTED:
        return None
    *batch, n, _ = a.shape
    spec = columns_like(a.shape, a)
    work = work_sizes("getri", a.dtype, n, ..., n, None, ..., -1)[4]
    pivots = Scratch(_after(a, work))
    steps = [
        Step("getrf", (n, n, _matrix(0, spec), n, pivots, _each(1, 8))),
        Step("getri", (n, _matrix(0, spec), n, pivots, Scratch(0), work, _each(2, 8))),
    ]
    scratch = _after(a, work) + n * _PIVOT
    routines = Routines(a.dtype, steps, math.prod(batch), 3, n * n, n**3, scratch)
    copied, infos, narrow = Copied(a, spec), _infos(batch), _narrow(batch)

    def run(a: Tensor) -> tuple[Tensor, Tensor] | None:
        result, info, second = copied(a), infos(), infos()
        routines(result._storage.ptr, info._storage.ptr, second._storage.ptr)
        return None if any_failed(info) else (result, narrow(info))

    return run


def cholesky_solve_plan(b: Spec, factor: Spec, upper: bool) -> Callable | None:
    if not _has(factor, "potrs") or not b.numel or not _same_batch(factor, b):
        return None
    if stacks.beats_trsm(factor, b):
        return None
    *batch, n, k = b.shape
    own, solution = columns_like(factor.shape, factor), columns_like(b.shape, b)
    count = math.prod(batch)
    if len(factor.shape) < len(b.shape):
        count, k = 1, count * k
    right = Place(1, n * k * b.dtype.itemsize)
    step = Step("potrs", ("U" if upper else "L", n, k, _matrix(0, own), n, right, n, Scratch(0)))
    routines = Routines(b.dtype, [step], count, 2, n * max(n, k), n * n * k, 8)
    readable, right_sides = read_as(factor, own), Copied(b, solution)

    def run(b: Tensor, factor: Tensor) -> Tensor:
        factor, result = readable(factor), right_sides(b)
        routines(address(factor), result._storage.ptr)
        return result

    return run


def cholesky_inverse_plan(factor: Spec, upper: bool) -> Callable | None:
    if not _has(factor, "potri"):
        return None
    *batch, n, _ = factor.shape
    spec = columns_like(factor.shape, factor)
    step = Step("potri", ("U" if upper else "L", n, _matrix(0, spec), n, Scratch(0)))
    routines = Routines(factor.dtype, [step], math.prod(batch), 1, n * n, n**3 // 3, 8)
    copied = Copied(factor, spec)

    def run(factor: Tensor) -> Tensor:
        result = copied(factor)
        routines(result._storage.ptr)
        return result

    return run


def least_squares_plan(a: Spec, b: Spec, rcond: float, driver: str) -> Callable | None:
    """The default driver, gelsy, for systems that are not underdetermined: it gives solutions and ranks."""
    if driver != "gelsy" or not _has(a, "gelsy", "laset") or not b.numel:
        return None
    *batch, m, n = a.shape
    k = b.shape[-1]
    if m < n or a.shape[:-2] != b.shape[:-2]:
        return None
    spec, solution, ranks = columns_like(a.shape, a), columns_like(b.shape, b), _infos(batch)
    reals = (...,) if a.dtype.is_complex else ()
    work = work_sizes("gelsy", a.dtype, m, n, k, ..., m, ..., m, None, ..., None, ..., -1, *reals)[10]
    real_work = _after(a, work)
    # The order of the columns. gelsy chooses the place of a column only if its element is 0, so clear all of them.
    order = real_work + (_after(a, 2 * n) if reals else 0)
    cleared = -(-n * _PIVOT // a.dtype.itemsize)
    steps = [Step("laset", ("A", cleared, 1, 0.0, 0.0, Scratch(order), cleared))]
    right = _matrix(1, solution)
    arguments: tuple = (
        m,
        n,
        k,
        _matrix(0, spec),
        m,
        right,
        m,
        Scratch(order),
        rcond,
        _each(2, 8),
        Scratch(0),
        work,
    )
    arguments += (*((Scratch(real_work),) if reals else ()), Scratch(order + 8 * n + 16))
    steps.append(Step("gelsy", arguments))
    scratch = order + 8 * n + 24
    routines = Routines(a.dtype, steps, math.prod(batch), 3, m * max(n, k), m * n * n, scratch)
    copied, new = Copied(a, spec), Copied(b, solution)
    nothing = real_like((0,), a)

    def run(a: Tensor, b: Tensor) -> tuple[Tensor, ...] | None:
        if not _is_finite(a) or not _is_finite(b):
            return None
        factors, result, rank = copied(a), new(b), ranks()
        routines(factors._storage.ptr, result._storage.ptr, rank._storage.ptr)
        return result, New(nothing)(), rank, New(nothing)()

    return run


# ---- Eigenvalues and singular values ---------------------------------------------------------------------------------


def eigh_plan(a: Spec, UPLO: str, vectors: bool = True) -> Callable | None:
    if lane_plans.fits(a):
        return lane_plans.eigh_plan(a, UPLO, vectors)
    name = "heevd" if a.dtype.is_complex else "syevd"
    if not _has(a, name):
        return None
    *batch, n, _ = a.shape
    spec, values = columns_like(a.shape, a), real_like(a.shape[:-1], a)
    job = "V" if vectors else "N"
    is_complex = a.dtype.is_complex
    own, single = a.dtype.itemsize, values.dtype.itemsize
    if is_complex:
        sizes = work_sizes(name, a.dtype, job, UPLO, n, ..., n, ..., ..., -1, ..., -1, None, -1)
        work, reals, integers = (max(size, 1) for size in (sizes[4], sizes[6], sizes[8]))
    else:
        sizes = work_sizes(name, a.dtype, job, UPLO, n, ..., n, ..., ..., -1, None, -1)
        work, reals, integers = max(sizes[4], 1), 0, max(sizes[6], 1)
    second = -(-work * own // 64) * 64
    third = second + -(-reals * single // 64) * 64
    tail: tuple = (Scratch(second), reals) if is_complex else ()
    step = Step(
        name,
        (
            job,
            UPLO,
            n,
            _matrix(0, spec),
            n,
            _each(1, n * single),
            Scratch(0),
            work,
            *tail,
            Scratch(third),
            integers,
            _each(2, 8),
        ),
    )
    scratch = third + 8 * integers
    routines = Routines(a.dtype, [step], math.prod(batch), 3, n * n, 3 * n**3, scratch)
    copied, new_values, infos = Copied(a, spec), New(values), _infos(batch)
    in_steps = None
    if vectors and not is_complex and not batch and n >= LEAST_IN_STEPS:
        in_steps = _eigh_in_steps(a, UPLO)

    def run(a: Tensor) -> Any:
        if in_steps is not None and (found := in_steps(a)) is not None:
            return found
        if not _is_finite(a):
            return None
        factor, result, info = copied(a), new_values(), infos()
        routines(factor._storage.ptr, result._storage.ptr, info._storage.ptr)
        if any_failed(info):
            return None
        return (result, factor) if vectors else result

    return run


# Rows; from here on, eigenvectors of single matrices are computed in steps. 128x128 takes 0.65 ms either way on one thread (AMD Zen 4).
LEAST_IN_STEPS = 200


def _eigh_in_steps(a: Spec, UPLO: str) -> Callable | None:
    """Return the steps of LAPACK's syevd for a real matrix: tridiagonal form, its eigenvectors, transformation back.

    Two halves of the eigenvectors are transformed separately, on any number of threads, because their bits depend on the width. The
    columns do not begin at multiples of a power of two, which share few places of the cache. AMD Zen 4, 512x512, one thread: the
    last step takes 6.9 ms with columns side by side, 4.9 ms apart, and 2.6 ms for each half. All of 256x256 takes 2.65 ms instead of 2.9.
    The function returns None where syevd would scale the matrix first, and for numbers that are not finite.
    """
    if not _has(a, "sytrd", "stedc", "ormtr", "lacpy"):
        return None
    n, dtype, size = a.shape[-1], a.dtype, a.dtype.itemsize
    row = (n + 31) // 16 * 16
    padded = make_spec((n, n), (1, row), dtype)
    # The first operand holds the reflectors, the eigenvectors of the tridiagonal matrix, and the scales of the reflectors.
    second, third = row * n * size, 2 * row * n * size
    reflectors, inner, scales = Place(0), Place(0, 0, second), Place(0, 0, third)
    work = work_sizes("sytrd", dtype, UPLO, n, ..., row, ..., ..., ..., ..., -1)[6]
    found = work_sizes("stedc", dtype, "I", n, ..., ..., ..., row, ..., -1, None, -1)
    work, integers = max(work, found[5]), found[7]
    beside, after = Scratch(work * size), Scratch(_after(a, work, n))
    steps = [
        Step("sytrd", (UPLO, n, reflectors, row, Place(1), beside, scales, Scratch(0), work, Place(2))),
        Step(
            "stedc", ("I", n, Place(1), beside, inner, row, Scratch(0), work, after, integers, Place(2, 0, 8))
        ),
    ]
    tridiagonal = Routines(dtype, steps, 1, 4, n * n, n**3, after.offset + 8 * integers)

    def transformation(first: int, width: int, count: int) -> Routines:
        columns = Place(0, width * row * size, second + first * row * size)
        result = Place(3, width * n * size, first * n * size)
        # ormtr takes three times as long with the workspace that it asks for itself, so ask ormqr.
        work = work_sizes("ormqr", dtype, "L", "N", n, width, n, ..., row, ..., ..., row, ..., -1)[8]
        last = Scratch(_after(a, work))
        given = ("L", UPLO, "N", n, width, reflectors, row, scales, columns, row, Scratch(0), work, last)
        steps = [Step("ormtr", given), Step("lacpy", ("A", n, width, columns, row, result, n))]
        return Routines(dtype, steps, count, 4, n * n, n * n * width, last.offset + 8)

    transformations = [transformation(0, n // 2, 2)]
    if n % 2:
        transformations.append(transformation(n - 1, 1, 1))
    allocate, launch = CPU.backend.allocator(third + n * size), COPY.write_plans[padded, a]
    new_values, infos, new = New(real_like(a.shape[:-1], a)), _infos((2,)), New(columns_like(a.shape, a))
    limits = np.finfo(dtype.numpy)
    least = float(limits.tiny / limits.eps) ** 0.5

    def run(a: Tensor) -> Any:
        elements = memory_array(a)
        if not least < max(elements.max(), -elements.min()) < 1 / least:
            return None
        block, values, info, vectors = allocate(), new_values(), infos(), new()
        launch.entry(block.ptr, address(a), launch.meta, launch.count)
        addresses = (block.ptr, values._storage.ptr, info._storage.ptr, vectors._storage.ptr)
        tridiagonal(*addresses)
        if any_failed(info):
            return None
        for transformation in transformations:
            transformation(*addresses)
        return values, vectors

    return run


def eigvalsh_plan(a: Spec, UPLO: str) -> Callable | None:
    return eigh_plan(a, UPLO, vectors=False)


def eig_plan(a: Spec) -> Callable | None:
    return _eigen_plan(a, vectors=True)


def eigvals_plan(a: Spec) -> Callable | None:
    return _eigen_plan(a, vectors=False)


def _eigen_plan(a: Spec, vectors: bool) -> Callable | None:
    if not _has(a, "geev"):
        return None
    *batch, n, _ = a.shape
    is_complex = a.dtype.is_complex
    spec, values = columns_like(a.shape, a), contiguous_spec(a.shape[:-1], a.dtype)
    job = "V" if vectors else "N"
    parts = 1 if is_complex else 2
    query = ("N", job, n, ..., n, *(...,) * parts, ..., n, ..., n, ..., -1, *(...,) * is_complex)
    work = work_sizes("geev", a.dtype, *query)[7 + parts]
    width = n * a.dtype.itemsize
    right = _matrix(parts + 1, spec) if vectors else Scratch(0)
    reals = (Scratch(work * a.dtype.itemsize),) if is_complex else ()
    arguments = ("N", job, n, _matrix(0, spec), n, *[_each(1 + part, width) for part in range(parts)])
    arguments += (Scratch(0), n, right, n, Scratch(0), work, *reals, _each(4, 8))
    scratch = (work + (n if is_complex else 0)) * a.dtype.itemsize
    routines = Routines(a.dtype, [Step("geev", arguments)], math.prod(batch), 5, n * n, 10 * n**3, scratch)
    copied, new_values, new_vectors, infos = Copied(a, spec), New(values), New(spec), _infos(batch)
    wide = a.dtype if is_complex else complex64 if a.dtype is float32 else complex128
    complex_values = New(contiguous_spec(a.shape[:-1], wide))
    complex_vectors = New(columns_spec(tuple(a.shape), wide.numpy))

    def run(a: Tensor) -> Any:
        factor, info = copied(a), infos()
        arrays = [new_values() for _ in range(parts)]
        if vectors:
            arrays.append(new_vectors())
        unused = (0,) * (3 - len(arrays))
        routines(factor._storage.ptr, *[part._storage.ptr for part in arrays], *unused, info._storage.ptr)
        if any_failed(info):
            return None
        if is_complex:
            return tuple(arrays) if vectors else arrays[0]
        result = complex_values()
        array = memory_array(result)
        array.real, array.imag = memory_array(arrays[0]), memory_array(arrays[1])
        if not vectors:
            return result
        pairs = complex_vectors()
        _join_pairs(memory_array(pairs), memory_array(arrays[2]), array.imag)
        return result, pairs

    return run


def _join_pairs(vectors: np.ndarray, parts: np.ndarray, imaginary: np.ndarray) -> None:
    """Complex eigenvectors from LAPACK's: two conjugate vectors are stored as their real part and their imaginary part."""
    vectors, parts = vectors.swapaxes(-2, -1), parts.swapaxes(-2, -1)
    vectors[...] = parts
    *stack, first = np.nonzero(imaginary > 0)
    if len(first):
        real, own = (*stack, first), (*stack, first + 1)
        vectors[real] += 1j * parts[own]
        vectors[own] = vectors[real].conj()


def svd_plan(a: Spec, full_matrices: bool, infinite: bool) -> Callable | None:
    return _singular_plan(a, "A" if full_matrices else "S")


def svdvals_plan(a: Spec) -> Callable | None:
    return _singular_plan(a, "N")


def _singular_plan(a: Spec, job: str) -> Callable | None:
    if not _has(a, "gesdd"):
        return None
    *batch, m, n = a.shape
    k = min(m, n)
    spec, values = columns_like(a.shape, a), real_like((*batch, k), a)
    left = columns_like((*batch, m, m if job == "A" else k), a)
    right = columns_like((*batch, n if job == "A" else k, n), a)
    own, single = a.dtype.itemsize, values.dtype.itemsize
    is_complex = a.dtype.is_complex
    rows = right.shape[-2]
    query = (job, m, n, ..., m, ..., ..., m, ..., rows, ..., -1, *((...,) if is_complex else ()), None)
    work = work_sizes("gesdd", a.dtype, *query)[9]
    reals = _svd_reals(m, n, job) if is_complex else 0
    second = -(-work * own // 64) * 64
    third = second + -(-reals * single // 64) * 64
    step = Step(
        "gesdd",
        (
            job,
            m,
            n,
            _matrix(0, spec),
            m,
            _each(1, k * single),
            _matrix(2, left) if job != "N" else Scratch(0),
            m,
            _matrix(3, right) if job != "N" else Scratch(0),
            rows,
            Scratch(0),
            work,
            *((Scratch(second),) if is_complex else ()),
            Scratch(third),
            _each(4, 8),
        ),
    )
    routines = Routines(a.dtype, [step], math.prod(batch), 5, m * n, 5 * m * n * k, third + 64 * k)
    copied, infos = Copied(a, spec), _infos(batch)
    new_values, new_left, new_right = New(values), New(left), New(right)

    def run(a: Tensor) -> Any:
        if not _is_finite(a):
            return None
        factor, result, info = copied(a), new_values(), infos()
        addresses = factor._storage.ptr, result._storage.ptr
        if job == "N":
            routines(*addresses, 0, 0, info._storage.ptr)
            return None if any_failed(info) else result
        U, Vh = new_left(), new_right()
        routines(*addresses, U._storage.ptr, Vh._storage.ptr, info._storage.ptr)
        return None if any_failed(info) else (U, result, Vh)

    return run


def _svd_reals(m: int, n: int, job: str) -> int:
    """Return the real workspace of gesdd for complex matrices, from LAPACK's documentation."""
    least, most = min(m, n), max(m, n)
    if job == "N":
        return 7 * least
    return max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least)
