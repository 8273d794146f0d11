"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape, standard_normal


class MultivariateNormal(Distribution):
    """Normal vectors [..., n] with mean `loc` and one of: covariance_matrix, its inverse, or its Cholesky factor.

    >>> import weft as torch
    >>> torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            name: matrix
            for name, matrix in (
                ("covariance_matrix", covariance_matrix),
                ("scale_tril", scale_tril),
                ("precision_matrix", precision_matrix),
            )
            if matrix is not None
        }
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = weft.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._factor = matrix
        elif name == "covariance_matrix":
            self._factor = weft.linalg.cholesky(matrix)
        else:
            self._factor = _factor_of_inverse(matrix)

    def __getattr__(self, name: str) -> Tensor:
        """The matrices that were not given."""
        if name not in ("scale_tril", "covariance_matrix", "precision_matrix"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        factor = self._factor
        with enable_grad():  # it is kept, whoever asks first
            if name == "scale_tril":
                matrix = factor
            elif name == "covariance_matrix":
                matrix = factor @ factor.mT
            else:
                matrix = weft.cholesky_inverse(factor)
            value = matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))
        self.__dict__[name] = value
        return value

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._factor.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._factor = self._factor
        return new

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        normals = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._factor @ normals.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        offset = (value - self.loc).unsqueeze(-1)
        distance = weft.linalg.solve_triangular(self._factor, offset, upper=False).squeeze(-1).pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        found = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return found.expand(self._batch_shape)

    def _half_log_det(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _factor_of_inverse(matrix: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse: that of the matrix read backwards, inverted."""
    backwards = weft.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
    return weft.linalg.solve_triangular(
        backwards, weft.eye(matrix.shape[-1], dtype=matrix.dtype), upper=False
    )
