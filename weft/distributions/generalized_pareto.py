"""Defines the generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape
from .utils import broadcast_all


class GeneralizedPareto(Distribution):
    """The distribution of values above a threshold `loc`. With concentration 0 it is a shifted exponential distribution.

    >>> import weft as torch
    >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _expanded = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        upper = weft.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _exponential(self) -> tuple[Tensor, Tensor]:
        """Return a mask of zero concentrations, and the concentrations with the zeros replaced by a safe divisor."""
        zero = self.concentration.isclose(self.concentration.new_zeros(()))
        return zero, self.concentration.masked_fill(zero, 1.0)

    @property
    def mean(self) -> Tensor:
        found = self.loc + self.scale / (1 - self.concentration)
        return found.masked_fill(self.concentration >= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        found = self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c))
        return found.masked_fill(c >= 0.5, math.nan)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(weft.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, c = self._exponential()
        found = -(1 / c + 1) * (c * z).log1p()
        return weft.where(zero, -z, found) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Compute log(1 - cdf(value))."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, c = self._exponential()
        return weft.where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        log_survival = (-value).log1p()
        zero, c = self._exponential()
        return self.loc + self.scale * weft.where(zero, -log_survival, (-c * log_survival).expm1() / c)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
