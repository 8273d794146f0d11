"""Defines the Wishart distribution of covariance matrices."""

from __future__ import annotations

import math
import warnings
from typing import Any

import weft

from ..core.tensor import Tensor
from ..core.warn import user_level
from . import constraints
from .chi2 import Chi2
from .distribution import Shape
from .exp_family import ExponentialFamily
from .of_covariance import OfCovariance, factorize, given_matrix, half_log_det


class Wishart(OfCovariance, ExponentialFamily):
    """Positive definite matrices [..., n, n], the sums of x x^T over `df` normal vectors x with the given covariance.

    df > n - 1. Give exactly one of covariance_matrix, its inverse (precision_matrix) and its Cholesky factor (scale_tril).

    >>> import weft as torch
    >>> torch.distributions.Wishart(torch.tensor(2.0), torch.eye(2)).mean
    tensor([[2., 0.],
            [0., 2.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _expanded = {
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "df": 0,
        "_unbroadcasted_scale_tril": None,
    }
    _mean_carrier_measure = 0.0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        name, matrix = given_matrix(covariance_matrix, precision_matrix, scale_tril)
        event_shape = matrix.shape[-2:]
        n = event_shape[-1]
        df = df if isinstance(df, Tensor) else weft.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = weft.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        if (self.df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        super().__init__(batch, event_shape, validate_args=validate_args)
        if (self.df < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=user_level(),
            )
        self._unbroadcasted_scale_tril = factorize(name, matrix)
        self._batch_dims = [-(dim + 1) for dim in range(len(batch))]
        self._dist_chi2 = self._of_diagonals()

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _of_diagonals(self) -> Chi2:
        """Return the distribution of the squared diagonal of the Bartlett factor: its degrees of freedom decrease."""
        factor = self._unbroadcasted_scale_tril
        steps = weft.arange(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return Chi2(self.df.unsqueeze(-1) - steps.expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._batch_dims = [-(dim + 1) for dim in range(len(batch_shape))]
        new._dist_chi2 = Wishart._of_diagonals(new)
        return new

    @property
    def _scaled_df(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._scaled_df * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._scaled_df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, weft.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._scaled_df * (covariance.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Shape = ()) -> Tensor:
        """Multiply the Cholesky factor of the covariance by a random factor. Source: Bartlett 1933."""
        n = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        rows, columns = weft.tril_indices(n, n, -1)
        noise[..., rows, columns] = weft.randn(
            (*sample_shape, *self._batch_shape, n * (n - 1) // 2), dtype=noise.dtype, device=noise.device
        )
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Shape = (), max_try_correction: int = 10) -> Tensor:
        """Samples. Samples that are singular because of rounding are drawn again, up to `max_try_correction` times."""
        sample_shape = tuple(sample_shape)
        # PyTorch treats the first samples as singular even if they are not, and draws again. Draw and drop these samples,
        # so that a seed gives PyTorch's numbers.
        self._bartlett_sampling(sample_shape)
        found = self._bartlett_sampling(sample_shape)
        for _ in range(max_try_correction):
            singular = ~self.support.check(found)
            if self._batch_shape:
                singular = singular.flatten(len(sample_shape)).any(-1)
            count = int(singular.sum())
            if not count:
                break
            again = self._bartlett_sampling((count,))
            found[singular] = again if sample_shape else again[0]
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, df = self._event_shape[-1], self.df
        trace = weft.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -df * (n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            - weft.mvlgamma(df / 2, n)
            + (df - n - 1) / 2 * weft.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half_df = y + (n + 1) / 2
        log_det = weft.linalg.slogdet(-2 * x).logabsdet
        return half_df * (n * math.log(2) - log_det) + weft.mvlgamma(half_df, n)

    def entropy(self) -> Tensor:
        n, df = self._event_shape[-1], self.df
        return (
            (n + 1) * (n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + weft.mvlgamma(df / 2, n)
            - (df - n - 1) / 2 * _mvdigamma(df / 2, n)
            + df * n / 2
        )


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of mvlgamma(x, p)."""
    return (x.unsqueeze(-1) - weft.arange(p, dtype=x.dtype, device=x.device) / 2).digamma().sum(-1)
