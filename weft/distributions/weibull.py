"""Defines the Weibull distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant


class Weibull(TransformedDistribution):
    """Models lifetimes whose failure rate increases (concentration > 1) or decreases: the Weibull distribution.

    >>> import weft as torch
    >>> torch.distributions.Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expanded = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        super().__init__(
            Exponential(weft.ones_like(self.scale.detach()), validate_args=validate_args),
            [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)],
            validate_args,
        )

    def _moment(self, n: int) -> Tensor:
        """Return the mean of the n-th powers, for scale 1."""
        return (1 + n / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self) -> Tensor:
        return euler_constant * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1
