"""Computes numbers of coordinate tensors: indices [sparse_dim, nnz] and values [nnz, *dense sizes].

The key of an entry is its position in row-major order of the sparse dims, so that entries of the same element have equal keys.
All functions take and return contiguous strided tensors, and record nothing for autograd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.dtype import bool_, int32, int64
from ...core.tensor import Tensor
from ...families.array_op import array, inside, tensor_of
from ...ops.assembly.joining import cat, stack
from ...ops.creation.creation import empty, zeros
from ...ops.creation.ranges import arange
from ...ops.order.kernels import places
from ...ops.order.searching import searchsorted


def keys_of(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """The key of each entry, int64 [nnz]. Indices out of range give keys of other elements, as in PyTorch."""
    if not len(indices):
        return zeros(indices.shape[1], dtype=int64, device=indices.device)
    keys = indices[0].to(int64)
    for index, size in zip(indices[1:], sizes[1:]):
        keys = keys * size + index
    return keys


def indices_of(keys: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the indices [sparse_dim, nnz] of the elements with these keys, int64."""
    found = []
    for size in reversed(sizes[1:]):
        found.append(keys % size)
        keys = keys // size
    if not sizes:
        return empty((0, len(keys)), dtype=int64, device=keys.device)
    return stack([keys, *reversed(found)])


def check_in_range(indices: Tensor, sizes: Sequence[int]) -> None:
    """Raises: RuntimeError if an index is negative or not less than the size of its dim."""
    if not indices.numel():
        return
    low, high = (found.tolist() for found in indices.aminmax(dim=1))
    for dim, size in enumerate(sizes):
        if low[dim] < 0:
            raise RuntimeError(f"found negative index {low[dim]} for dim {dim}")
        if high[dim] >= size:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size} but found index {high[dim]}"
            )


# ---- Orders --------------------------------------------------------------------------------------------------------


def stable_order(keys: Tensor) -> Tensor | None:
    """The positions that sort keys [n]; equal keys stay in their order. None if the keys are sorted already."""
    if bool((keys[1:] >= keys[:-1]).all()):
        return None
    if keys.dtype is int64 and 0 <= int(keys.amin()) and int(keys.amax()) < 2**31:
        # The radix sort takes 24 ms for 10^6 keys of 32 bits, and 40 ms for 64 (AMD Zen 4).
        keys = keys.to(int32)
    return keys.argsort(stable=True)


class Runs(NamedTuple):
    """The runs of equal neighbours of a sequence."""

    first: Tensor  # the position where each run begins
    number: Tensor  # the number of the run that each element belongs to


def runs(keys: Tensor) -> Runs:
    """The runs of keys [n], of which there is at least one."""
    begins = cat([empty(1, dtype=bool_, device=keys.device).fill_(True), keys[1:] != keys[:-1]])
    return Runs(begins.nonzero().view(-1), begins.cumsum(0) - 1)


def is_coalesced(indices: Tensor, sizes: Sequence[int]) -> bool:
    """Whether entries are in row-major order of their indices, one for each element."""
    keys = keys_of(indices, sizes)
    return bool((keys[1:] > keys[:-1]).all())


def coalesced(indices: Tensor, values: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """New indices and values with one entry for each element, in row-major order.

    Entries of the same element are added in the order in which they are stored, each sum rounded to the dtype of the values.
    sizes: of the sparse dims.
    """
    if indices.shape[1] < 2:
        return indices.clone(), values.clone()
    keys = keys_of(indices, sizes)
    order = stable_order(keys)
    if order is not None:
        keys = keys.index_select(0, order)
    begins = runs(keys)
    if len(begins.first) == len(keys):
        if order is None:
            return indices.clone(), values.clone()
        return indices.index_select(1, order), values.index_select(0, order)
    first = begins.first if order is None else order.index_select(0, begins.first)
    summed = sums_of_runs(values if order is None else values.index_select(0, order), begins)
    return indices.index_select(1, first), summed


def sums_of_runs(values: Tensor, begins: Runs) -> Tensor:
    """Return sums of values [n, ...] over runs of neighbours, each in order, with its first value as first summand."""
    result = values.index_select(0, begins.first)
    later = (begins.number[1:] == begins.number[:-1]).nonzero().view(-1) + 1
    return result.index_add_(0, begins.number.index_select(0, later), values.index_select(0, later))


# ---- Two sets of entries -------------------------------------------------------------------------------------------


class Merged(NamedTuple):
    """Where the entries of two sequences lie in a merged one."""

    size: int
    left: Tensor  # the place of each entry of the left sequence
    right: Tensor


def merged(left: Tensor, right: Tensor) -> Merged:
    """Merge two sequences of keys; heads that are equal become one entry.

    Sorted sequences of distinct keys become their sorted union. Others are walked through in the same way, as in PyTorch: the
    lesser of the two heads comes next.
    """
    if left.device.backend.prefers_kernels and (found := _merged_if_sorted(left, right)) is not None:
        return found
    with inside("merge", [left, right]):
        a, b = array(left), array(right)
        merge = left.device.backend.extras.get("merge")
        size, to_left, to_right = (merge or _merge)(a, b)
        return Merged(size, tensor_of(to_left), tensor_of(to_right))


def _merged_if_sorted(left: Tensor, right: Tensor) -> Merged | None:
    """What `merged` returns, computed by searches; None unless both sequences are sorted."""
    (to_left, pairs), (to_right, _) = _places_beside(left, right), _places_beside(right, left)
    unsorted = (left[1:] < left[:-1]).sum() + (right[1:] < right[:-1]).sum()
    count, is_bad = stack([pairs, unsorted]).tolist()
    return None if is_bad else Merged(len(left) + len(right) - count, to_left, to_right)


def _places_beside(own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each entry of a sorted sequence in the merged one, and how many entries there are in both.

    The first of equal entries is one with the first such entry of the other sequence, the second with the second, and so on.
    """
    number = arange(len(own), device=own.device)
    before, until = (places(other, own, right, int64) for right in (False, True))
    first = places(own, own, False, int64)
    is_pair = number - first < until - before
    pairs = is_pair.cumsum(0)
    pairs_before = (pairs - is_pair.to(int64)).index_select(0, first)
    return number + before - pairs_before, is_pair.sum()


def _merge(left: np.ndarray, right: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """What the kernel "merge" of a device does, for devices without it."""
    places = np.empty(len(left), np.int64), np.empty(len(right), np.int64)
    i = j = size = 0
    while i < len(left) and j < len(right):
        x, y = left[i], right[j]
        if x <= y:
            places[0][i] = size
            i += 1
        if y <= x:
            places[1][j] = size
            j += 1
        size += 1
    rest = len(left) - i + len(right) - j
    places[0][i:] = np.arange(size, size + len(left) - i)
    places[1][j:] = np.arange(size, size + len(right) - j)
    return size + rest, *places


def union(
    left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor], sizes: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Indices and values of the sum of two tensors, given by their indices and values, whose dtypes are the same."""
    (left_indices, left_values), (right_indices, right_values) = left, right
    both = merged(keys_of(left_indices, sizes), keys_of(right_indices, sizes))
    indices = empty((len(left_indices), both.size), dtype=left_indices.dtype, device=left_indices.device)
    indices.index_copy_(1, both.right, right_indices).index_copy_(1, both.left, left_indices)
    values = zeros((both.size, *left_values.shape[1:]), dtype=left_values.dtype, device=left_values.device)
    values.index_add_(0, both.left, left_values).index_add_(0, both.right, right_values)
    return indices, values


def intersection(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """The positions of the keys that are in both of two sorted sequences of distinct keys: in the left one, in the right one."""
    both = merged(left, right)
    return tuple(  # type: ignore[return-value]
        zeros(both.size, dtype=bool_, device=left.device)
        .index_fill_(0, other, True)
        .index_select(0, own)
        .nonzero()
        .view(-1)
        for own, other in ((both.left, both.right), (both.right, both.left))
    )


def lookup(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Where each wanted key is among sorted keys, and whether it is there. The place of a missing key is any valid one, or 0."""
    if not len(keys):
        nowhere = zeros(len(wanted), dtype=int64, device=wanted.device)
        return nowhere, nowhere != 0
    places = searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    return places, keys.index_select(0, places) == wanted


def product(
    left: tuple[Tensor, Tensor, bool], right: tuple[Tensor, Tensor, bool], sizes: Sequence[int]
) -> tuple[Tensor, Tensor, bool]:
    """Indices and values of the product of two tensors, and whether they are coalesced; each is given by the same three things.

    The product of two coalesced tensors has the entries that both have. Otherwise, as in PyTorch, it has the entries of the one that is
    not coalesced (of the one with fewer entries, if neither is), with zeros where the other tensor has none.
    """
    if not (left[0].shape[1] and right[0].shape[1]):
        return left[0][:, :0].clone(), left[1][:0] * right[1][:0], True
    keys = [keys_of(indices, sizes) for indices, _, _ in (left, right)]
    if left[2] and right[2]:
        own, other = intersection(*keys)
        return (
            left[0].index_select(1, own),
            left[1].index_select(0, own) * right[1].index_select(0, other),
            True,
        )
    smaller = left[0].shape[1] < right[0].shape[1]
    sourced = left if (right[2] or (smaller and not left[2])) else right
    looked_up = right if sourced is left else left
    indices, values = looked_up[:2] if looked_up[2] else coalesced(*looked_up[:2], sizes)
    places, found = lookup(keys_of(indices, sizes), keys[0] if sourced is left else keys[1])
    factors = values.index_select(0, places)
    result = sourced[1] * factors
    missing = (~found).view(-1, *[1] * (result.dim() - 1))
    return sourced[0].clone(), result.masked_fill_(missing, 0), False


# ---- To and from dense ---------------------------------------------------------------------------------------------


def to_dense(indices: Tensor, values: Tensor, sizes: Sequence[int]) -> Tensor:
    """The dense tensor [*sizes, *dense sizes]. Entries of the same element are added up in order.

    Raises: RuntimeError if an index is out of range.
    """
    check_in_range(indices, sizes)
    dense = values.shape[1:]
    flat = zeros((math.prod(sizes), *dense), dtype=values.dtype, device=values.device)
    return flat.index_add_(0, keys_of(indices, sizes), values).view((*sizes, *dense))


def from_dense(input: Tensor, sparse_dim: int) -> tuple[Tensor, Tensor]:
    """Indices and values of the elements (of the slices over the dense dims, if there are any) that are not zero."""
    sizes = input.shape[:sparse_dim]
    kept = input != 0
    if sparse_dim < input.dim():
        kept = kept.flatten(sparse_dim).any(-1)
    indices = kept.nonzero().t().contiguous()
    flat = input.contiguous().view(math.prod(sizes), *input.shape[sparse_dim:])
    return indices, flat.index_select(0, keys_of(indices, sizes))


def taken(input: Tensor, indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return elements, or slices over dense dims, of a tensor [*sizes, *dense sizes] at indices: [nnz, *dense sizes].

    Raises: RuntimeError if an index is out of range.
    """
    check_in_range(indices, sizes)
    flat = input.contiguous().view(math.prod(sizes), *input.shape[len(sizes) :])
    return flat.index_select(0, keys_of(indices, sizes))
