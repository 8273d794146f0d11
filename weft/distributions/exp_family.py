"""Distributions whose density is exp(natural parameters * statistics - log normalizer)."""

from __future__ import annotations

from typing import Any

import weft

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from .distribution import Distribution, _not_stated


class ExponentialFamily(Distribution):
    """A subclass defines `_natural_params`, `_log_normalizer` and `_mean_carrier_measure`, which determine the entropy."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any, **_: Any) -> Tensor:
        raise NotImplementedError

    _mean_carrier_measure: Any = property(_not_stated, doc="The expectation of the carrier measure.")

    def entropy(self) -> Tensor:
        """Return the entropy, by the Bregman divergence of the log normalizer."""
        params = [each.detach().requires_grad_() for each in self._natural_params]
        with enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = weft.autograd.grad(normalizer.sum(), params, create_graph=True)
        found = -self._mean_carrier_measure + normalizer
        for param, gradient in zip(params, gradients):
            found = found - (param * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return found
