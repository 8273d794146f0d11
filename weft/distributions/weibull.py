"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import broadcast_parameters
from .exponential import Exponential
from .gumbel import EULER
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform


class Weibull(TransformedDistribution):
    """Lifetimes around `scale` of what wears out (concentration > 1) or fails early (concentration < 1).

    >>> import weft as torch
    >>> torch.distributions.Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_parameters(scale, concentration)
        super().__init__(
            Exponential(weft.ones_like(self.scale.detach()), validate_args=validate_args),
            [PowerTransform(self.concentration.reciprocal()), AffineTransform(0, self.scale)],
            validate_args,
        )

    def _moment(self, n: int) -> Tensor:
        """The mean of the n-th powers, for scale 1."""
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
        return EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1
