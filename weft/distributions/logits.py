"""Probabilities that are given as such or as log-odds, and the one made of the other when it is asked for."""

from __future__ import annotations

from typing import Any

import weft
import weft.nn.functional

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from .distribution import Distribution


def clamped(probs: Tensor) -> Tensor:
    """Away from 0 and 1, so that the logarithms are finite."""
    eps = weft.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class FromProbsOrLogits(Distribution):
    """A distribution with the parameters `probs` and `logits`, exactly one of which is given."""

    def __getattr__(self, name: str) -> Tensor:
        if name not in ("probs", "logits"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with enable_grad():  # it is kept, also if `sample` is the first to ask
            value = self._probs_of_logits() if name == "probs" else self._logits_of_probs()
        self.__dict__[name] = value
        return value

    @property
    def _param(self) -> Tensor:
        """The one that was given, or else known first."""
        return self.__dict__[self._given]

    _given: str

    def _take(self, probs: Any, logits: Any) -> Any:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "probs" if logits is None else "logits"
        return probs if logits is None else logits

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._given = self._given
        return new

    def _probs_of_logits(self) -> Tensor:
        return weft.sigmoid(self.logits)

    def _logits_of_probs(self) -> Tensor:
        probs = clamped(self.probs)
        return weft.log(probs) - weft.log1p(-probs)

    def _values(self, values: Tensor, expand: bool) -> Tensor:
        """What `enumerate_support` gives for a support of these values."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def param_shape(self) -> Any:
        return self._param.size()
