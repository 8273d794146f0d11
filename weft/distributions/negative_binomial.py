"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape, broadcast_parameters
from .gamma import Gamma
from .logits import FromProbsOrLogits


class NegativeBinomial(FromProbsOrLogits):
    """How many attempts succeed before `total_count` fail, each with probability `probs` or log-odds `logits`.

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

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        total_count, value = broadcast_parameters(total_count, self._take(probs, logits))
        self.total_count = total_count.type_as(value)
        setattr(self, self._given, value)
        super().__init__(value.shape, validate_args=validate_args)

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
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return weft.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, log_sigmoid = self.total_count, weft.nn.functional.logsigmoid
        log_attempts = n * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)
        log_ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return log_attempts + log_ways.masked_fill(n + value == 0, 0)
