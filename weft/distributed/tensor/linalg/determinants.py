"""Determinants, from the LU factorization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.linalg import linalg
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .lu import factorize
from .rows import Rows, everywhere, part_of, rows_of


def _diagonal(a: Any, rows: Rows) -> tuple[Tensor, int]:
    """The diagonal of U, all of it, and -1 if an odd number of rows changed places."""
    part = part_of(a, rows)
    pivots, _ = factorize(part, rows)
    swaps = sum(pivot != place for place, pivot in enumerate(pivots.tolist(), 1))
    return rows.collected(part.diagonal(rows.start), 0), -1 if swaps % 2 else 1


def _by_lu(op: Any, tensors: tuple, static: dict[str, Any], compute: Callable[[Tensor, int], tuple]) -> Any:
    """The results of an op, each the same on all processes, that `compute(diagonal, sign)` finds."""
    (a,) = tensors
    rows = rows_of(a)
    if rows is None:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        found = tuple([everywhere(each, rows) for each in compute(*_diagonal(a, rows))])
    return recorded(op, found if len(found) > 1 else found[0], tensors)


@rule_for(linalg._linalg_det)
def _det(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    return _by_lu(op, tensors, static, lambda diagonal, sign: (diagonal.prod() * sign,))


@rule_for(linalg._linalg_slogdet)
def _slogdet(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    def compute(diagonal: Tensor, sign: int) -> tuple[Tensor, Tensor]:
        return diagonal.sgn().prod() * sign, diagonal.abs().log().sum()

    return _by_lu(op, tensors, static, compute)
