"""Location-scale families: distributions of loc + scale * x, with x symmetric about 0."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_parameters


class LocationScale(Distribution):
    """A distribution of real numbers with the parameters `loc`, its mean and mode, and `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_parameters(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc
