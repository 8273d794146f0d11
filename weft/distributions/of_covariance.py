"""Distributions with a covariance matrix, which is given as such, inverted, or as its Cholesky factor."""

from __future__ import annotations

import weft

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from .distribution import Distribution

MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


class OfCovariance(Distribution):
    """A subclass says which matrix was given with `_factorize`; the others are made when they are asked for."""

    _factor: Tensor  # lower, the covariance's

    @staticmethod
    def _given(*matrices: Tensor | None) -> tuple[str, Tensor]:
        """The name of the matrix that is there, and it.

        Raises: ValueError unless it is one of `MATRICES`, of two dims or more.
        """
        given = [
            (name, matrix) for name, matrix in zip(MATRICES, matrices, strict=True) if matrix is not None
        ]
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        return name, matrix

    def _factorize(self, name: str, matrix: Tensor) -> None:
        if name == "scale_tril":
            self._factor = matrix
        elif name == "covariance_matrix":
            self._factor = weft.linalg.cholesky(matrix)
        else:
            self._factor = _factor_of_inverse(matrix)

    def __getattr__(self, name: str) -> Tensor:
        """The matrices that were not given."""
        if name not in MATRICES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        factor = self._factor
        with enable_grad():  # it is kept, whoever asks first
            if name == "scale_tril":
                matrix = factor
            elif name == "covariance_matrix":
                matrix = factor @ factor.mT
            else:
                matrix = weft.cholesky_inverse(factor)
            value = matrix.expand((*self._batch_shape, *factor.shape[-2:]))
        self.__dict__[name] = value
        return value

    def _half_log_det(self) -> Tensor:
        """Of the covariance."""
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _factor_of_inverse(matrix: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse: that of the matrix read backwards, inverted."""
    backwards = weft.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
    return weft.linalg.solve_triangular(
        backwards, weft.eye(matrix.shape[-1], dtype=matrix.dtype), upper=False
    )
