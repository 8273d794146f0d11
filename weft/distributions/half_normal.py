"""Defines the half-normal distribution."""

from __future__ import annotations

import math

from ..core.tensor import Tensor
from .half import Half
from .normal import Normal


class HalfNormal(Half):
    """Represents the distribution of abs(x) with x from a normal distribution with standard deviation `scale`.

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
