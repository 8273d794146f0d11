"""Defines the half-Cauchy distribution."""

from __future__ import annotations

import math

import weft

from ..core.tensor import Tensor
from .cauchy import Cauchy
from .half import Half


class HalfCauchy(Half):
    """The distribution of abs(x) with x from a Cauchy distribution. Its median is `scale`.

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
