"""Relaxed categorical distributions: samples near the corners of a simplex, differentiable in the probabilities."""

from __future__ import annotations

import weft

from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .of_categorical import OfCategorical
from .relaxed import Relaxed
from .transforms import ExpTransform
from .utils import clamp_probs


class ExpRelaxedCategorical(OfCategorical):
    """Models the logarithms of samples of `RelaxedOneHotCategorical`."""

    support = constraints.real_vector  # as in PyTorch, although not every real vector is possible
    has_rsample = True
    _expanded = {"temperature": None}

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(weft.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self._event_shape[0]
        logits, value = weft.broadcast_tensors(self.logits, value)
        scores = logits - value * self.temperature
        log_scale = weft.full_like(self.temperature, float(n)).lgamma() + self.temperature.log() * (n - 1)
        return (scores - scores.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed):
    """Samples are probability vectors. With a lower `temperature` they are closer to one-hot vectors.

    >>> import weft as torch
    >>> torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), torch.tensor([0.1, 0.9])).event_shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical
    _expanded = {}

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
