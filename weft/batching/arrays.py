"""Ops on arrays, which NumPy, SciPy or LAPACK compute."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, as_batch, batched_at, physical, wrap
from ..core.dtype import int64
from ..core.tensor import Tensor
from ..families.array_op import ArrayOp
from ..ops.linalg.lapack import MatrixOp
from ..ops.order import searching, sorting
from ..ops.order.keys import KEYS
from ..ops.signal import spectral
from .alignment import INSERT
from .fallback import loop_over, per_sample
from .reductions import wrapped
from .rules import Recordable, any_batched, batching_rule, rule_for


@batching_rule(MatrixOp)
def _matrix_op(level: Level, op: MatrixOp, tensors: tuple, static: dict[str, Any]) -> Recordable:
    """All of them work on stacks of matrices, of which the batch is one more dim."""
    if any_batched(tensors, level):
        batches = [as_batch(x, level) for x in tensors]
        if len(tensors) > 1 and len({len(x.spec.shape) for x in tensors}) > 1:
            found = _stacks(level, op, tensors, batches, static)
        else:
            found = _samples(op(*batches, **static), level)
    else:
        found = op(*[physical(x, level) for x in tensors], **static)
    return Recordable(found, tensors, tuple([static[name] for name in op._static[len(tensors) :]]))


def _stacks(level: Level, op: MatrixOp, tensors: tuple, batches: list, static: dict[str, Any]) -> Any:
    """Of operands with different numbers of dims, some may be vectors and some stacks that broadcast: only the op knows."""
    try:
        return _samples(op(*batches, **static), level)
    except (ValueError, RuntimeError):
        return per_sample(level, op.name, op, tensors, static)


def _samples(found: Any, level: Level) -> Any:
    """The results of an op; a result that is empty for every batch (residuals, for instance) is the same for all samples."""
    if isinstance(found, Tensor):
        return wrap(found, level) if found.spec.shape[0] == level.size else found
    return type(found)([_samples(each, level) for each in found])


@batching_rule(ArrayOp)
def _array_op(level: Level, op: ArrayOp, args: tuple, kwargs: dict[str, Any]) -> Recordable:
    return loop_over(level, op, args, kwargs)


def along_dim(position: int) -> Any:
    """The rule of ops of one tensor that work along a dim, which is the argument at `position`."""

    def rule(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Recordable:
        input = args[0]
        value = physical(input, level)
        if not batched_at(input, level):
            found = op(value, *args[1:])
        elif input.spec.shape:
            found = wrapped(op(value, *args[1:position], args[position] + 1, *args[position + 1 :]), level)
        else:
            found = op(INSERT(value, 1, 1), *args[1:position], 1, *args[position + 1 :])
            squeeze = _squeezed(args, op)
            found = wrapped(tuple([squeeze(each) for each in found]), level)
        return Recordable(found, args)

    return rule


def _squeezed(args: tuple, op: Any) -> Any:
    return lambda found: found.reshape(found.shape[:1])


rule_for(sorting._sort)(along_dim(1))
rule_for(sorting._topk)(along_dim(2))
rule_for(*sorting._SELECTIONS.values())(along_dim(1))


@rule_for(*sorting._MEDIANS_OF_ALL)
def _median_of_all(level: Level, op: ArrayOp, args: tuple, static: dict[str, Any]) -> Recordable:
    input, choose = args
    if not batched_at(input, level) or not input.spec.numel:
        return loop_over(level, op, args, static)
    rows = physical(input, level).flatten(1) if input.spec.shape else INSERT(physical(input, level), 1, 1)
    return Recordable(wrap(sorting._SELECTIONS[op.name](rows, 1, False, choose)[0], level), args)


@rule_for(searching._searchsorted)
def _searchsorted(level: Level, op: ArrayOp, args: tuple, static: dict[str, Any]) -> Recordable:
    boundaries, input, sorter, *options = args
    if not any_batched((boundaries, sorter), level) and boundaries.spec.ndim == 1:
        order = None if sorter is None else physical(sorter, level)
        found = op(physical(boundaries, level), physical(input, level), order, *options)
        return Recordable(wrap(found, level) if batched_at(input, level) else found, args)
    values, order = as_batch(input, level), None if sorter is None else as_batch(sorter, level)
    # A single sequence takes values of any shape, a stack of sequences takes one row for each.
    rows = values.reshape(level.size, input.spec.numel) if boundaries.spec.ndim == 1 else values
    found = op(as_batch(boundaries, level), rows, order, *options)
    return Recordable(wrap(found.reshape(values.spec.shape), level), args)


@rule_for(searching._isin)
def _isin(level: Level, op: ArrayOp, args: tuple, static: dict[str, Any]) -> Recordable:
    elements, test_elements, assume_unique, invert = args
    if not batched_at(test_elements, level):
        found = op(physical(elements, level), physical(test_elements, level), assume_unique, invert)
        return Recordable(wrap(found, level) if batched_at(elements, level) else found, args)
    values, count = as_batch(elements, level), test_elements.spec.numel
    if not count:
        return loop_over(level, op, args, static)
    # Keys are compared, because a search would go right of NaN, behind equal elements.
    rows = KEYS[False](as_batch(test_elements, level).reshape(level.size, count)).sort(1).values
    wanted = values.reshape(level.size, elements.spec.numel)
    keys = KEYS[False](wanted)
    places = searching._searchsorted(rows, keys, None, "left", int64).clamp(max=count - 1)
    found = ((rows.gather(1, places) == keys) & (wanted == wanted)) ^ invert
    return Recordable(wrap(found.reshape(values.spec.shape), level), args)


@rule_for(spectral._fft_c2c, spectral._fft_r2c)
def _transform(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Recordable:
    input, dims, *rest = args
    if not batched_at(input, level):
        return Recordable(op(physical(input, level), dims, *rest), args)
    moved = tuple([dim + 1 for dim in dims])
    return Recordable(wrap(op(physical(input, level), moved, *rest), level), args)


@rule_for(spectral._fft_c2r)
def _inverse_transform(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Recordable:
    input, dim, *rest = args
    if not batched_at(input, level):
        return Recordable(op(physical(input, level), dim, *rest), args)
    return Recordable(wrap(op(physical(input, level), dim + 1, *rest), level), args)
