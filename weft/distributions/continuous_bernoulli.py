"""Defines the continuous Bernoulli distribution. Source: Loaiza-Ganem and Cunningham 2019."""

from __future__ import annotations

import math
from typing import Any

import weft
import weft.nn.functional

from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .exp_family import ExponentialFamily
from .logits import FromProbsOrLogits, which_is_given
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs


class ContinuousBernoulli(FromProbsOrLogits, ExponentialFamily):
    """Samples x are in [0, 1] with density proportional to probs ** x * (1 - probs) ** (1 - x).

    Near 0.5 (within `lims`) the formulas divide by zero, so Taylor expansions replace them.

    >>> import weft as torch
    >>> torch.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0.0
    _expanded = {"probs": 0, "logits": 0, "_lims": None}

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        name, value = which_is_given(probs, logits)
        (value,) = broadcast_all(value)
        self._set_param(name, value)
        self._lims = lims
        super().__init__(value.shape, validate_args=validate_args)
        if logits is None:
            self._set_param("probs", clamp_probs(value))

    @lazy_property
    def probs(self) -> Any:
        """The parameter, clamped away from 0 and 1. It is not the mean."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        """A mask of the elements whose probability is not near 0.5."""
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _cut_probs(self) -> Tensor:
        """Return the probability, replaced by a bound of `lims` near 0.5."""
        return self.probs.where(self._outside_unstable_region(), self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Return the logarithm of the normalizing constant."""
        far, p = self._outside_unstable_region(), self._cut_probs()
        below, above = p.where(p <= 0.5, 0.0), p.where(p >= 0.5, 1.0)
        slope = ((-p).log1p() - p.log()).abs().log()
        found = slope - (-2.0 * below).log1p().where(p <= 0.5, (2.0 * above - 1.0).log())
        x = (self.probs - 0.5).pow(2)
        return found.where(far, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        far, p = self._outside_unstable_region(), self._cut_probs()
        found = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return found.where(far, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        far, p = self._outside_unstable_region(), self._cut_probs()
        found = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return found.where(far, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(weft.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = weft.broadcast_tensors(self.logits, value)
        loss = weft.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - loss

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        far, p = self._outside_unstable_region(), self._cut_probs()
        found = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        found = found.where(far, value)
        return weft.where(value <= 0, 0.0, weft.where(value >= 1, 1.0, found))

    def icdf(self, value: Tensor) -> Tensor:
        far, p = self._outside_unstable_region(), self._cut_probs()
        other = (-p).log1p()
        found = ((-p + value * (2.0 * p - 1.0)).log1p() - other) / (p.log() - other)
        return found.where(far, value)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """Uses a Taylor expansion near 0."""
        low, high = self._lims
        far = (x <= low - 0.5) | (x > high - 0.5)
        cut = x.where(far, low - 0.5)
        found = (cut.exp() - 1).abs().log() - cut.abs().log()
        return found.where(far, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)

    def entropy(self) -> Tensor:
        zero, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (zero - one) - self._cont_bern_log_norm() - zero
