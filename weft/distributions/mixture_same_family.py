"""Defines mixtures of distributions of one family."""

from __future__ import annotations

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, Shape


class MixtureSameFamily(Distribution):
    """A mixture whose components are the last batch dim of one distribution. A categorical distribution selects components.

    Shapes: batch_shape [..., k] of the components, probs [..., k] of the mixture -> batch_shape [...].

    >>> import weft as torch
    >>> from weft.distributions import Categorical, MixtureSameFamily, Normal
    >>> MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-1.0, 1.0]), 0.1)).mean
    tensor(0.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _expanded = {
        "_mixture_distribution": 0,
        "_component_distribution": 1,
        "_num_component": None,
        "_event_ndims": None,
    }

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution"
            )
        weights, components = mixture_distribution.batch_shape, component_distribution.batch_shape
        for given, wanted in zip(reversed(weights), reversed(components[:-1]), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({components})"
                )
        n = mixture_distribution.logits.shape[-1]
        if n != components[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({n}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components[-1]})"
            )
        self._mixture_distribution, self._component_distribution = (
            mixture_distribution,
            component_distribution,
        )
        self._num_component, self._event_ndims = n, len(component_distribution.event_shape)
        super().__init__(components[:-1], component_distribution.event_shape, validate_args=validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _pad(self, value: Tensor) -> Tensor:
        """Return `value` with a dim of size 1 for the components."""
        return value.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Return [..., k] with dims of size 1 for the event dims."""
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def _averaged(self, of_components: Tensor) -> Tensor:
        probs = self._pad_mixture_dimensions(self._mixture_distribution.probs)
        return (probs * of_components).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        within = self._averaged(self._component_distribution.variance)
        return within + self._averaged((self._component_distribution.mean - self._pad(self.mean)).pow(2))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        n_event = self._event_ndims
        with no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (n_event + 1))
            index = index.expand((*samples.shape[: samples.dim() - n_event - 1], 1, *self._event_shape))
            return samples.gather(-1 - n_event, index).squeeze(-1 - n_event)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        of_components = self._component_distribution.log_prob(self._pad(value))
        return (of_components + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        of_components = self._component_distribution.cdf(self._pad(value))
        return (of_components * self._mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
