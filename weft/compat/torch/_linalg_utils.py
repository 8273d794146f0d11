"""`torch._linalg_utils`: small functions that libraries take for algorithms of linear algebra.

>>> import weft as torch
>>> qform(torch.eye(2), torch.ones(2, 1))
tensor([[2.]])
"""

from __future__ import annotations

from weft.core.dtype import DType, float16, float32, float64
from weft.core.tensor import Tensor


def is_sparse(A: Tensor) -> bool:
    """Whether a tensor is sparse: no."""
    return False


def get_floating_dtype(A: Tensor) -> DType:
    """The dtype in which to compute with `A`: its own if it is float16, float32 or float64, else float32."""
    return A.dtype if A.dtype in (float16, float32, float64) else float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """`A @ B`; None stands for the identity."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """S^T A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthonormal basis of the columns of `A`."""
    import weft

    return weft.linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """The eigenvalues of a symmetric matrix in ascending order (descending if `largest`), and their eigenvectors."""
    import weft

    values, vectors = weft.linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
