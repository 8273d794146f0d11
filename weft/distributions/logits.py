"""Defines distributions with the parameter `probs` or `logits`."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


class FromProbsOrLogits(Distribution):
    """A distribution with the parameters `probs` and `logits`, exactly one of which is given.

    The other one is computed on first access. `_param` is the given one.
    """

    _param: Tensor
    _is_binary = True

    @lazy_property
    def probs(self) -> Any:
        """Return the probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @lazy_property
    def logits(self) -> Any:
        """Return the log-odds, or for several categories the logarithms of their probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    def _set_param(self, name: str, value: Any) -> None:
        """Store the given parameter."""
        setattr(self, name, value)
        self._param = value

    def _expand_to(self, new: Any, batch_shape: Any) -> Any:
        super()._expand_to(new, batch_shape)
        known = [new.__dict__[name] for name in ("logits", "probs") if name in new.__dict__]
        if known:
            new._param = known[0]
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    def _values(self, values: Tensor, expand: bool) -> Tensor:
        """The result of `enumerate_support` for a support of these values."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def param_shape(self) -> Any:
        return self._param.size()


def which_is_given(probs: Any, logits: Any) -> tuple[str, Any]:
    """Return ("probs", probs) or ("logits", logits).

    Raises: ValueError if both are given, or none.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("probs", probs) if logits is None else ("logits", logits)
