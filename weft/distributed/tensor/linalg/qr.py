"""QR of a tall matrix: each process factorizes its rows, and all of them the stack of the small triangles.

Source: Demmel, Grigori, Hoemmen, Langou 2012, "Communication-optimal parallel and sequential QR and LU factorizations" (TSQR).
"""

from __future__ import annotations

from typing import Any

from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ....ops.linalg import eigen, factorizations
from ... import _collectives
from .._others import matrix_op_on_whole
from .._rules import recorded, rule_for
from .rows import Rows, everywhere, joined, part_of, rows_of


def tall_qr(part: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """The rows of Q that belong to this process, and R."""
    count, n = part.spec.shape
    q, r = factorizations.linalg_qr(part) if count else (part, part)
    kept = r.spec.shape[0]
    triangle = part.new_zeros((n, n))
    triangle[:kept] = r
    stack = [part.new_empty((n, n)) for _ in rows.bounds]
    _collectives.all_gather(stack, triangle, group=rows.group)
    q_of_stack, r = factorizations.linalg_qr(cat(tuple(stack)))
    first = rows.group.rank() * n
    return q @ q_of_stack[first : first + kept], r


@rule_for(factorizations._linalg_qr)
def _qr(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,), mode = tensors, static["mode"]
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None or m < n or mode == "complete":
        return matrix_op_on_whole(op, tensors, static)
    with unrecorded():
        q, r = tall_qr(part_of(a, rows), rows)
    found = (everywhere(r, rows),) if mode == "r" else (joined(q, m, rows), everywhere(r, rows))
    return recorded(op, found, tensors, (mode,))


@rule_for(eigen._linalg_svd)
def _svd(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    """The singular values of a tall matrix are those of R, and Q turns its left vectors."""
    (a,) = tensors
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None or m < n or static["full_matrices"] and m > n:
        return matrix_op_on_whole(op, tensors, static)
    with unrecorded():
        q, r = tall_qr(part_of(a, rows), rows)
        left, values, right = op(r, full_matrices=False, infinite=static["infinite"])
        found = joined(q @ left, m, rows), everywhere(values, rows), everywhere(right, rows)
    return recorded(op, found, tensors, (static["full_matrices"], static["infinite"]))


@rule_for(eigen._svdvals)
def _svdvals(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,) = tensors
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None or m < n:
        return matrix_op_on_whole(op, tensors, static)
    with unrecorded():
        values = op(tall_qr(part_of(a, rows), rows)[1])
    return recorded(op, everywhere(values, rows), tensors)
