"""Gathers and scatters. Dims along which no index counts stay cut; where embeddings are cut by rows, each process reads its own ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.recording import needs_recording, record_inplace, unrecorded
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...families.indexed import Gather, Scatter, add_elements
from ...ops.indexing import gather
from ._rules import (
    check_writable,
    everywhere,
    local_as,
    mesh_of,
    placement_rule,
    placements_of,
    recorded,
    rule_for,
    whole,
)
from ._slices import ways_of_gather, ways_of_scatter
from ._storage import Placements, is_distributed, local_sizes, own_piece, wrap
from ._ways import Way, by_ways, cheapest
from .placement_types import Partial, Placement, Replicate, Shard, is_cut


@placement_rule(Gather)
def _gather(op: Gather, args: tuple, static: dict[str, Any]) -> Any:
    input, indices, how = args
    ways = ways_of_gather(op, input.spec, [each.spec for each in indices], how)
    found = by_ways(ways, (input, *indices), mesh_of(args), lambda own, *rows: op(own, rows, how))
    return recorded(op, found, (input, *indices), (how,))


@placement_rule(Scatter)
def scatter(op: Scatter, args: tuple, static: dict[str, Any]) -> Any:
    target, indices, value, how = args[:4]
    combine = args[4] if len(args) > 4 else static.get("combine")
    mesh, operands = mesh_of(args), (target, value, *indices)
    check_writable(target)
    wanted = _where_target_lies(op, operands, how, mesh)

    def write() -> None:
        if wanted is not None:
            into, given, *rows = [local_as(each, mesh, own) for each, own in zip(operands, wanted)]
            if into.spec.numel:
                op(into, rows, given, how, combine)
            return
        into = whole(target, mesh)
        op(into, whole(list(indices), mesh), whole(value, mesh), how, combine)
        if is_distributed(target) and into is not target._storage.local:
            written = wrap(into, target.spec, mesh, everywhere(mesh))
            target._storage.local.copy_(local_as(written, mesh, placements_of(target, mesh)))

    if needs_recording((target, value)):
        return record_inplace(op, target, (target, value, *indices), (how, combine), write)
    write()
    return target


def _where_target_lies(
    op: Scatter, operands: Sequence[Tensor], how: Any, mesh: Any
) -> list[Placements] | None:
    """The placements of (target, value, *indices) with which each process writes to its part of the target; None if it cannot."""
    target, value, *indices = [each.spec for each in operands]
    places = placements_of(operands[0], mesh)
    ways = {way.inputs[0]: way.inputs for way in ways_of_scatter(op, target, value, indices, how)}
    ways[Replicate()] = (Replicate(),) * len(operands)
    if not any(map(is_cut, places)) or any(each not in ways for each in places):
        return None
    return list(zip(*[ways[each] for each in places], strict=True))


# ---- Embeddings: rows of a matrix by their numbers ---------------------------------------------------------------------


@rule_for(gather._ROWS)
def _rows(op: Gather, args: tuple, static: dict[str, Any]) -> Any:
    return read_own(op, args, 0)


def read_own(op: Gather, args: tuple, dim: int) -> Any:
    """What numbers read along `dim` of a tensor, each process its own ones where that is cut."""
    table, (numbers,), how = args
    mesh, size = mesh_of(args), table.spec.shape[dim]
    spec = op.plans[(table.spec, how, numbers.spec)].spec
    whole_of = Replicate()
    ways = [
        Way((whole_of, whole_of), whole_of),
        *ways_of_gather(op, table.spec, [numbers.spec], how),
        Way((Shard(dim), whole_of), Partial()),
    ]
    (places, beside), of_result = cheapest(ways, (table, numbers), spec.nbytes, mesh)
    with unrecorded():
        part, own_numbers = local_as(table, mesh, places), local_as(numbers, mesh, beside)
        if Shard(dim) in places:
            _check_numbers(op, own_numbers, dim, size)
            sizes = local_sizes(spec.shape, mesh, of_result)
            found = Own(own_numbers, size, dim, places, mesh).read(op, part, how, sizes)
        else:
            found = op(part, (own_numbers,), how)
    return recorded(op, wrap(found, spec, mesh, of_result), (table, numbers), (how,))


class Own:
    """The numbers along `dim` of a tensor under `placements` that this process has, as its local part counts them."""

    def __init__(
        self, numbers: Tensor, size: int, dim: int, placements: Sequence[Placement], mesh: Any
    ) -> None:
        size, first = own_piece(size, dim, mesh, placements)
        self.size = size
        own = numbers - first
        self.others = (own < 0) | (own >= size)
        self.numbers = own.masked_fill(self.others, 0)

    def read(self, op: Gather, table: Tensor, how: Any, sizes: Sequence[int]) -> Tensor:
        """What the numbers read, and zeros for those of other processes. The ranks' results add up to the whole one."""
        if not self.size:
            return table.new_zeros(sizes)
        found = op(table, (self.numbers,), how)
        missing = found.spec.ndim - self.others.spec.ndim
        return found.masked_fill(self.others.view((*self.others.shape, *[1] * missing)), 0)

    def add(self, op: Scatter, target: Tensor, value: Tensor, how: Any) -> None:
        """Add the values of the own numbers to the part of this process."""
        if self.size:
            op(target, (self.numbers,), value.masked_fill(self.others, 0), how, add_elements)


def _check_numbers(op: Gather, numbers: Tensor, dim: int, size: int) -> None:
    """Raises: IndexError, in the words of the op, for numbers that no process has."""
    bad = (numbers < 0) | (numbers >= size)
    if bad.any():
        raise op.error(int(numbers[bad][0]), dim, size)


def _ways_back(ct: Spec) -> Iterator[Way]:
    """The ways for (cotangent, indices), whose result is the gradient of the matrix."""
    whole_of, last = Replicate(), len(ct.shape) - 1
    yield Way((whole_of, whole_of), whole_of)
    for dim in range(last):
        yield Way((Shard(dim), Shard(dim)), Partial())
    yield Way((Shard(last), whole_of), Shard(1))
    yield Way((Partial(), whole_of), Partial())


@rule_for(gather._ROWS.scatter)
def _rows_back(op: Scatter, args: tuple, static: dict[str, Any]) -> Any:
    """The cotangent of the matrix: rows of `ct` that are added up."""
    target, (indices,), ct, how, combine = args
    mesh = mesh_of(args)
    (of_ct, beside), places = cheapest(_ways_back(ct.spec), (ct, indices), target.spec.nbytes, mesh)
    with unrecorded():
        own, numbers = local_as(ct, mesh, of_ct), local_as(indices, mesh, beside)
        found = own.new_zeros((target.spec.shape[0], own.spec.shape[-1]))
        op(found, (numbers,), own, how, combine)
    spec = contiguous_spec(target.spec.shape, target.spec.dtype, target.spec.device)
    return recorded(op, wrap(found, spec, mesh, places), (target, ct, indices), (how, combine))
