"""Defines the Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


class Gumbel(TransformedDistribution):
    """Represents the distribution of loc - scale * log(-log(u)) with uniform u, a limit for maxima of many variables.

    >>> import weft as torch
    >>> torch.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _expanded = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
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
        return self.loc + self.scale * euler_constant

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
        if self._validate_args:
            self._validate_sample(value)
        distance = (self.loc - value) / self.scale
        return (distance - distance.exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
