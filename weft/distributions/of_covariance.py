"""Defines the base class of distributions with a covariance matrix, its inverse, or its Cholesky factor."""

from __future__ import annotations

from typing import Any

import weft

from ..core.tensor import Tensor
from .distribution import Distribution
from .utils import lazy_property

MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


class OfCovariance(Distribution):
    """A subclass sets `_unbroadcasted_scale_tril`. The other matrices are computed on first access."""

    _unbroadcasted_scale_tril: Tensor

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the lower Cholesky factor of the covariance matrix."""
        return self._of_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        return self._of_batch(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance matrix."""
        return self._of_batch(weft.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _of_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))


def given_matrix(*matrices: Tensor | None) -> tuple[str, Tensor]:
    """The name of the matrix that is given, and the matrix itself.

    Raises: ValueError unless exactly one of `MATRICES` is given and has at least two dims.
    """
    given = [(name, matrix) for name, matrix in zip(MATRICES, matrices, strict=True) if matrix is not None]
    if len(given) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    ((name, matrix),) = given
    if matrix.dim() < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, matrix


def factorize(name: str, matrix: Tensor) -> Tensor:
    """Return the lower Cholesky factor of the covariance matrix, given one of `MATRICES`."""
    if name == "scale_tril":
        return matrix
    return weft.linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)


def half_log_det(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of the covariance matrix that has this Cholesky factor."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse, by that of the matrix with rows and columns in reverse order."""
    backwards = weft.linalg.cholesky(P.flip((-2, -1))).flip((-2, -1)).mT
    identity = weft.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return weft.linalg.solve_triangular(backwards, identity, upper=False)
