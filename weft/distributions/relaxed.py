"""Base class of relaxed distributions, whose samples are near 0 and 1 and differentiable in the probabilities.

Source: Maddison, Mnih and Teh, The Concrete Distribution, 2017; Jang, Gu and Poole, Gumbel-Softmax, 2017.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transformed distribution whose `base_dist` has probabilities and a temperature."""

    has_rsample = True  # type: ignore[assignment]
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
