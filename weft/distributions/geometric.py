"""Defines the geometric distribution."""

from __future__ import annotations

from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .distribution import Shape
from .logits import FromProbsOrLogits, which_is_given
from .utils import broadcast_all


class Geometric(FromProbsOrLogits):
    """Models the number of failures before the first success, with probability `probs` (or log-odds `logits`).

    >>> import weft as torch
    >>> torch.distributions.Geometric(torch.tensor(0.25)).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _expanded = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        name, value = which_is_given(probs, logits)
        (value,) = broadcast_all(value)
        self._set_param(name, value)
        super().__init__(value.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (value > 0).all():
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{value[value <= 0]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return weft.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape))
            u.uniform_(weft.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = weft.broadcast_tensors(value, self.probs)
        failures = probs.masked_fill((probs == 1) & (value == 0), 0)  # so that 0 * log(0) is 0
        return value * (-failures).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        of_one = weft.nn.functional.binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )
        return of_one / self.probs
