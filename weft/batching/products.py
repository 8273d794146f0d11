"""Products of matrices: the batch is one more dim of the stacks, or more rows."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, as_batch, batched_at, physical, wrap
from ..core.tensor import Tensor
from ..families.product import Product
from ..ops.linalg.matmul import MATMUL
from .alignment import INSERT
from .rules import Recordable, any_batched, batching_rule, check_writable


@batching_rule(Product)
def _product(level: Level, op: Product, args: tuple, static: dict[str, Any]) -> Recordable:
    a, b = args
    x, y = physical(a, level), physical(b, level)
    step = op.step(a.spec, b.spec) if op.step else op
    if not any_batched(args, level):
        return Recordable(op(x, y), args, (), step)
    op.check(a.spec, b.spec)
    rows, columns = len(a.spec.shape), len(b.spec.shape)
    if rows == 1 and columns == 2 and not batched_at(b, level):
        result = MATMUL(x, y)  # the samples are the rows of a matrix
    elif rows == 2 and columns == 1 and not batched_at(a, level):
        result = MATMUL(y, x.transpose(0, 1))
    else:
        result = _stacks(a, b, x, y, level)
    return Recordable(wrap(result, level), args, (), step)


def _stacks(a: Tensor, b: Tensor, x: Tensor, y: Tensor, level: Level) -> Tensor:
    """The products of samples of any rank: vectors become matrices, and stacks broadcast."""
    rows, columns = len(a.spec.shape), len(b.spec.shape)
    if rows == 1:
        x = x.unsqueeze(-2)
    if columns == 1:
        y = y.unsqueeze(-1)
    missing = max(rows, 2) - max(columns, 2)
    if missing < 0 and batched_at(a, level):
        x = INSERT(x, 1, -missing)
    if missing > 0 and batched_at(b, level):
        y = INSERT(y, 1, missing)
    result = MATMUL(x, y)
    if columns == 1:
        result = result.squeeze(-1)
    return result.squeeze(-1 if columns == 1 else -2) if rows == 1 else result


@batching_rule(Product, method="write")
def _write(level: Level, op: Product, args: tuple, static: dict[str, Any]) -> None:
    target, a, b = args
    check_writable(target, (a, b), level)
    result: Any = _product(level, op, (a, b), {}).result
    physical(target, level).copy_(as_batch(result, level) if batched_at(target, level) else result)
