"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import broadcast_parameters
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform

EULER = 0.57721566490153286060  # the Euler-Mascheroni constant: minus digamma(1)


class Gumbel(TransformedDistribution):
    """Largest of many numbers: loc - scale * log(-log(u)), with u uniform.

    >>> import weft as torch
    >>> torch.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_parameters(loc, scale)
        limits, like = weft.finfo(self.loc.dtype), self.loc.detach()
        low, high = weft.full_like(like, limits.tiny), weft.full_like(like, 1 - limits.eps)
        super().__init__(
            Uniform(low, high, validate_args=validate_args),
            [
                ExpTransform().inv,
                AffineTransform(0, -1),
                ExpTransform().inv,
                AffineTransform(self.loc, -self.scale),
            ],
            validate_args,
        )

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        distance = (self.loc - value) / self.scale
        return (distance - distance.exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
