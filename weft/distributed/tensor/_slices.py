"""Ops on slices: a dim stays cut if each slice of the result along it depends on the same slice of the inputs alone.

Ops that move elements (`Rearrange`, `Gather`, `Scatter`) say so themselves: they are asked how they would read tensors whose dims all have
strides of their own. Other ops work along `dim` or `dims`, or on stacks of matrices, and leave the other dims alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.spec import Spec, make_spec
from ...families.indexed import Gather, IndexMap, Scatter
from ...families.rearrange import Piece, Rearrange
from ._ways import Way
from .placement_types import Placement, Replicate, Shard


def marked(spec: Spec) -> Spec:
    """A spec of the same shape whose dims all have strides of their own, also those of size 1, from which offsets tell positions."""
    strides, step = [], 1
    for size in reversed(spec.shape):
        strides.append(step)
        step *= size + 1
    return make_spec(spec.shape, tuple(reversed(strides)), spec.dtype, spec.device)


def _dim_with(spec: Spec, stride: int, size: int) -> int | None:
    """The whole dim of a marked spec through which a step of this size goes."""
    return next(
        (dim for dim, own in enumerate(spec.stride) if own == stride and spec.shape[dim] == size), None
    )


def _starts_at_zero(spec: Spec, offset: int, dim: int) -> bool:
    return offset // spec.stride[dim] % (spec.shape[dim] + 1) == 0


# ---- Pieces ------------------------------------------------------------------------------------------------------------


def ways_of_pieces(op: Rearrange, specs: Sequence[Spec], static: tuple) -> Iterator[Way]:
    """The ways for the tensors that `op` rearranges."""
    result, sources = marked(op.result(specs, *static)), [marked(each) for each in specs]
    if not result.numel:
        return
    # Of each source: pairs of its dim and that of the result.
    pairs: list[set[tuple[int, int]] | None] = [None] * len(specs)
    for piece in op.pieces(result, sources, *static):
        own = set(_whole_dims(piece, sources[piece.source], result))
        before = pairs[piece.source]
        pairs[piece.source] = own if before is None else before & own
    for dim in range(len(result.shape)):
        cuts = [next((Shard(own) for own, to in each or () if to == dim), None) for each in pairs]
        if all(cuts):
            yield Way(tuple(cuts), Shard(dim))  # type: ignore[arg-type]


def _whole_dims(piece: Piece, source: Spec, result: Spec) -> Iterator[tuple[int, int]]:
    """The dims of the source and of the result that a piece goes through from end to end."""
    for size, step, other, target in zip(
        piece.view.shape, piece.view.stride, piece.target.shape, piece.target.stride, strict=True
    ):
        own, to = _dim_with(source, step, size), _dim_with(result, target, other)
        if own is None or to is None:
            continue
        if _starts_at_zero(source, piece.start, own) and _starts_at_zero(result, piece.at, to):
            yield own, to


# ---- Indices -----------------------------------------------------------------------------------------------------------


def ways_of_gather(op: Gather, input: Spec, indices: Sequence[Spec], static: Any) -> Iterator[Way]:
    """The ways for (input, *indices)."""
    source, rows = marked(input), [marked(each) for each in indices]
    access = op.rule(source, static, *rows)
    return _ways_of_positions(
        access, [(source, access.stride), *zip(rows, access.index_strides, strict=True)]
    )


def ways_of_scatter(
    op: Scatter, target: Spec, value: Spec, indices: Sequence[Spec], static: Any
) -> Iterator[Way]:
    """The ways for (target, value, *indices); the results are those for the positions, not for the target."""
    into, given, rows = marked(target), marked(value), [marked(each) for each in indices]
    access = op.rule(into, static, *rows)
    steps = access.stride, op.fit(given, into, static, access), *access.index_strides
    return _ways_of_positions(access, list(zip((into, given, *rows), steps, strict=True)))


def _ways_of_positions(access: IndexMap, operands: Sequence[tuple[Spec, Sequence[int]]]) -> Iterator[Way]:
    """The ways for operands that are read with these strides at the positions of an IndexMap."""
    if not access.shape.numel():
        return
    for dim, size in enumerate(access.shape):
        places = [_place(spec, strides[dim], size) for spec, strides in operands]
        if None not in places and any(isinstance(each, Shard) for each in places):
            yield Way(tuple(places), Shard(dim))  # type: ignore[arg-type]


def _place(spec: Spec, stride: int, size: int) -> Placement | None:
    """How an operand lies if positions are cut along which it is read with this stride; None if it would be read in part."""
    if stride == 0:
        return Replicate()
    dim = _dim_with(spec, stride, size)
    return None if dim is None else Shard(dim)


# ---- Stacks of matrices ------------------------------------------------------------------------------------------------


def ways_of_stacks(specs: Sequence[Spec]) -> Iterator[Way]:
    """The ways for an op on stacks of matrices, the first tensor, and what belongs to these."""
    stack = specs[0].shape[:-2]
    if any(each.shape[: len(stack)] != stack for each in specs):  # they broadcast
        return
    for dim in range(len(stack)):
        yield Way((Shard(dim),) * len(specs), Shard(dim))
