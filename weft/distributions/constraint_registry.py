"""Gives each constraint a transform from unconstrained real numbers, so that optimizers can find parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms


class ConstraintRegistry:
    """Maps constraints to transforms: `registry(constraint)`.

    >>> import weft as torch
    >>> from weft.distributions import constraints, transform_to
    >>> transform_to(constraints.positive)(torch.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable | None = None) -> Any:
        """Register a factory for a class of constraints. Without `factory`, the result is a decorator.

        Raises: TypeError if `constraint` is not a constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        if type(constraint) not in self._registry:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return self._registry[type(constraint)](constraint)


biject_to = ConstraintRegistry()  # bijections
# Transforms that may suit optimization better, and need not be bijections.
transform_to = ConstraintRegistry()


def _register(*kinds: Any, of: tuple[ConstraintRegistry, ...] = (biject_to, transform_to)) -> Callable:
    def decorate(factory: Callable) -> Callable:
        for registry in of:
            for kind in kinds:
                registry.register(kind, factory)
        return factory

    return decorate


@_register(constraints._Real)
def _real(constraint):
    return transforms.identity_transform


@_register(constraints._GreaterThan, constraints._GreaterThanEq)
def _greater_than(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_register(constraints._LessThan)
def _less_than(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_register(constraints._Interval, constraints._HalfOpenInterval)
def _interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@_register(constraints._Simplex, of=(biject_to,))
def _simplex_bijection(constraint):
    return transforms.StickBreakingTransform()


@_register(constraints._Simplex, of=(transform_to,))
def _simplex(constraint):
    return transforms.SoftmaxTransform()


@_register(constraints._LowerCholesky, of=(transform_to,))
def _lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@_register(constraints._PositiveSemidefinite, constraints._PositiveDefinite, of=(transform_to,))
def _positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_register(constraints._CorrCholesky)
def _corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


for _each in (biject_to, transform_to):

    @_each.register(constraints.cat)
    def _cat(constraint, registry=_each):
        return transforms.CatTransform(
            list(map(registry, constraint.cseq)), constraint.dim, constraint.lengths
        )

    @_each.register(constraints.stack)
    def _stack(constraint, registry=_each):
        return transforms.StackTransform(list(map(registry, constraint.cseq)), constraint.dim)

    @_each.register(constraints.independent)
    def _independent(constraint, registry=_each):
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)
