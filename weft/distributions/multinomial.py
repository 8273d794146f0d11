"""Defines the multinomial distribution."""

from __future__ import annotations

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .binomial import Binomial
from .distribution import Shape
from .of_categorical import OfCategorical


class Multinomial(OfCategorical):
    """The counts of categories in `total_count` draws.

    >>> import weft as torch
    >>> torch.distributions.Multinomial(4, torch.tensor([0.25, 0.75])).mean
    tensor([1., 3.])
    """

    total_count: int
    _expanded = {"total_count": None, "_binomial": 1}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            draws = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            counts = self.probs.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add_(-1, draws, weft.ones_like(draws).to(counts))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = weft.broadcast_tensors(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -weft.inf), 0)
        log_ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return log_ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = weft.tensor(self.total_count, dtype=self.probs.dtype)
        of_draws = n * self._categorical.entropy() - (n + 1).lgamma()
        counts = self._binomial.enumerate_support(expand=False)[1:]
        return of_draws + (self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
