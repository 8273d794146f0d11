"""Relaxed Bernoulli distributions: samples near 0 and 1, differentiable in the probabilities."""

from __future__ import annotations

from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .logits import FromProbsOrLogits, which_is_given
from .relaxed import Relaxed
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs


class LogitRelaxedBernoulli(FromProbsOrLogits):
    """Models the log-odds of samples of `RelaxedBernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _expanded = {"probs": 0, "logits": 0, "temperature": None}

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        self.temperature = temperature
        name, value = which_is_given(probs, logits)
        (value,) = broadcast_all(value)
        self._set_param(name, value)
        super().__init__(value.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        probs = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamp_probs(weft.rand(probs.shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = weft.broadcast_tensors(self.logits, value)
        distance = logits - value * self.temperature
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(Relaxed):
    """Samples are in (0, 1). With a lower `temperature` they are closer to 0 or 1.

    >>> import weft as torch
    >>> torch.distributions.RelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.1, 0.9])).batch_shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli
    _expanded = {}

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
