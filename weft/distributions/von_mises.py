"""Defines the normal distribution of angles."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape
from .utils import broadcast_all, lazy_property


class VonMises(Distribution):
    """Samples are angles in [-pi, pi) with density proportional to exp(concentration * cos(angle - loc)).

    >>> import weft as torch
    >>> torch.distributions.VonMises(0.0, 1.0).variance
    tensor(0.5536)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _expanded = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Return the circular variance: 1 minus the length of the mean direction."""
        return 1 - weft.special.i1e(self.concentration) / weft.special.i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_bessel = weft.special.i0e(self.concentration).log() + self.concentration
        return self.concentration * (value - self.loc).cos() - math.log(2 * math.pi) - log_bessel

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.double()

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.double()

    @lazy_property
    def _proposal_r(self) -> Any:
        """The parameter of the proposal distribution. Uses a Taylor expansion near 0."""
        concentration = self._concentration
        tau = 1 + (1 + 4 * concentration.pow(2)).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
        r = (1 + rho.pow(2)) / (2 * rho)
        return (1 / concentration + concentration).where(concentration < 1e-5, r)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Sample by rejection from a wrapped Cauchy distribution. Source: Best and Fisher 1979."""
        with no_grad():
            loc, concentration, r = self._loc, self._concentration, self._proposal_r
            shape = self._extended_shape(sample_shape)
            angles = loc.new_zeros(shape)
            done = weft.zeros(shape, dtype=weft.bool)
            while not done.all():
                u1, u2, u3 = weft.rand((3, *shape), dtype=loc.dtype, device=loc.device)
                z = (math.pi * u1).cos()
                cosine = (1 + r * z) / (r + z)
                c = concentration * (r - cosine)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angles = ((u3 - 0.5).sign() * cosine.acos()).where(accepted, angles)
                done |= accepted
            return ((angles + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
