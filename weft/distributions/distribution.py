"""What all distributions have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.size import Size
from ..core.tensor import Tensor
from . import constraints

Shape = Sequence[int]


class Distribution:
    """A batch of distributions: samples have shape sample_shape + batch_shape + event_shape.

    A subclass names its parameters in `arg_constraints` and passes them on; numbers become tensors, and all are
    broadcast against each other, except for their last `event_dim` dims.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints: dict[str, constraints.Constraint] = {}
    support: Any

    def __init__(
        self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint) or name not in self.__dict__:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check parameters and samples from now on, unless told otherwise."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """A new distribution whose parameters are expanded to `batch_shape`."""
        new = type(self).__new__(type(self)) if _instance is None else _instance
        for name, value in self._parameters().items():
            constraint = self.arg_constraints[name]
            own = 0 if constraints.is_dependent(constraint) else constraint.event_dim
            setattr(new, name, value.expand((*batch_shape, *value.shape[value.dim() - own :])))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _parameters(self) -> dict[str, Tensor]:
        return {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples that nothing can be differentiated through."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples that are differentiable in the parameters."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density (or probability) at `value`, for each event.

        Raises: ValueError for what is not in the support, if arguments are validated.
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The value whose `cdf` is `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that samples can have, along a new first dim."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        n_event = len(self._event_shape)
        if value.shape[value.dim() - n_event :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = (*self._batch_shape, *self._event_shape)
        for given, wanted in zip(reversed(value.shape), reversed(expected), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(expected)}."
                )
        if not self.support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({self.support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in self._parameters().items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def broadcast_parameters(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers get the dtype of the tensors.

    Raises: ValueError for anything else.
    """
    if not all(isinstance(value, (Tensor, int, float)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = weft.get_default_dtype() if like is None else like.dtype
    tensors = [value if isinstance(value, Tensor) else weft.tensor(value, dtype=dtype) for value in values]
    return tuple(weft.broadcast_tensors(*tensors))


def sum_rightmost(value: Tensor, n: int) -> Tensor:
    """`value`, summed over its last `n` dims."""
    return value.sum(tuple(range(-n, 0))) if n else value


def standard_normal(shape: Shape, like: Tensor) -> Tensor:
    return weft.normal(
        weft.zeros(shape, dtype=like.dtype, device=like.device),
        weft.ones(shape, dtype=like.dtype, device=like.device),
    )
