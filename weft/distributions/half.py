"""The positive halves of distributions that are symmetric about 0."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .cauchy import Cauchy
from .location_scale import LocationScale
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """The distribution of |x|, with x from a family about 0 with this `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    base_dist: LocationScale
    _family: type[LocationScale]

    def __init__(self, scale: Any, validate_args: bool | None = None):
        base = self._family(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)
        if self._validate_args and not constraints.positive.check(base.scale).all():
            raise ValueError(
                f"Expected parameter scale of {type(self).__name__} to be positive, but found:\n{base.scale}"
            )

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return weft.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return weft.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """The distances from 0 of normal numbers with standard deviation `scale`.

    >>> import weft as torch
    >>> torch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _family = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(Half):
    """The distances from 0 of Cauchy numbers: half of them are less than `scale`.

    >>> import weft as torch
    >>> torch.distributions.HalfCauchy(2.0).cdf(torch.tensor(2.0))
    tensor(0.5000)
    """

    _family = Cauchy

    @property
    def mean(self) -> Tensor:
        return weft.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
