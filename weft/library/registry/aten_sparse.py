"""Operators of sparse tensors, as functions of `torch.sparse` and methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ...core.registry import FUNCTIONS as PUBLIC
from ...core.tensor import Tensor
from .aten_functions import own, own_rows

own_rows(
    {
        "_coalesce": lambda self: self.coalesce(),
        "_sparse_mm": lambda sparse, dense, reduce=None: PUBLIC["sparse.mm"](sparse, dense, reduce),
        "_sparse_sum": lambda self, dim=None, *, dtype=None: PUBLIC["sparse.sum"](self, dim, dtype=dtype),
        "_sparse_softmax.int": lambda self, dim, dtype=None: PUBLIC["sparse.softmax"](self, dim, dtype=dtype),
        "_sparse_softmax": lambda self, dim, half_to_float: PUBLIC["sparse.softmax"](self, dim),
        "_sparse_log_softmax": lambda self, dim, half_to_float: PUBLIC["sparse.log_softmax"](self, dim),
        "_to_sparse.sparse_dim": lambda self, sparse_dim: self.to_sparse(sparse_dim),
    }
)


@own("_sparse_addmm")
def _sparse_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return PUBLIC["sparse.addmm"](self, mat1, mat2, beta=beta, alpha=alpha)


@own("sparse_sampled_addmm")
def _sampled_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return PUBLIC["sparse.sampled_addmm"](self, mat1, mat2, beta=beta, alpha=alpha)


@own("_sparse_log_softmax.int")
def _sparse_log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return PUBLIC["sparse.log_softmax"](self, dim, dtype=dtype)


@own("sparse_coo_tensor.size")
def _empty_coo(size: Sequence[int], *, layout: Any = None, **options: Any) -> Tensor:
    return PUBLIC["sparse_coo_tensor"](size=size, **options)


@own("sparse_coo_tensor.indices", "sparse_coo_tensor.indices_size", "_sparse_coo_tensor_unsafe")
def _coo(indices: Tensor, values: Tensor, size: Any = None, *, layout: Any = None, **options: Any) -> Tensor:
    return PUBLIC["sparse_coo_tensor"](indices, values, size, **options)


@own("_sparse_csr_tensor_unsafe")
def _csr(crow_indices: Tensor, col_indices: Tensor, values: Tensor, size: Any, **options: Any) -> Tensor:
    return PUBLIC["sparse_csr_tensor"](crow_indices, col_indices, values, size, **options)


@own("_to_sparse")
def _to_sparse(self: Tensor, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None) -> Tensor:
    return self.to_sparse(layout=layout or sparse_coo, blocksize=blocksize, dense_dim=dense_dim)


def _define_to_compressed(name: str, layout: Any, has_blocks: bool) -> None:
    def of_elements(self: Tensor, dense_dim: Any = None) -> Tensor:
        return self.to_sparse(layout=layout, dense_dim=dense_dim)

    def of_blocks(self: Tensor, blocksize: Any, dense_dim: Any = None) -> Tensor:
        return self.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)

    own(name)(of_blocks if has_blocks else of_elements)


_define_to_compressed("_to_sparse_csr", sparse_csr, False)
_define_to_compressed("_to_sparse_csc", sparse_csc, False)
_define_to_compressed("_to_sparse_bsr", sparse_bsr, True)
_define_to_compressed("_to_sparse_bsc", sparse_bsc, True)
