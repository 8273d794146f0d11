"""Defines the Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .exp_family import ExponentialFamily
from .logits import FromProbsOrLogits, which_is_given
from .utils import broadcast_all


class Bernoulli(FromProbsOrLogits, ExponentialFamily):
    """Samples are 1 with probability `probs` (or with log-odds `logits`), and 0 otherwise.

    >>> import weft as torch
    >>> torch.distributions.Bernoulli(logits=torch.tensor(0.0)).probs
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0.0
    _expanded = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        name, value = which_is_given(probs, logits)
        (value,) = broadcast_all(value)
        self._set_param(name, value)
        super().__init__(value.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = weft.nan
        return mode

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return weft.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = weft.broadcast_tensors(self.logits, value)
        return -weft.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (weft.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()

    def entropy(self) -> Tensor:
        return weft.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(weft.arange(2, dtype=self._param.dtype, device=self._param.device), expand)
