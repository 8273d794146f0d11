"""Orders, selections, distinct elements and searches that kernels of the device compute, without arrays.

Most devices use `ordered` only. Those that prefer kernels to arrays (`Backend.prefers_kernels`) use all of it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ...core import view_rules
from ...core.dtype import DType, bool_, float32, float64, int64, uint8, uint64
from ...core.size import shape
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, address, empty
from ...families.indexed import bare
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import COPY
from ..assembly.joining import cat
from ..creation.creation import full, ones
from ..creation.ranges import arange
from ..indexing.gather import GATHER
from .keys import KEYS, key_types

# ---- Order ---------------------------------------------------------------------------------------------------------------


def _build_ordered(graph: GraphBuilder, dim: int, descending: bool, k: int) -> list[Value]:
    """Return the first `k` elements along `dim` in order, and where they came from; contiguous."""
    (input,) = graph.inputs
    spec, backend = input.spec, input.spec.device.backend
    sizes, dim = spec.shape, operator.index(dim)
    outer = [size for each, size in enumerate(sizes) if each != dim]
    row = [*(each for each in range(len(sizes)) if each != dim), dim]  # the dims with `dim` as the last
    dtype = key_types(spec.dtype).result
    keys = graph.new(contiguous_spec(shape((*outer, sizes[dim])), dtype, spec.device))
    back = tuple(row.index(each) for each in range(len(sizes)))
    graph.write(KEYS[descending], graph.view(view_rules.permute, keys, back), input)
    order = graph.new(contiguous_spec(shape((*outer, k)), int64, spec.device))
    launch, nbytes = backend.extras["ordered_rows"](8 * dtype.itemsize, math.prod(outer), sizes[dim], k)
    rooms = [graph.new(contiguous_spec((nbytes,), uint8, spec.device))] if nbytes else []
    graph.launch(launch, order, keys, *rooms)
    indices = order
    if dim != len(sizes) - 1:
        indices = graph.new(contiguous_spec(shape((*sizes[:dim], k, *sizes[dim + 1 :])), int64, spec.device))
        graph.write(COPY, indices, graph.view(view_rules.permute, order, back))
    return [graph.gather(GATHER, input, (indices,), dim), indices]


_ORDERED = KernelGraph("sort", 1, _build_ordered)


def ordered(input: Tensor, dim: int, descending: bool, k: int) -> tuple[Tensor, Tensor]:
    """The first `k` elements along `dim` in order, and where they came from. There is at least one element, and `k` is not 0."""
    return _ORDERED((bare(input),), (dim, descending, k))


# ---- Selection -------------------------------------------------------------------------------------------------------------


def keys_of(input: Tensor) -> Tensor:
    """Unsigned integers in the order of the elements."""
    return KEYS[False](bare(input))


def first_at_rank(key: Tensor, dim: int, rank: Any) -> Tensor:
    """The first position along `dim` of the element that would come at `rank`, a number or a tensor, if the row were sorted."""
    if isinstance(rank, int):
        wanted = ordered(key, dim, False, rank + 1)[0].narrow(dim, rank, 1)
    else:
        wanted = ordered(key, dim, False, key.spec.shape[dim])[0].gather(dim, rank)
    return (key == wanted).to(uint8).argmax(dim, keepdim=True)


def last_of_longest_run(key: Tensor, dim: int) -> Tensor:
    """The position along `dim` of the last element of the longest run of equal elements in the sorted row; of several such runs, the first."""
    n = key.shape[dim]
    ascending, order = ordered(key, dim, False, n)
    position = arange(n, device=key.device).reshape([n if each == dim else 1 for each in range(key.dim())])
    is_start = ascending.narrow(dim, 1, n - 1) != ascending.narrow(dim, 0, n - 1)
    later = is_start * position.narrow(dim, 1, n - 1)
    first = cat([order.new_zeros(order.narrow(dim, 0, 1).shape), later], dim).cummax(dim)[0]
    return order.gather(dim, (position - first).argmax(dim, keepdim=True))


# ---- Distinct elements ----------------------------------------------------------------------------------------------------


def distinct(input: Tensor, consecutive: bool, inverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(values, inverse, counts) along the first dim, which is not empty; an empty inverse unless it is wanted."""
    values = bare(input)
    n = len(values)
    order = None if consecutive else _row_order(values.reshape(n, -1))
    ascending = values if order is None else values.index_select(0, order)
    differs = (ascending[1:] != ascending[:-1]).reshape(n - 1, values.numel() // n).any(1)
    is_start = cat([ones(1, dtype=bool_, device=values.device), differs])
    starts = is_start.nonzero().reshape(-1)
    counts = starts.diff(append=full((1,), n, device=values.device))
    runs = counts.new_empty(0)
    if inverse:
        runs = is_start.cumsum(0) - 1
        if order is not None:
            runs = counts.new_empty(n).scatter_(0, order, runs)
    return ascending.index_select(0, starts), runs, counts


def _row_order(rows: Tensor) -> Tensor:
    """The stable order of rows, compared element by element.

    Neighbouring columns are replaced by one, whose numbers have the order of their pairs, until one column is left.
    """
    n = len(rows)
    columns = rows.t()
    while len(columns) > 1:
        keys = keys_of(columns)
        ranks = places(ordered(keys, 1, False, n)[0], keys, False, int64)
        if len(ranks) % 2:
            ranks = cat([ranks, ranks.new_zeros(1, n)])
        columns = ranks[::2] * n + ranks[1::2]
    return ordered(columns.reshape(n), 0, False, n)[1]


# ---- Searches --------------------------------------------------------------------------------------------------------------


def _searchable(values: Tensor) -> Tensor:
    """The values in a dtype that the kernel takes, with their order, contiguous."""
    dtype = values.spec.dtype
    if dtype not in (float32, float64, uint64):
        values = values.to(float32 if dtype.is_floating_point else int64)
    return values.contiguous()


def places(sequences: Tensor, values: Tensor, right: bool, dtype: DType) -> Tensor:
    """Where to insert values in sorted sequences, of their dtype: one [n], or [..., n] for values [..., m]."""
    edges, wanted = _searchable(bare(sequences)), _searchable(bare(values))
    result = empty(contiguous_spec(wanted.spec.shape, dtype, wanted.spec.device))
    count, n = wanted.spec.numel, edges.spec.shape[-1]
    if count:
        each = count if edges.spec.ndim == 1 else wanted.spec.shape[-1]
        search: Callable = wanted.spec.device.backend.extras["search_rows"]
        words = (count, each, n, n * edges.spec.dtype.itemsize)
        search((address(result), address(edges), address(wanted)), words, edges.spec.dtype, right, dtype)
    return result


def is_among(elements: Tensor, tests: Tensor) -> Tensor:
    """Whether each element is one of `tests`, of the same dtype. NaN equals nothing."""
    if not elements.spec.numel or not tests.spec.numel:
        return empty(contiguous_spec(elements.spec.shape, bool_, elements.spec.device)).fill_(False)
    keys, n = keys_of(elements), tests.spec.numel
    candidates, _ = ordered(keys_of(tests).reshape(-1), 0, False, n)
    found = candidates.take(places(candidates, keys, False, int64).clamp(max=n - 1)) == keys
    return found & (elements == elements) if elements.spec.dtype.is_floating_point else found
