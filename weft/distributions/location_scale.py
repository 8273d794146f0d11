"""Location-scale families: distributions of loc + scale * x, where the distribution of x is symmetric about 0."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all


class LocationScale(Distribution):
    """Represents a distribution of real numbers with the parameters `loc` (mean and mode) and `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expanded = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc
