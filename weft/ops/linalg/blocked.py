"""Plans for single large matrices, which are factorized in blocks of columns.

A block is factorized on one thread. Then the columns behind it are updated in two halves, or more parts, which the workers share. OpenBLAS's own threads
gain nothing at these sizes, because they wait for each other in each of the many products of a block. The parts are the same on any number of
threads, because the bits of a product depend on its width. QR of 512x512 float32 takes 6.9 ms on one thread, and LAPACK's geqrf and orgqr
take 9.6 (AMD Zen 4).
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.device import CPU
from ...core.dtype import float32, float64, int32, int64
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, address
from ...engine.blas import ONE_THREAD
from ...engine.lapack import Place, Routines, Scratch, Step, available
from ...families.array_op import memory_array
from ...families.map import COPY
from .lapack import columns_like
from .operands import New, any_failed

# Columns of a block. On one thread of an AMD Zen 4, QR of 512x512 float32 takes 5.9 ms with 64, and 6.9 with 32 or 128.
_BLOCK = 64
# The same for LU: 128 takes 1.2 ms for the updates of 512x512, and 64 takes 1.4.
_LU_BLOCK = 128
# Rows of the smallest matrices whose LU factors are computed in blocks. One thread takes 0.5 ms in blocks and 0.35 without for 256x256,
# and 1.95 and 1.9 for 512x512; of these 1.95, two threads share 1.4.
_LEAST_LU = 384
# Rows and columns of the smallest matrices.
_LEAST = 192
# Updated columns are cut into two parts for each _WIDE of them, so that more than two threads have work, but not into more than _MOST_PARTS.
_WIDE, _MOST_PARTS = 512, 16
# Columns behind a matrix, because the parts of a width that they do not divide reach further.
_SPARE = _MOST_PARTS - 1


def fits(a: Spec, *routines: str) -> bool:
    """Whether this is a single matrix that takes less time in blocks, and LAPACK has these routines."""
    is_large = a.numel > 0 and len(a.shape) == 2 and min(a.shape) >= _LEAST
    return is_large and a.device is CPU and a.dtype in (float32, float64) and available(a.dtype, *routines)


def distance(rows: int) -> int:
    """Elements from one column to the next in a workspace. Columns at multiples of a power of two share few places of the cache."""
    return (rows + 31) // 16 * 16


def cut(width: int) -> tuple[int, int]:
    """How many parts so many columns are cut into, and the columns of each."""
    parts = min(max(width // _WIDE, 1) * 2, _MOST_PARTS)
    return parts, -(-width // parts)


def qr_plan(a: Spec, mode: str) -> Callable:
    """Householder's reflections in LAPACK's compact form: the reflections of a block are I - V T V'."""
    (m, n), dtype, size = a.shape, a.dtype, a.dtype.itemsize
    count, row = min(m, n), distance(m)
    width = m if mode == "complete" else count
    # The first operand holds a, the triangles T, and Q.
    triangles = row * (n + _SPARE)
    basis = triangles + _BLOCK * count
    total = basis + (row * (width + _SPARE) if mode != "r" else 0)

    def element(matrix: int, i: int, j: int, stride: int = 0) -> Place:
        return Place(0, stride * size, (matrix + j * row + i) * size)

    def reflect(form: str, start: int, matrix: int, first: int, end: int) -> Routines | None:
        """Apply the reflections of a block to the columns from `first` to `end` of a matrix."""
        parts, part = cut(end - first)
        if not part:
            return None
        columns = min(_BLOCK, count - start)
        vectors = element(0, start, start), row, Place(0, 0, (triangles + _BLOCK * start) * size), _BLOCK
        target = element(matrix, start, first, part * row), row
        scratch = part * columns * size
        given = "L", form, m - start, part, columns, columns, *vectors, *target, Scratch(0), Scratch(scratch)
        step, work = Step("gemqrt", given), 2 * m * part * columns
        return Routines(dtype, [step], parts, 2, m * part, work, scratch + 8)

    def factorize(start: int) -> Routines:
        columns = min(_BLOCK, count - start)
        triangle = Place(0, 0, (triangles + _BLOCK * start) * size)
        scratch = columns * columns * size
        given = m - start, columns, columns, element(0, start, start), row, triangle, _BLOCK
        step = Step("geqrt", (*given, Scratch(0), Scratch(scratch)))
        return Routines(dtype, [step], 1, 2, m * columns, 0, scratch + 8)

    starts = range(0, count, _BLOCK)
    forwards = [
        Routines(dtype, [Step("laset", ("A", m, _SPARE, 0.0, 0.0, element(0, 0, n), row))], 1, 2, m, 0)
    ]
    for start in starts:
        update = reflect("T", start, 0, min(start + _BLOCK, count), n)
        forwards += [factorize(start), *([update] if update else [])]
    upper = columns_like((width, n), a)
    parts = [
        Step("lacpy", ("U", width, n, element(0, 0, 0), row, Place(1), width)),
        Step("laset", ("L", width - 1, n, 0.0, 0.0, Place(1, 0, size), width)),
    ]
    backwards = []
    if mode != "r":
        parts.append(Step("laset", ("A", m, width + _SPARE, 0.0, 1.0, element(basis, 0, 0), row)))
        backwards = [reflect("N", start, basis, start, width) for start in reversed(starts)]
    steps = [*forwards, Routines(dtype, parts, 1, 2, m * n, 0), *filter(None, backwards)]

    allocate, new_upper, new_basis = (
        CPU.backend.allocator(total * size),
        New(upper),
        New(columns_like((m, width), a)),
    )
    copy = COPY.write_plans[make_spec((m, n), (1, row), dtype), a]
    found = make_spec((m, width), (1, row), dtype)
    copy_back = COPY.write_plans[new_basis.spec, found]

    def run(a: Tensor) -> tuple[Tensor, ...]:
        block, upper = allocate(), new_upper()
        copy.entry(block.ptr, address(a), copy.meta, copy.count)
        with ONE_THREAD:
            for step in steps:
                step(block.ptr, upper._storage.ptr)
        if mode == "r":
            return (upper,)
        result = new_basis()
        copy_back.entry(result._storage.ptr, block.ptr + basis * size, copy_back.meta, copy_back.count)
        return result, upper

    return run


def solve_plan(a: Spec, b: Spec) -> Callable:
    """LU factors with row swaps, as in LAPACK's getrf. The right sides lie behind the columns of the matrix, and are eliminated with it."""
    (n, k), dtype, size = b.shape, a.dtype, a.dtype.itemsize
    row = distance(n)
    # The first operand holds a, b, and the swaps; the second one an info for each block.
    pivots = -(-row * (n + k + _SPARE) * size // 8) * 8

    def element(i: int, j: int, stride: int = 0) -> Place:
        return Place(0, stride * size, (j * row + i) * size)

    def factorize(start: int, columns: int) -> Routines:
        given = n - start, columns, element(start, start), row, Place(0, 0, pivots + 8 * start)
        step = Step("getrf", (*given, Place(1, 0, 8 * (start // _LU_BLOCK))))
        return Routines(dtype, [step], 1, 2, n * columns, 0)

    def update(start: int, columns: int) -> Routines:
        end = start + columns
        parts, part = cut(n + k - end)
        upper, lower = (element(i, end, part * row) for i in (start, end))
        left = element(end, start), row
        swaps = Place(0, 0, pivots + 8 * start)
        triangle = "L", "L", "N", "U", columns, part, 1.0, element(start, start), row, upper, row
        product = "N", "N", n - end, part, columns, -1.0, *left, upper, row, 1.0, lower, row
        steps = [
            Step("laswp", (part, upper, row, 1, columns, swaps, 1)),
            Step("trsm", triangle),
            Step("gemm", product),
        ]
        return Routines(dtype, steps, parts, 2, n * part, n * part * columns)

    starts = range(0, n, _LU_BLOCK) if n >= _LEAST_LU else range(1)
    if n < _LEAST_LU:
        steps = [factorize(0, n + k)]
    else:
        spare = Step("laset", ("A", n, _SPARE, 0.0, 0.0, element(0, n + k), row))
        steps = [Routines(dtype, [spare], 1, 2, n, 0)]
        for start in starts:
            columns = min(_LU_BLOCK, n - start)
            steps += [factorize(start, columns), update(start, columns)]
    back = "L", "U", "N", "N", n, k, 1.0, element(0, 0), row, element(0, n), row
    steps.append(Routines(dtype, [Step("trsm", back)], 1, 2, n * max(n, k), 0))

    allocate, new_info = CPU.backend.allocator(pivots + 8 * n), New(contiguous_spec((), int32))
    new, new_infos = New(columns_like(b.shape, b)), New(contiguous_spec((len(starts),), int64))
    copy, copy_right = (COPY.write_plans[make_spec(x.shape, (1, row), dtype), x] for x in (a, b))
    copy_back = COPY.write_plans[new.spec, make_spec((n, k), (1, row), dtype)]
    right = row * n * size

    def run(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor] | None:
        block, infos = allocate(), new_infos()
        copy.entry(block.ptr, address(a), copy.meta, copy.count)
        copy_right.entry(block.ptr + right, address(b), copy_right.meta, copy_right.count)
        with ONE_THREAD:
            for step in steps:
                step(block.ptr, infos._storage.ptr)
        if any_failed(infos):
            return None
        result, info = new(), new_info()
        copy_back.entry(result._storage.ptr, block.ptr + right, copy_back.meta, copy_back.count)
        memory_array(info)[...] = 0
        return result, info

    return run
