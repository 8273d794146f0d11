"""Computes numbers of compressed tensors: CSR, CSC, BSR and BSC.

CSR stores for each row where its entries begin (`outer` [*batch, rows + 1], PyTorch's crow_indices), and for each entry its column
(`inner` [*batch, nnz], col_indices) and its value (`values` [*batch, nnz, *dense sizes]). CSC stores columns in place of rows. In BSR
and BSC an entry is a block, `values` [*batch, nnz, *blocksize, *dense sizes], and rows and columns are those of blocks.

So CSR and CSC are one format, whose *major* dim is the one that is compressed: functions say major and minor for rows and columns of
CSR and BSR, and for columns and rows of CSC and BSC. All functions take and return contiguous strided tensors, and record nothing for autograd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtype import DType, int32, int64
from ...core.tensor import Tensor, address
from ...families.array_op import inside
from ...ops.assembly.joining import cat, stack
from ...ops.creation.creation import empty, zeros
from ...ops.creation.ranges import arange
from ...ops.order.searching import searchsorted
from .coordinates import Runs, check_in_range, indices_of, runs, stable_order


class Compressed(NamedTuple):
    """Holds the parts of a compressed tensor."""

    outer: Tensor
    inner: Tensor
    values: Tensor


# ---- Pointers and indices ------------------------------------------------------------------------------------------


def pointers(majors: Tensor, size: int) -> Tensor:
    """Where the entries of each of `size` majors begin, and where the last end: [*batch, size + 1] from sorted majors [*batch, nnz]."""
    run = majors.device.backend.extras.get("sparse_pointers")
    if run is not None and size and majors.dim() == 1 and majors.dtype in (int32, int64):
        result, majors = zeros(size + 1, dtype=majors.dtype, device=majors.device), majors.contiguous()
        with inside("to_sparse", [majors]):
            run(address(result), address(majors), size, len(majors), majors.dtype)
        return result
    wanted = arange(size + 1, dtype=majors.dtype, device=majors.device)
    found = searchsorted(majors, wanted.expand(*majors.shape[:-1], size + 1).contiguous())
    return found.to(majors.dtype)


def majors_of(outer: Tensor, nnz: int) -> Tensor:
    """Return the major of each entry [*batch, nnz], from pointers [*batch, size + 1].

    Raises: RuntimeError if the pointers do not rise from 0 to nnz.
    """
    batch, size = outer.shape[:-1], outer.shape[-1] - 1
    check_pointers(outer, nnz)
    run = outer.device.backend.extras.get("sparse_majors")
    if run is not None and not batch and outer.dtype in (int32, int64):
        result = empty(nnz, dtype=outer.dtype, device=outer.device)
        with inside("to_sparse", [outer]):
            run(address(result), address(outer), size, nnz, outer.dtype)
        return result
    counts = outer.diff().flatten()
    majors = arange(size, dtype=outer.dtype, device=outer.device).repeat(math.prod(batch))
    return majors.repeat_interleave(counts).view(*batch, nnz)


def check_pointers(outer: Tensor, nnz: int) -> None:
    """Raises: RuntimeError if the pointers do not rise from 0 to nnz."""
    if not are_pointers(outer, nnz):
        raise RuntimeError(f"the compressed indices do not rise from 0 to the number of entries, {nnz}")


def are_pointers(outer: Tensor, nnz: int) -> bool:
    """Return whether the pointers rise from 0 to nnz."""
    if outer.shape[-1] < 1 or not outer.numel():
        return True
    return bool(((outer[..., 0] == 0) & (outer[..., -1] == nnz) & (outer.diff() >= 0).all(-1)).all())


def entry_keys(outer: Tensor, inner: Tensor, minors: int) -> Tensor:
    """Return for each entry, flat over the batch, its row-major position (batch, major, minor): int64 [batch * nnz].

    Raises: RuntimeError if the indices are not those of a compressed tensor with so many minors.
    """
    check_inner(inner, minors)
    majors = majors_of(outer, inner.shape[-1]).to(int64)
    count = outer.shape[-1] - 1
    batch = math.prod(inner.shape[:-1])
    first = arange(batch, device=inner.device).mul_(count).view(*inner.shape[:-1], 1)
    return ((first + majors) * minors + inner).flatten()


def check_inner(inner: Tensor, minors: int) -> None:
    """Raises: RuntimeError if an index is negative or not less than the number of minors."""
    if not are_within(inner, minors):
        least, greatest = (int(each) for each in inner.aminmax())
        raise RuntimeError(
            f"a plain index (of a column of CSR and BSR, of a row of CSC and BSC) is out of range for size {minors}: "
            f"the indices are from {least} to {greatest}"
        )


def are_within(inner: Tensor, minors: int) -> bool:
    """Whether no index is negative, and each is less than the number of minors."""
    if not inner.numel():
        return True
    least, greatest = inner.aminmax()
    return 0 <= int(least) and int(greatest) < minors


def of_keys(
    keys: Tensor, values: Tensor, batch: Sequence[int], majors: int, minors: int, dtype: DType
) -> Compressed:
    """The parts whose entries have these keys, which are sorted; the inverse of `entry_keys`. dtype: of the indices.

    Raises: RuntimeError if matrices of the batch have different numbers of entries.
    """
    matrices = math.prod(batch)
    nnz = len(keys) // matrices if matrices else 0
    rows = keys // max(minors, 1)
    inner = keys - rows * minors
    if matrices != 1:
        matrix = rows // max(majors, 1)
        expected = arange(matrices, device=keys.device).repeat_interleave(nnz)
        if len(matrix) != len(expected) or not bool((matrix == expected).all()):
            raise RuntimeError("Expect the same number of specified elements per batch.")
        rows = rows - matrix * majors
    outer = pointers(rows.view(*batch, nnz), majors).to(dtype)
    return Compressed(outer, inner.to(dtype).view(*batch, nnz), values.view(*batch, nnz, *values.shape[1:]))


def values_by_entry(values: Tensor, batch_dim: int) -> Tensor:
    """Return values as [batch * nnz, *blocksize, *dense sizes]."""
    return values.flatten(0, batch_dim)


# ---- Between compressed formats ------------------------------------------------------------------------------------


def swapped(parts: Compressed, minors: int) -> Compressed:
    """The same entries compressed along the other dim: CSR as CSC, BSC as BSR, and so on. `minors`: how many there are.

    Raises: RuntimeError if an index is out of range.
    """
    outer, inner, values = parts
    batch, majors, nnz = inner.shape[:-1], outer.shape[-1] - 1, inner.shape[-1]
    check_inner(inner, minors)
    rows = majors_of(outer, nnz).flatten()
    matrix = arange(math.prod(batch), device=inner.device).mul_(minors).view(*batch, 1)
    columns = (inner if inner.dim() == 1 else inner + matrix).flatten()
    entries = values_by_entry(values, len(batch))
    order = stable_order(columns)
    if order is not None:
        columns, rows, entries = (each.index_select(0, order) for each in (columns, rows, entries))
    columns = columns.view(*batch, nnz)
    columns = columns if inner.dim() == 1 else columns - matrix
    new = rows.view(*batch, nnz) if majors else inner.clone()
    return Compressed(pointers(columns.to(inner.dtype), minors), new, entries.view(values.shape))


def blocked(parts: Compressed, minors: int, blocksize: tuple[int, int], by_rows: bool) -> Compressed:
    """Return CSR as BSR (`by_rows`), or CSC as BSC. `minors`: the number of columns (CSR) or rows (CSC), before.

    Raises: RuntimeError if the sizes are not multiples of the blocksize, or an index is out of range.
    """
    outer, inner, values = parts
    batch, majors, nnz = inner.shape[:-1], outer.shape[-1] - 1, inner.shape[-1]
    check_inner(inner, minors)
    own, other = blocksize if by_rows else blocksize[::-1]
    check_blocks((majors, minors) if by_rows else (minors, majors), blocksize)
    major, minor = majors_of(outer, nnz).to(int64), inner.to(int64)
    matrix = arange(math.prod(batch), device=inner.device).mul_(majors // own).view(*batch, 1)
    keys = ((matrix + major // own) * (minors // other) + minor // other).flatten()
    within = (major % own, minor % other) if by_rows else (minor % other, major % own)
    places = (within[0] * blocksize[1] + within[1]).flatten()
    order = stable_order(keys)
    entries = values_by_entry(values, len(batch))
    if order is not None:
        keys, places, entries = (each.index_select(0, order) for each in (keys, places, entries))
    found = _runs(keys)
    blocks = zeros(
        (len(found.first) * math.prod(blocksize), *entries.shape[1:]),
        dtype=values.dtype,
        device=values.device,
    )
    blocks.index_copy_(0, found.number * math.prod(blocksize) + places, entries)
    blocks = blocks.view(len(found.first), *blocksize, *entries.shape[1:])
    return of_keys(
        keys.index_select(0, found.first), blocks, batch, majors // own, minors // other, inner.dtype
    )


def _runs(keys: Tensor) -> Runs:
    return runs(keys) if len(keys) else Runs(keys, keys)


def check_blocks(sizes: Sequence[int], blocksize: Sequence[int]) -> None:
    """Raises: RuntimeError if the number of rows or columns is not a multiple of the blocksize."""
    if any(block <= 0 for block in blocksize) or any(
        size % block for size, block in zip(sizes, blocksize, strict=True)
    ):
        raise RuntimeError(
            f"tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given blocksize ({blocksize[0]},{blocksize[1]})"
        )


def transposed_blocks(values: Tensor, batch_dim: int) -> Tensor:
    """The values of the transpose of a BSR tensor, as BSC, or the other way round: each block is transposed, the indices stay."""
    return values.transpose(batch_dim + 1, batch_dim + 2).contiguous()


# ---- Coordinates ---------------------------------------------------------------------------------------------------


def of_coordinates(indices: Tensor, values: Tensor, sizes: Sequence[int], by_rows: bool) -> Compressed:
    """Return CSR (`by_rows`) or CSC from coalesced indices [2, nnz] and values. sizes: rows and columns.

    Raises: RuntimeError if an index is out of range.
    """
    check_in_range(indices, sizes)
    rows, columns = indices[0], indices[1]
    if by_rows:
        return Compressed(pointers(rows, sizes[0]), columns.clone(), values.clone())
    order = stable_order(columns)
    if order is None:
        return Compressed(pointers(columns, sizes[1]), rows.clone(), values.clone())
    outer = pointers(columns.index_select(0, order), sizes[1])
    return Compressed(outer, rows.index_select(0, order), values.index_select(0, order))


def to_coordinates(
    parts: Compressed, by_rows: bool, blocksize: tuple[int, int] | None
) -> tuple[Tensor, Tensor]:
    """Indices, int64 [batch dims + 2, all entries], and values of the entries in the order in which they are stored.

    Elements of a block come row by row. So the entries of CSR are sorted, and those of the other formats usually are not.
    Raises: RuntimeError if the pointers do not rise from 0 to the number of entries.
    """
    outer, inner, values = parts
    batch, nnz = inner.shape[:-1], inner.shape[-1]
    major, minor = majors_of(outer, nnz).to(int64).flatten(), inner.to(int64).flatten()
    places = indices_of(arange(math.prod(batch), device=inner.device), batch)
    places = places.repeat_interleave(nnz, 1)
    rows, columns = (major, minor) if by_rows else (minor, major)
    entries = values_by_entry(values, len(batch))
    if blocksize is not None:
        height, width = blocksize
        size = height * width
        steps = arange(size, device=inner.device)
        rows = (rows.view(-1, 1) * height + steps // max(width, 1)).flatten()
        columns = (columns.view(-1, 1) * width + steps % max(width, 1)).flatten()
        places = places.repeat_interleave(size, 1)
        entries = entries.flatten(0, 2)
    indices = stack([rows, columns])
    return cat([places, indices]) if batch else indices, entries.clone()


# ---- Dense ---------------------------------------------------------------------------------------------------------


def to_dense(
    parts: Compressed, sizes: Sequence[int], by_rows: bool, blocksize: tuple[int, int] | None
) -> Tensor:
    """Return the dense tensor [*batch, rows, columns, *dense sizes]. sizes: rows and columns.

    Raises: RuntimeError if the indices are not those of such a tensor.
    """
    outer, inner, values = parts
    batch = inner.shape[:-1]
    height, width = blocksize or (1, 1)
    check_blocks(sizes, (height, width))
    rows, columns = sizes[0] // height, sizes[1] // width
    keys = entry_keys(outer, inner, columns if by_rows else rows)
    if not by_rows:
        matrix_and_column = keys // max(rows, 1)
        matrix = matrix_and_column // max(columns, 1)
        keys = (matrix * rows + keys % max(rows, 1)) * columns + matrix_and_column % max(columns, 1)
    entries = values_by_entry(values, len(batch))
    flat = zeros(
        (math.prod(batch) * rows * columns, *entries.shape[1:]), dtype=values.dtype, device=values.device
    )
    flat.index_add_(0, keys, entries)
    if blocksize is None:
        return flat.view(*batch, *sizes, *entries.shape[1:])
    dense = entries.shape[3:]
    blocks = flat.view(math.prod(batch), rows, columns, height, width, *dense)
    return blocks.transpose(2, 3).contiguous().view(*batch, *sizes, *dense)


def from_dense(
    input: Tensor, batch_dim: int, by_rows: bool, blocksize: tuple[int, int] | None, dtype: DType = int64
) -> Compressed:
    """The parts of a dense tensor [*batch, rows, columns, *dense sizes]: its elements, or blocks of them, that are not zero.

    dtype: of the indices. Raises: RuntimeError if matrices of the batch have different numbers of entries.
    """
    batch, (rows, columns) = input.shape[:batch_dim], input.shape[batch_dim : batch_dim + 2]
    dense = input.shape[batch_dim + 2 :]
    height, width = blocksize or (1, 1)
    check_blocks((rows, columns), (height, width))
    rows, columns = rows // height, columns // width
    matrices = math.prod(batch)
    if blocksize is None:
        blocks = input.contiguous().view(matrices, rows, columns, *dense)
    else:
        split = input.contiguous().view(matrices, rows, height, columns, width, *dense)
        blocks = split.transpose(2, 3).contiguous()
    kept = blocks != 0
    if kept.dim() > 3:
        kept = kept.flatten(3).any(-1)
    places = (kept if by_rows else kept.transpose(1, 2).contiguous()).flatten().nonzero().view(-1)
    majors, minors = (rows, columns) if by_rows else (columns, rows)
    if by_rows:
        sources = places
    else:
        column = places // max(rows, 1)
        matrix = column // max(columns, 1)
        sources = (matrix * rows + places % max(rows, 1)) * columns + column % max(columns, 1)
    values = blocks.flatten(0, 2).index_select(0, sources)
    return of_keys(places, values, batch, majors, minors, dtype)
