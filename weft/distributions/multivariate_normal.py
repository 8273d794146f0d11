"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape, standard_normal
from .of_covariance import OfCovariance


class MultivariateNormal(OfCovariance):
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
        name, matrix = self._given(covariance_matrix, precision_matrix, scale_tril)
        batch_shape = weft.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._factorize(name, matrix)

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
