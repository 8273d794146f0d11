"""The normal distribution of vectors that vary in a few directions."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape, standard_normal


class LowRankMultivariateNormal(Distribution):
    """Normal vectors [..., n] with the covariance cov_factor @ cov_factor.T + diag(cov_diag).

    Shapes: loc [..., n], cov_factor [..., n, rank], cov_diag [..., n].

    >>> import weft as torch
    >>> d = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
    >>> d.variance
    tensor([2., 1.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch = weft.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from None
        self._factor, self._diagonal = cov_factor, cov_diag
        self.loc = loc.expand((*batch, -1))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, -1))
        self._capacitance = _capacitance_factor(cov_factor, cov_diag)
        super().__init__(batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._factor, new._diagonal, new._capacitance = self._factor, self._diagonal, self._capacitance
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self._factor.pow(2).sum(-1) + self._diagonal
        return found.expand((*self._batch_shape, *self._event_shape))

    @property
    def covariance_matrix(self) -> Tensor:
        return self._of_events(self._factor @ self._factor.mT + self._diagonal.diag_embed())

    @property
    def scale_tril(self) -> Tensor:
        return weft.linalg.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        """By the Woodbury identity."""
        scaled = self._factor.mT / self._diagonal.unsqueeze(-2)
        whitened = weft.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        return self._of_events(self._diagonal.reciprocal().diag_embed() - whitened.mT @ whitened)

    def _of_events(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        common = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = standard_normal(shape, self.loc)
        return self.loc + (self._factor @ common.unsqueeze(-1)).squeeze(-1) + self._diagonal.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        distance = self._distance(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        found = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return found.expand(self._batch_shape)

    def _log_det(self) -> Tensor:
        """By the matrix determinant lemma."""
        return 2 * self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self._diagonal.log().sum(-1)

    def _distance(self, offset: Tensor) -> Tensor:
        """The squared Mahalanobis distance, by the Woodbury identity."""
        scaled = (self._factor.mT / self._diagonal.unsqueeze(-2)) @ offset.unsqueeze(-1)
        whitened = weft.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        return (offset.pow(2) / self._diagonal).sum(-1) - whitened.squeeze(-1).pow(2).sum(-1)


def _capacitance_factor(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of 1 + W.T D^-1 W."""
    inner = (factor.mT / diagonal.unsqueeze(-2)) @ factor
    return weft.linalg.cholesky(inner + weft.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device))
