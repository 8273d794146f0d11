"""Plans for single large matrices, which are factorized in blocks of columns.

A block is factorized on one thread. Then the columns behind it are updated in two halves, which the workers share. OpenBLAS's own threads
gain nothing at these sizes, because they wait for each other in each of the many products of a block. There are two halves on any number of
threads, because the bits of a product depend on its width. QR of 512x512 float32 takes 6.9 ms on one thread, and LAPACK's geqrf and orgqr
take 9.6 (AMD Zen 4).
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.device import CPU
from ...core.dtype import float32, float64
from ...core.spec import Spec, make_spec
from ...core.tensor import Tensor, address
from ...engine.blas import ONE_THREAD
from ...engine.lapack import Place, Routines, Scratch, Step, available
from ...families.map import COPY
from .operands import New, columns_like

# Columns of a block. On one thread of an AMD Zen 4, QR of 512x512 float32 takes 5.9 ms with 64, and 6.9 with 32 or 128.
_BLOCK = 64
# Rows and columns of the smallest matrices.
_LEAST = 192


def fits(a: Spec, *routines: str) -> bool:
    """Whether this is a single matrix that takes less time in blocks, and LAPACK has these routines."""
    is_large = a.numel > 0 and len(a.shape) == 2 and min(a.shape) >= _LEAST
    return is_large and a.device is CPU and a.dtype in (float32, float64) and available(a.dtype, *routines)


def distance(rows: int) -> int:
    """Elements from one column to the next in a workspace. Columns at multiples of a power of two share few places of the cache."""
    return (rows + 31) // 16 * 16


def qr_plan(a: Spec, mode: str) -> Callable:
    """Householder's reflections in LAPACK's compact form: the reflections of a block are I - V T V'."""
    (m, n), dtype, size = a.shape, a.dtype, a.dtype.itemsize
    count, row = min(m, n), distance(m)
    width = m if mode == "complete" else count
    # The first operand holds a, the triangles T, and Q. Halves of an odd width reach one column further.
    triangles = row * (n + 1)
    basis = triangles + _BLOCK * count
    total = basis + (row * (width + 1) if mode != "r" else 0)

    def element(matrix: int, i: int, j: int, stride: int = 0) -> Place:
        return Place(0, stride * size, (matrix + j * row + i) * size)

    def reflect(form: str, start: int, matrix: int, first: int, end: int) -> Routines | None:
        """Apply the reflections of a block to the columns from `first` to `end` of a matrix, in two halves."""
        half, columns = -(-(end - first) // 2), min(_BLOCK, count - start)
        if not half:
            return None
        vectors = element(0, start, start), row, Place(0, 0, (triangles + _BLOCK * start) * size), _BLOCK
        target = element(matrix, start, first, half * row), row
        scratch = half * columns * size
        given = "L", form, m - start, half, columns, columns, *vectors, *target, Scratch(0), Scratch(scratch)
        return Routines(dtype, [Step("gemqrt", given)], 2, 2, m * half, 2 * m * half * columns, scratch + 8)

    def factorize(start: int) -> Routines:
        columns = min(_BLOCK, count - start)
        triangle = Place(0, 0, (triangles + _BLOCK * start) * size)
        scratch = columns * columns * size
        given = m - start, columns, columns, element(0, start, start), row, triangle, _BLOCK
        step = Step("geqrt", (*given, Scratch(0), Scratch(scratch)))
        return Routines(dtype, [step], 1, 2, m * columns, 0, scratch + 8)

    starts = range(0, count, _BLOCK)
    forwards = [Routines(dtype, [Step("laset", ("A", m, 1, 0.0, 0.0, element(0, 0, n), row))], 1, 2, m, 0)]
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
        parts.append(Step("laset", ("A", m, width + 1, 0.0, 1.0, element(basis, 0, 0), row)))
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
