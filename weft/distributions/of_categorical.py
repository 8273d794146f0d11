"""Defines the base class of distributions over vectors with one element per category."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class OfCategorical(Distribution):
    """Events are vectors with one element per category; `_categorical` has the parameters."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _expanded = {"_categorical": 0}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)
