"""Defines the binomial distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .logits import FromProbsOrLogits, which_is_given
from .utils import broadcast_all


class Binomial(FromProbsOrLogits):
    """Models the number of successes in `total_count` trials with probability `probs` (or log-odds `logits`).

    >>> import weft as torch
    >>> torch.distributions.Binomial(4, torch.tensor(0.5)).variance
    tensor(1.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _expanded = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        name, value = which_is_given(probs, logits)
        total_count, value = broadcast_all(total_count, value)
        self.total_count = total_count.type_as(value)
        self._set_param(name, value)
        super().__init__(value.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return weft.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        log_ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # n * log(1 + exp(logits)) without overflow. The first term is n * max(logits, 0), with slope n / 2 at 0.
        log_norm = n * ((logits + logits.abs()) / 2) + n * (-logits.abs()).exp().log1p()
        return value * logits + log_ways - log_norm

    def entropy(self) -> Tensor:
        log_probs = self.log_prob(self._enumerated("entropy", expand=False))
        return -(log_probs.exp() * log_probs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated("enumerate_support", expand)

    def _enumerated(self, method: str, expand: bool) -> Tensor:
        total = int(self.total_count.max())
        if not int(self.total_count.min()) == total:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        like = self._param
        return self._values(weft.arange(1 + total, dtype=like.dtype, device=like.device), expand)
