"""The continuous Bernoulli distribution. Source: Loaiza-Ganem and Cunningham 2019."""

from __future__ import annotations

import math
from typing import Any

import weft
import weft.nn.functional

from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape, broadcast_parameters
from .logits import FromProbsOrLogits, clamped


class ContinuousBernoulli(FromProbsOrLogits):
    """Numbers x in [0, 1] of density proportional to probs ** x * (1 - probs) ** (1 - x).

    Within `lims`, around 0.5, where the formulas divide by zero, Taylor's take their place.

    >>> import weft as torch
    >>> torch.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        (value,) = broadcast_parameters(self._take(probs, logits))
        setattr(self, self._given, value)
        self._lims = lims
        super().__init__(value.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamped(value)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    def _probs_of_logits(self) -> Tensor:
        return clamped(super()._probs_of_logits())

    def _far(self) -> tuple[Tensor, Tensor]:
        """Where the probability is not around 0.5; and it, or there a number that can be computed with."""
        low, high = self._lims
        far = (self.probs <= low) | (self.probs > high)
        return far, self.probs.where(far, low)

    def _log_normalizer(self) -> Tensor:
        far, p = self._far()
        below, above = p.where(p <= 0.5, 0.0), p.where(p >= 0.5, 1.0)
        slope = ((-p).log1p() - p.log()).abs().log()
        found = slope - (-2.0 * below).log1p().where(p <= 0.5, (2.0 * above - 1.0).log())
        x = (self.probs - 0.5).pow(2)
        return found.where(far, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        far, p = self._far()
        found = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return found.where(far, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        far, p = self._far()
        found = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return found.where(far, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(weft.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = weft.broadcast_tensors(self.logits, value)
        loss = weft.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_normalizer() - loss

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        far, p = self._far()
        found = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        found = found.where(far, value)
        return weft.where(value <= 0, 0.0, weft.where(value >= 1, 1.0, found))

    def icdf(self, value: Tensor) -> Tensor:
        far, p = self._far()
        other = (-p).log1p()
        found = ((-p + value * (2.0 * p - 1.0)).log1p() - other) / (p.log() - other)
        return found.where(far, value)

    def entropy(self) -> Tensor:
        zero, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (zero - one) - self._log_normalizer() - zero
