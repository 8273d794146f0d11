"""Plans for stacks of small real matrices, which kernels factorize side by side (`engine/lanes.py`).

Each `..._plan` takes and returns what the plan of its name in `native.py` does. It is None for single and for large matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.device import CPU
from ...core.dtype import float32, float64, int32
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, address
from ...engine.lanes import LARGEST, MOST_COLUMNS, UNIT, UPPER, Lanes
from ...engine.sliding import LINE
from ...families.array_op import memory_array
from .lapack import columns_like
from .operands import New, any_failed, read_as, readable_spec

# Matrices; a group of vectors that hold fewer takes longer than LAPACK on each of them.
FEWEST = 4


def fits(a: Spec) -> bool:
    """Whether kernels work on these matrices, and take less time than LAPACK."""
    return (
        a.device is CPU
        and a.dtype in (float32, float64)
        and 0 < min(a.shape[-2:])
        and max(a.shape[-2:]) <= LARGEST
        and math.prod(a.shape[:-2]) >= FEWEST
    )


def _source(a: Spec) -> tuple[Callable[[Tensor], Tensor], int, int]:
    """How to get a stack in an order that kernels read, and the distances between its rows and columns in their workspace."""
    height, width = a.shape[-2:]
    readable, is_by_rows = readable_spec(a)
    return read_as(a, readable), *((width * LINE, LINE) if is_by_rows else (LINE, height * LINE))


def _infos(batch: Sequence[int]) -> New:
    return New(contiguous_spec(tuple(batch), int32))


def lu_plan(a: Spec) -> Callable | None:
    if not fits(a):
        return None
    *batch, m, n = a.shape
    k = min(m, n)
    readable, row, column = _source(a)
    lanes = Lanes("lu", a.dtype, math.prod(batch), m * n * k, 4, height=m, width=n, row=row, column=column)
    new, new_pivots, new_infos = New(columns_like(a.shape, a)), _infos((*batch, k)), _infos(batch)

    def run(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, factors, pivots, infos = readable(a), new(), new_pivots(), new_infos()
        lanes(address(a), factors._storage.ptr, pivots._storage.ptr, infos._storage.ptr)
        return factors, pivots, infos

    return run


def triangle_plan(a: Spec) -> Callable | None:
    if not fits(a):
        return None
    *batch, n, _ = a.shape
    readable, row, column = _source(a)
    lanes = Lanes("triangle", a.dtype, math.prod(batch), n**3, 3, height=n, width=n, row=row, column=column)
    new_diagonals = New(contiguous_spec((*batch, n), a.dtype))
    new_signs = New(contiguous_spec(tuple(batch), a.dtype))

    def run(a: Tensor) -> tuple[np.ndarray, Any]:
        a, diagonals, signs = readable(a), new_diagonals(), new_signs()
        lanes(address(a), diagonals._storage.ptr, signs._storage.ptr)
        return np.moveaxis(memory_array(diagonals), -1, 0), memory_array(signs)

    return run


def solve_plan(a: Spec, b: Spec) -> Callable | None:
    *batch, n, k = b.shape
    if a.shape[:-2] != b.shape[:-2] or not fits(a) or not 0 < k <= MOST_COLUMNS:
        return None
    readable, row, column = _source(a)
    right, beside_row, beside_column = _source(b)
    sizes = {"height": n, "width": n, "beside": k, "row": row, "column": column}
    sizes |= {"beside_row": beside_row, "beside_column": beside_column}
    lanes = Lanes("solve", a.dtype, math.prod(batch), n * n * (n + k), 4, **sizes)
    new, new_infos = New(columns_like(b.shape, b)), _infos(batch)

    def run(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor] | None:
        a, b, result, infos = readable(a), right(b), new(), new_infos()
        lanes(address(a), address(b), result._storage.ptr, infos._storage.ptr)
        return None if any_failed(infos) else (result, infos)

    return run


def triangular_plan(a: Spec, b: Spec, upper: bool, unitriangular: bool) -> Callable | None:
    """Triangles on the left of the solutions."""
    *batch, n, k = b.shape
    if a.shape[:-2] != b.shape[:-2] or not fits(a) or not 0 < k <= MOST_COLUMNS:
        return None
    readable, row, column = _source(a)
    right, beside_row, beside_column = _source(b)
    kind = upper * UPPER + unitriangular * UNIT
    sizes = {"height": n, "width": n, "beside": k, "rows": kind, "row": row, "column": column}
    sizes |= {"beside_row": beside_row, "beside_column": beside_column}
    lanes = Lanes("substitute", a.dtype, math.prod(batch), n * n * k // 2, 3, **sizes)
    new = New(columns_like(b.shape, b))

    def run(a: Tensor, b: Tensor) -> Tensor:
        a, b, result = readable(a), right(b), new()
        lanes(address(a), address(b), result._storage.ptr)
        return result

    return run


def inverse_plan(a: Spec) -> Callable | None:
    if not fits(a):
        return None
    *batch, n, _ = a.shape
    readable, row, column = _source(a)
    sizes = {"height": n, "width": n, "beside": n, "row": row, "column": column}
    lanes = Lanes("inverse", a.dtype, math.prod(batch), 2 * n**3, 4, **sizes)
    new, new_infos = New(columns_like(a.shape, a)), _infos(batch)

    def run(a: Tensor) -> tuple[Tensor, Tensor] | None:
        a, result, infos = readable(a), new(), new_infos()
        lanes(address(a), 0, result._storage.ptr, infos._storage.ptr)
        return None if any_failed(infos) else (result, infos)

    return run


def cholesky_plan(a: Spec, upper: bool) -> Callable | None:
    if not fits(a):
        return None
    *batch, n, _ = a.shape
    readable, row, column = _source(a)
    order = (LINE, n * LINE)
    if upper:  # the lower factor of the transpose, stored by rows
        row, column, order = column, row, (n * LINE, LINE)
    sizes = {
        "height": n,
        "width": n,
        "row": row,
        "column": column,
        "beside_row": order[0],
        "beside_column": order[1],
    }
    lanes = Lanes("cholesky", a.dtype, math.prod(batch), n**3 // 2, 3, **sizes)
    new, new_infos = New(columns_like(a.shape, a)), _infos(batch)

    def run(a: Tensor) -> tuple[Tensor, Tensor] | None:
        a, factor, infos = readable(a), new(), new_infos()
        lanes(address(a), factor._storage.ptr, infos._storage.ptr)
        return None if any_failed(infos) else (factor, infos)

    return run


def qr_plan(a: Spec, mode: str) -> Callable | None:
    if not fits(a):
        return None
    *batch, m, n = a.shape
    rows = m if mode == "complete" else min(m, n)
    beside = 0 if mode == "r" else rows
    readable, row, column = _source(a)
    sizes = {"height": m, "width": n, "beside": beside, "rows": rows, "row": row, "column": column}
    lanes = Lanes("qr", a.dtype, math.prod(batch), 4 * m * n * min(m, n), 3, **sizes)
    new_upper, new_basis = New(columns_like((*batch, rows, n), a)), New(columns_like((*batch, m, rows), a))

    def run(a: Tensor) -> tuple[Tensor, ...]:
        a, upper = readable(a), new_upper()
        if not beside:
            lanes(address(a), upper._storage.ptr, 0)
            return (upper,)
        basis = new_basis()
        lanes(address(a), upper._storage.ptr, basis._storage.ptr)
        return basis, upper

    return run


def eigh_plan(a: Spec, UPLO: str, vectors: bool) -> Callable | None:
    if not fits(a):
        return None
    *batch, n, _ = a.shape
    readable, row, column = _source(a)
    if UPLO == "U":  # the lower triangle of the transpose
        row, column = column, row
    sizes = {"height": n, "width": n, "beside": n if vectors else 0, "row": row, "column": column}
    lanes = Lanes("eigh", a.dtype, math.prod(batch), (9 if vectors else 2) * n**3, 4, **sizes)
    new_values, new_infos = New(contiguous_spec(a.shape[:-1], a.dtype)), _infos(batch)
    new = New(columns_like(a.shape, a))

    def run(a: Tensor) -> Any:
        a, values, infos = readable(a), new_values(), new_infos()
        found = new() if vectors else None
        places = values._storage.ptr, found._storage.ptr if found is not None else 0
        lanes(address(a), *places, infos._storage.ptr)
        if any_failed(infos):
            return None
        return values if found is None else (values, found)

    return run
