"""Lower triangles of matrices as vectors."""

from __future__ import annotations

import weft

from ..core.tensor import Tensor


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """[..., count] -> [..., n, n]: the numbers in the lower triangle up to diagonal `diag`, row by row; zeros elsewhere.

    >>> import weft as torch
    >>> vec_to_tril_matrix(torch.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count = vec.shape[-1]
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    rows, columns = weft.tril_indices(n, n, diag, device=vec.device)
    if rows.numel() != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part"
        )
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """[..., n, n] -> [..., count]: the lower triangle up to diagonal `diag`, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = weft.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]
