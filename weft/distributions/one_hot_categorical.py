"""Categorical distributions whose samples are one-hot vectors."""

from __future__ import annotations

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .of_categorical import OfCategorical


class OneHotCategorical(OfCategorical):
    """Samples are one-hot vectors of the category drawn.

    >>> import weft as torch
    >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return weft.nn.functional.one_hot(index, self._event_shape[0]).to(self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = weft.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors with the straight-through estimator: their gradient is the gradient of the probabilities.

    Source: Bengio, Leonard and Courville, Estimating or Propagating Gradients Through Stochastic Neurons, 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
