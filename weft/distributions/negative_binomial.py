"""Defines the negative binomial distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .gamma import Gamma
from .logits import FromProbsOrLogits, which_is_given
from .utils import broadcast_all, lazy_property


class NegativeBinomial(FromProbsOrLogits):
    """Models the number of successes before `total_count` failures, with probability `probs` (or log-odds `logits`).

    >>> import weft as torch
    >>> torch.distributions.NegativeBinomial(3.0, torch.tensor(0.5)).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _expanded = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        name, value = which_is_given(probs, logits)
        total_count, value = broadcast_all(total_count, value)
        self.total_count = total_count.type_as(value)
        self._set_param(name, value)
        super().__init__(value.shape, validate_args=validate_args)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The gamma distribution of the rate. A Poisson distribution with this rate has the negative binomial distribution."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / weft.sigmoid(-self.logits)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return weft.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, log_sigmoid = self.total_count, weft.nn.functional.logsigmoid
        log_attempts = n * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)
        log_ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return log_attempts + log_ways.masked_fill(n + value == 0, 0)
