"""Defines the Cauchy distribution."""

from __future__ import annotations

import math

import weft

from ..core.tensor import Tensor
from .distribution import Shape
from .location_scale import LocationScale


class Cauchy(LocationScale):
    """The distribution of loc + scale * x / y, where x and y are independent and standard normal. It has no mean.

    >>> import weft as torch
    >>> torch.distributions.Cauchy(0.0, 1.0).icdf(torch.tensor(0.75))
    tensor(1.)
    """

    @property
    def mean(self) -> Tensor:
        return weft.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return weft.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        standard = self.loc.detach().new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + standard * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - distance.pow(2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
