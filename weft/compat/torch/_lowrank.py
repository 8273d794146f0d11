"""`torch._lowrank`: decompositions of matrices of low rank."""

from __future__ import annotations

from weft.core.tensor import Tensor
from weft.ops.creation.random import randn
from weft.ops.linalg.lowrank import _products, _range_basis, pca_lowrank, svd_lowrank

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]


def get_approximate_basis(A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """An orthonormal basis, of `q` vectors, of nearly the space that the columns of A (less M) span."""
    sketch = randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    return _range_basis(*_products(A, M), sketch, 2 if niter is None else niter)
