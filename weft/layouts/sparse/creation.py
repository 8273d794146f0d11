"""Sparse tensors from indices and values."""

from __future__ import annotations

from typing import Any

from ...core.dtype import int64
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from . import access, arithmetic, conversion  # noqa: F401 (fill the rules)
from .coo import coo

as_tensor, tensor = FUNCTIONS["as_tensor"], FUNCTIONS["tensor"]


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor in COO: element `indices[:, k]` is `values[k]`; values at equal indices add up.

    indices: integers of shape (sparse dims, number of values). values: shape (number of values, *sizes of dense dims).

    >>> import weft as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    indices = as_tensor(indices).to(int64).contiguous()
    values = as_tensor(values, dtype=dtype, device=device)
    if size is None:
        size = (*(indices.amax(1) + 1).tolist(), *values.shape[1:])
    result = coo(indices, values, tuple(size), bool(is_coalesced))
    return result.requires_grad_() if requires_grad else result
