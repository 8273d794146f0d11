"""Defines the categorical distribution."""

from __future__ import annotations

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .logits import FromProbsOrLogits, which_is_given


class Categorical(FromProbsOrLogits):
    """Samples are categories 0 ... k - 1. The probability of category i is proportional to `probs[..., i]`.

    Or to exp(logits[..., i]). Shapes: [..., k] -> batch_shape [...].

    >>> import weft as torch
    >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _expanded = {"probs": 1, "logits": 1, "_num_events": None}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ):
        name, value = which_is_given(probs, logits)
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            value = value / value.sum(-1, keepdim=True)
        else:
            value = value - value.logsumexp(dim=-1, keepdim=True)
        self._set_param(name, value)
        self._num_events = value.size(-1)
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN, because categories have no mean."""
        return weft.full(self._batch_shape, weft.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        count = weft.Size(sample_shape).numel()
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            return weft.multinomial(rows, count, True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, log_probs = weft.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=weft.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(weft.arange(self._num_events, device=self._param.device), expand)
