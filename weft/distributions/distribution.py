"""Defines the base class of all distributions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..core.constructors import constructor, name_constructor
from ..core.grad_mode import no_grad
from ..core.size import Size
from ..core.tensor import Tensor
from ..core.warn import user_level
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]

Shape = Sequence[int]


def _not_stated(distribution: Any) -> Any:
    raise NotImplementedError


class Distribution:
    """A batch of distributions: samples have shape sample_shape + batch_shape + event_shape.

    A subclass sets its parameters, which have the batch shape, before it calls `__init__`. `arg_constraints` maps their names
    to constraints, and `support` is the constraint for samples.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # By the names of the attributes that `expand` expands, or keeps (None): how many of their last dims are no batch dims. A class with
    # an `__init__` of its own has such a table, to which those of its base classes are added.
    _expanded: dict[str, int | None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_constructor(cls)

    def __init__(
        self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()  # a subclass may have further bases, such as nn.Module

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of `validate_args`: whether distributions check parameters and samples."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """A new distribution whose parameters are expanded to `batch_shape`.

        A subclass that overrides `__init__` also overrides this method. It passes the new object as `_instance` to the
        method of its base class, which sets the parameters.
        """
        return self._expand_to(self._new_instance(_instance), batch_shape)

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    arg_constraints: Any = property(_not_stated, doc="For each parameter, the set that it must be in.")
    support: Any = property(_not_stated, doc="The set that samples are in.")

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

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples without a graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples that are differentiable with respect to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Compute `sample((n,))`; PyTorch deprecates this method."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.",
            FutureWarning,
            stacklevel=user_level(),
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density (or probability) at `value`, for each event.

        Raises: ValueError for a value outside of the support, if `validate_args` is set.
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample <= `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values in a discrete support, along a new first dim."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Compute exp of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """The object that `expand` of the class `cls` fills: `_instance`, or a new object of the class of `self`.

        Raises: NotImplementedError if that is a subclass with another `__init__`, because it may have further attributes.
        """
        if _instance is not None:
            return _instance
        kind = type(self)
        if constructor(kind) is not constructor(cls):
            # Name the public distribution, not an internal base class.
            known = next((each for each in kind.__mro__ if constructor(each) is constructor(cls)), cls)
            raise NotImplementedError(
                f"Subclass {kind.__name__} of {known.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return kind.__new__(kind)

    def _new_instance(self, given: Any) -> Any:
        """Return the object that `expand` fills."""
        for cls in type(self).__mro__:
            if "_expanded" in vars(cls):
                return self._get_checked_instance(cls, given)
        raise NotImplementedError

    def _expand_to(self, new: Any, batch_shape: Shape) -> Any:
        """Return `new`, with the attributes of `self` that `_expanded` names.

        A lazy parameter that is not computed yet is not computed.
        """
        for cls in type(self).__mro__:
            for name, n_own in vars(cls).get("_expanded", {}).items():
                if name in self.__dict__ or not _is_lazy(type(self), name):
                    value = getattr(self, name)
                    if n_own is not None:
                        shape = value.batch_shape if isinstance(value, Distribution) else value.shape
                        value = value.expand((*batch_shape, *shape[len(shape) - n_own :]))
                    setattr(new, name, value)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=user_level(),
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and _is_lazy(type(self), name):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value: Tensor) -> None:
        """Raises: ValueError if the shape or a value is not possible for samples."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        n_event = len(self._event_shape)
        if value.shape[value.dim() - n_event :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = Size((*self._batch_shape, *self._event_shape))
        for given, wanted in zip(reversed(value.shape), reversed(expected), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=user_level(),
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__.get(name)) for name in self.arg_constraints)
            if value is not None
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_lazy(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), lazy_property)
