"""Defines distributions of transformed random variables."""

from __future__ import annotations

from typing import Any

from ..core.grad_mode import no_grad
from ..core.size import Size
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape
from .independent import Independent
from .transforms import ComposeTransform, Transform, as_transforms
from .utils import _sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of y = transform(x) with x from `base_distribution`. Several transforms are composed.

    >>> import weft as torch
    >>> from weft.distributions import Normal, TransformedDistribution, transforms
    >>> TransformedDistribution(Normal(0.0, 1.0), [transforms.ExpTransform()]).cdf(torch.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _expanded = {"transforms": None}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = as_transforms(transforms)
        whole = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        domain, codomain = whole.domain, whole.codomain
        if len(shape) < domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain.event_dim}, but got {shape}."
            )
        after = whole.forward_shape(shape)
        before, n_event = whole.inverse_shape(after), len(base_distribution.event_shape)
        if before != shape:  # the parameters of the transforms have a larger batch shape
            base_distribution = base_distribution.expand(before[: len(before) - n_event])
        if domain.event_dim > n_event:
            base_distribution = Independent(base_distribution, domain.event_dim - n_event)
        self.base_dist = base_distribution
        event_dim = max(codomain.event_dim, n_event + codomain.event_dim - domain.event_dim)
        cut = len(after) - event_dim
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        extra = len(self.event_shape) - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = self._new_instance(_instance)
        shape = Size((*batch_shape, *self.event_shape))
        shape = ComposeTransform(self.transforms).inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return self._expand_to(new, batch_shape)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim, y = len(self.event_shape), value
        found: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            found = found - _sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            y = x
        return found + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))

    def _monotonize_cdf(self, probability: Tensor) -> Tensor:
        """1 - probability where the transforms are decreasing, and `probability` elsewhere."""
        sign = ComposeTransform(self.transforms).sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5
