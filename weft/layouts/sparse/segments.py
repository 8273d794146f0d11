"""Functions of the entries of a sparse tensor that share their indices in all dims but some: sums over dims, and softmax along one.

The entries are given by indices [sparse_dim, nnz] and values [nnz, *dense sizes], and must be coalesced for softmax. All functions take
and return contiguous strided tensors, and record nothing for autograd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...core.tensor import Tensor
from ...ops.creation.creation import empty, full, zeros
from .coordinates import coalesced, keys_of, runs, stable_order

# Pools for each entry: up to this number the key of the other dims numbers the pools, because tables with some empty pools cost less
# than sorting the entries.
_SPARSE_TABLE = 4


class Pools(NamedTuple):
    """The pools that share out the entries: those that differ only in their index along one dim."""

    number: Tensor  # the pool of each entry, int64 [nnz]
    size: int  # how many pools there are


def pools(indices: Tensor, sizes: Sequence[int], dim: int) -> Pools:
    """Return the pools along the sparse dim `dim`."""
    others = [d for d in range(len(sizes)) if d != dim]
    kept = [sizes[d] for d in others]
    keys = keys_of(indices[others], kept) if others else keys_of(indices[:0], ())
    count = math.prod(kept)
    if count <= _SPARSE_TABLE * len(keys) or not len(keys):
        return Pools(keys, count)
    order = stable_order(keys)
    if order is None:
        number = runs(keys).number
    else:
        number = empty(len(keys), dtype=order.dtype, device=keys.device)
        number.index_copy_(0, order, runs(keys.index_select(0, order)).number)
    return Pools(number, int(number.max()) + 1)


def pool_sums(values: Tensor, among: Pools) -> Tensor:
    """Return, for each entry, the sum of the values of its pool."""
    total = zeros((among.size, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return total.index_add_(0, among.number, values).index_select(0, among.number)


def pool_maxima(values: Tensor, among: Pools) -> Tensor:
    """Return, for each entry, the greatest value of its pool."""
    shape = among.size, *values.shape[1:]
    greatest = full(shape, -math.inf, dtype=values.dtype, device=values.device)
    greatest.index_reduce_(0, among.number, values, "amax")
    return greatest.index_select(0, among.number)


def softmax(indices: Tensor, values: Tensor, sizes: Sequence[int], dim: int, is_log: bool) -> Tensor:
    """The values of softmax, or of its logarithm, along `dim`; elements that are not stored count as -inf. sizes: of the sparse dims."""
    if dim >= len(sizes):
        axis = dim - len(sizes) + 1
        return values.log_softmax(axis) if is_log else values.softmax(axis)
    if not values.numel():
        return values.clone()
    among = pools(indices, sizes, dim)
    shifted = values - pool_maxima(values, among)
    powers = shifted.exp()
    sums = pool_sums(powers, among)
    return shifted - sums.log() if is_log else powers / sums


def softmax_backward(
    ct: Tensor, out: Tensor, indices: Tensor, sizes: Sequence[int], dim: int, is_log: bool
) -> Tensor:
    """Return the cotangent of the values of `softmax`, from those of its result `out`."""
    inner = ct if is_log else ct * out
    if dim >= len(sizes):
        sums = inner.sum(dim - len(sizes) + 1, True)
    elif not out.numel():
        return ct.clone()
    else:
        sums = pool_sums(inner, pools(indices, sizes, dim))
    return ct - out.exp() * sums if is_log else (ct - sums) * out


def summed(
    indices: Tensor, values: Tensor, sizes: Sequence[int], dims: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Return indices and values of the sum over some sparse dims, coalesced."""
    kept = [d for d in range(len(sizes)) if d not in dims]
    return coalesced(indices[kept], values, [sizes[d] for d in kept])
