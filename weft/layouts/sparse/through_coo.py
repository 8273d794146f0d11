"""Functions of compressed tensors that compute with the coordinates of the entries."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ...core.layout import sparse_coo
from ...core.tensor import Tensor
from .compressed import blocksize_of, dense_dim_of
from .conversion import as_compressed, as_coo
from .coo import sparse_dim_of


def in_layout_of(result: Tensor, template: Tensor) -> Tensor:
    """Return a tensor in COO, in the layout of `template`.

    A tensor with less than two sparse dims stays in COO. Blocks are as large as those of the template where they divide the tensor.
    """
    if template.layout is sparse_coo or result.layout is not sparse_coo or sparse_dim_of(result) < 2:
        return result
    blocksize = blocksize_of(template)
    if blocksize is not None:
        sparse_dim = sparse_dim_of(result)
        rows, columns = result.shape[sparse_dim - 2 : sparse_dim]
        blocksize = math.gcd(rows, blocksize[0]), math.gcd(columns, blocksize[1])
    return as_compressed(result, template.layout, blocksize)


def through_coo(function: Callable) -> Callable:
    """`function`, which takes and gives tensors in COO, for all sparse layouts: the results have the layout of the input."""

    @functools.wraps(function)
    def rule(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(as_coo(self), *args, **kwargs)
        return result if self.layout is sparse_coo else in_layout_of(result, self)

    return rule


def sparse_dims_of(x: Tensor) -> int:
    """How many of the first dims are dims of the indices: in a compressed tensor, those of the batch and of the matrix."""
    return sparse_dim_of(x) if x.layout is sparse_coo else x.dim() - dense_dim_of(x)
