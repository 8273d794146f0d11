"""What the parts of a sparse tensor must satisfy, and PyTorch's errors where they do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.dtype import LEGACY_NAMES, int32, int64
from ...core.tensor import Tensor
from ...ops.order.searching import searchsorted
from ..checks import Switch
from .compression import check_inner, check_pointers
from .coordinates import check_in_range, is_coalesced

# ---- Coordinates ---------------------------------------------------------------------------------------------------


def check_coo_sizes(indices: Tensor, values: Tensor, size: Sequence[int]) -> None:
    """Raises: RuntimeError if indices, values and size do not fit. PyTorch makes these checks in each construction."""
    if indices.dim() == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    sparse_dim, dense_dim = indices.shape[0], max(values.dim() - 1, 0)
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    check_coo_nnz(indices, values)
    dense = list(size[sparse_dim:])
    if list(values.shape[1:]) != dense:
        nnz = values.shape[0] if values.dim() else 1
        raise RuntimeError(
            f"values has incorrect size, expected {[nnz, *dense]}, got {[nnz, *values.shape[1:]]}"
        )


def check_coo_nnz(indices: Tensor, values: Tensor) -> None:
    """Raises: RuntimeError unless indices are [sparse_dim, nnz] and values [nnz, *dense sizes]."""
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    nnz = values.shape[0] if values.dim() else 1
    if indices.shape[1] != nnz:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: {nnz}"
        )


def check_coo(indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool | None) -> None:
    """Check everything, as `check_invariants=True` asks for. coalesced: what the caller says about the entries.

    Raises: RuntimeError.
    """
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    check_coo_sizes(indices, values, size)
    sizes = size[: indices.shape[0]]
    check_in_range(indices, sizes)
    if coalesced and not is_coalesced(indices, sizes):
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


# ---- Compressed formats --------------------------------------------------------------------------------------------


def check_compressed(
    outer: Tensor, inner: Tensor, values: Tensor, size: Sequence[int], by_rows: bool, is_blocked: bool
) -> None:
    """Check the parts of a tensor in CSR, CSC (`by_rows` is False), BSR or BSC (`is_blocked`), as `check_invariants=True` asks for.

    Raises: RuntimeError.
    """
    names = _Names(by_rows, is_blocked)
    blocksize = _check_sizes(outer, inner, values, size, names)
    if outer.dtype is not inner.dtype:
        kinds = f"got {LEGACY_NAMES[outer.dtype]} and {LEGACY_NAMES[inner.dtype]}, respectively"
        raise RuntimeError(f"{names.outer} and {names.inner} must have the same dtype, bot {kinds}")
    if outer.dtype not in (int32, int64):
        raise RuntimeError(
            f"{names.outer} and {names.inner} dtype must be Int or Long, but got {LEGACY_NAMES[outer.dtype]}"
        )
    batch_dim = outer.dim() - 1
    other = batch_dim + by_rows
    minors = size[other] // blocksize[by_rows]
    if outer.numel():
        matrices = math.prod(outer.shape[:-1])
        _check_indices(outer.reshape(matrices, -1), inner.reshape(matrices, inner.shape[-1]), minors, names)


def check_readable(
    outer: Tensor, inner: Tensor, values: Tensor, size: Sequence[int], by_rows: bool, is_blocked: bool
) -> None:
    """Check only what keeps reading within the memory of the parts: entries of a row may be in any order.

    Raises: RuntimeError.
    """
    names = _Names(by_rows, is_blocked)
    blocksize = _check_sizes(outer, inner, values, size, names)
    if outer.dtype not in (int32, int64) or outer.dtype is not inner.dtype:
        raise RuntimeError(f"{names.outer} and {names.inner} must be both int32 or both int64")
    check_pointers(outer, inner.shape[-1])
    check_inner(inner, size[outer.dim() - 1 + by_rows] // blocksize[by_rows])


class _Names:
    """What PyTorch calls the parts of a format."""

    def __init__(self, by_rows: bool, is_blocked: bool):
        self.is_blocked, self.by_rows = is_blocked, by_rows
        self.outer, self.inner = (
            ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        )
        self.majors, self.minors = ("nrows", "ncols") if by_rows else ("ncols", "nrows")
        self.counted = ("row" if by_rows else "column") + (" blocks" if is_blocked else "s")


def _check_sizes(
    outer: Tensor, inner: Tensor, values: Tensor, size: Sequence[int], names: _Names
) -> tuple[int, int]:
    """Check the sizes and return the blocksize; 1 and 1 without blocks."""
    for part, name in ((outer, names.outer), (inner, names.inner)):
        if part.dim() and part.numel() and part.shape[-1] > 1 and part.stride(-1) != 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    if outer.dim() < 1:
        raise RuntimeError(f"{names.outer} must have dimensionality >= 1 but got {outer.dim()}")
    if outer.dim() != inner.dim():
        raise RuntimeError(
            f"{names.outer} and {names.inner} dimensionalities must be equal but got {outer.dim()} and {inner.dim()}, respectively"
        )
    batch_dim, block_dim = outer.dim() - 1, 2 if names.is_blocked else 0
    if values.dim() <= batch_dim + block_dim:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch_dim} + {block_dim}) but got {values.dim()}"
        )
    dense_dim = values.dim() - batch_dim - block_dim - 1
    if len(size) != batch_dim + 2 + dense_dim:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch_dim} + 2 + {dense_dim}) but got {len(size)}"
        )
    batches = [list(part.shape[:batch_dim]) for part in (outer, inner, values)]
    if any(batch != list(size[:batch_dim]) for batch in batches):
        raise RuntimeError(
            f"all batch dimensions of {names.outer} (={batches[0]}), {names.inner} (={batches[1]}), and values (={batches[2]}) "
            f"must be equal to tensor batch dimensions (={list(size[:batch_dim])})"
        )
    blocksize = (1, 1)
    if names.is_blocked:
        blocksize = values.shape[batch_dim + 1], values.shape[batch_dim + 2]
        _check_blocksize(size, batch_dim, blocksize)
    majors = size[batch_dim + (not names.by_rows)] // blocksize[not names.by_rows]
    if outer.shape[-1] != majors + 1:
        counted = f"the number of {names.counted} + 1 (={majors + 1})"
        raise RuntimeError(f"{names.outer}.shape[-1] must be equal to {counted}, but got {outer.shape[-1]}")
    nnz = values.shape[batch_dim]
    if inner.shape[-1] != nnz:
        raise RuntimeError(
            f"{names.inner}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch_dim}], "
            f"but got {inner.shape[-1]}"
        )
    return blocksize


def _check_blocksize(size: Sequence[int], batch_dim: int, blocksize: tuple[int, int]) -> None:
    for dim, block in enumerate(blocksize):
        whole = size[batch_dim + dim]
        if block <= 0 or whole % block:
            raise RuntimeError(
                f"tensor shape[{batch_dim + dim}] (={whole}) must be divisible with blocksize[{dim}] (={block}) "
                "as defined by values shape"
            )


def _check_indices(outer: Tensor, inner: Tensor, minors: int, names: _Names) -> None:
    """Check outer [matrices, majors + 1] and inner [matrices, nnz]."""
    nnz = inner.shape[-1]
    if nnz and not (0 <= int(inner.amin()) and int(inner.amax()) < minors):
        raise RuntimeError(f"`0 <= {names.inner} < {names.minors}` is not satisfied.")
    if bool((outer[:, 0] != 0).any()):
        raise RuntimeError(f"`{names.outer}[..., 0] == 0` is not satisfied.")
    if bool((outer[:, -1] != nnz).any()):
        raise RuntimeError(f"`{names.outer}[..., -1] == nnz` is not satisfied.")
    for pointers, entries in zip(outer, inner):
        _check_matrix(pointers, entries, minors, names)


def _check_matrix(outer: Tensor, inner: Tensor, minors: int, names: _Names) -> None:
    """PyTorch goes through the majors in order, and checks first how many entries one has, then whether they are sorted."""
    counts = outer.diff()
    wrong = ((counts < 0) | (counts > minors)).nonzero().view(-1)
    bounds = outer[: int(wrong[0]) + 1] if len(wrong) else outer
    repeated = (inner[1:] <= inner[:-1]).nonzero().view(-1) + 1
    repeated = repeated[repeated < bounds[-1]].to(outer.dtype)
    begins = searchsorted(bounds, repeated)
    if len(repeated) and not bool((bounds.index_select(0, begins) == repeated).all()):
        raise RuntimeError(
            f"`{names.inner}[..., {names.outer}[..., i - 1]:{names.outer}[..., i]] for all i = 1, ..., {names.majors} "
            "are sorted and distinct along the last dimension values` is not satisfied."
        )
    if len(wrong):
        raise RuntimeError(
            f"`0 <= {names.outer}[..., 1:] - {names.outer}[..., :-1] <= {names.minors}` is not satisfied."
        )


# ---- When contents are checked ---------------------------------------------------------------------------------------


def wanted(check_invariants: bool | None) -> bool:
    return Switch.on if check_invariants is None else check_invariants
