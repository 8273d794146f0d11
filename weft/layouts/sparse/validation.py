"""Checks of the parts of sparse tensors, as functions that raise RuntimeError and return nothing."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...core.layout import Layout, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ...core.tensor import Tensor
from . import invariants
from .compressed import FORMATS


def _validate_sparse_coo_tensor_args(
    indices: Tensor,
    values: Tensor,
    size: Sequence[int],
    is_coalesced: bool | None = None,
    check_pinning: bool | None = None,
) -> None:
    """Raises: RuntimeError unless these are the parts of a tensor in COO."""
    invariants.check_coo(indices, values, tuple(size), is_coalesced)


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size: Sequence[int],
    layout: Layout,
    check_pinning: bool | None = None,
) -> None:
    """Raises: RuntimeError unless these are the parts of a tensor in this layout."""
    if layout not in FORMATS:
        raise RuntimeError(
            f"validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {layout}"
        )
    form = FORMATS[layout]
    invariants.check_compressed(
        compressed_indices, plain_indices, values, tuple(size), form.by_rows, form.blocks
    )


(
    _validate_sparse_csr_tensor_args, _validate_sparse_csc_tensor_args,
    _validate_sparse_bsr_tensor_args, _validate_sparse_bsc_tensor_args,
) = (
    functools.partial(_validate_sparse_compressed_tensor_args, layout=each)
    for each in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
)  # fmt: skip
