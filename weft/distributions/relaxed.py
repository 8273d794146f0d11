"""Samples near the corners of a simplex that can be differentiated in the probabilities.

Source: Maddison, Mnih and Teh, The Concrete Distribution, 2017; Jang, Gu and Poole, Gumbel-Softmax, 2017.
"""

from __future__ import annotations

from typing import Any

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape, broadcast_parameters
from .logits import FromProbsOrLogits, clamped
from .of_categorical import OfCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform


class LogitRelaxedBernoulli(FromProbsOrLogits):
    """The log-odds of samples of `RelaxedBernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        self.temperature = temperature
        (value,) = broadcast_parameters(self._take(probs, logits))
        setattr(self, self._given, value)
        super().__init__(value.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        probs = clamped(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamped(weft.rand(probs.shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = weft.broadcast_tensors(self.logits, value)
        distance = logits - value * self.temperature
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class ExpRelaxedCategorical(OfCategorical):
    """The logarithms of samples of `RelaxedOneHotCategorical`."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamped(weft.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self._event_shape[0]
        logits, value = weft.broadcast_tensors(self.logits, value)
        scores = logits - value * self.temperature
        log_scale = weft.full_like(self.temperature, float(n)).lgamma() + self.temperature.log() * (n - 1)
        return (scores - scores.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class _Relaxed(TransformedDistribution):
    """A transformed distribution with probabilities and a temperature."""

    base_dist: Any

    @property
    def temperature(self) -> Tensor:
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1), the closer to 0 or 1 the lower `temperature`.

    >>> import weft as torch
    >>> torch.distributions.RelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.1, 0.9])).batch_shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of probabilities, the closer to one-hot the lower `temperature`.

    >>> import weft as torch
    >>> torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), torch.tensor([0.1, 0.9])).event_shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
