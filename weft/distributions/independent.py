"""Defines Independent, which takes batch dims as event dims."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape
from .utils import _sum_rightmost

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """Takes the last `reinterpreted_batch_ndims` batch dims of `base_distribution` as event dims.

    >>> import weft as torch
    >>> torch.distributions.Independent(torch.distributions.Normal(torch.zeros(3), 1.0), 1)
    Independent(Normal(loc: torch.Size([3]), scale: torch.Size([3])), 1)
    >>> torch.distributions.Independent(torch.distributions.Normal(torch.zeros(3), 1.0), 1).event_shape
    torch.Size([3])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _expanded = {"reinterpreted_batch_ndims": None}

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ):
        n_batch = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > n_batch:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {n_batch}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        n_event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(
            shape[: len(shape) - n_event], shape[len(shape) - n_event :], validate_args=validate_args
        )

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        found = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(found, n) if n else found

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = self._new_instance(_instance)
        own = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *own))
        return self._expand_to(new, batch_shape)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def _summed(self, of_each: Tensor) -> Tensor:
        return _sum_rightmost(of_each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
