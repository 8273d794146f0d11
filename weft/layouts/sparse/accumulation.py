"""Sums of a sparse tensor into a dense one, which read and write only the elements that have entries."""

from __future__ import annotations

from typing import Any

from ...core.outputs import check_dtype
from ...core.recording import needs_recording
from ...core.tensor import Tensor
from ..parts import values_of
from .conversion import as_coo, to_dense
from .coo import indices_of


def add_entries_(dense: Tensor, sparse: Tensor, alpha: Any = 1) -> Tensor:
    """dense += alpha * sparse, entry by entry. Raises: RuntimeError if the shapes differ or the dtype of the sum would be another."""
    if dense.shape != sparse.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(dense.shape)} != {list(sparse.shape)}"
        )
    check_dtype(dense.spec, sparse.dtype, "add")
    if needs_recording((sparse,)):
        return dense.add_(to_dense(sparse, masked_grad=False), alpha=alpha)
    sparse = as_coo(sparse)
    indices, values = indices_of(sparse), values_of(sparse).to(dense.dtype)
    if not len(indices):
        return dense.add_(values.sum(0), alpha=alpha)
    if len(indices) == 1:
        return dense.index_add_(0, indices[0], values, alpha=alpha)
    return dense.index_put_(tuple(indices), values * alpha if alpha != 1 else values, accumulate=True)
