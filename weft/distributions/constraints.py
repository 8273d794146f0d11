"""Sets that parameters and samples must lie in: `constraint.check(value)` says for each event whether it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft

from ..compat.missing import module_getattr
from ..core.tensor import Tensor


class Constraint:
    """A set of tensors whose last `event_dim` dims form one element."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """A bool for each event of `value`: whether it is in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class _Dependent(Constraint):
    """Depends on the parameters of a distribution: an instance of it knows its own."""

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class DependentProperty(property, _Dependent):
    """A property whose value is a constraint; the class itself, asked for it, says that it depends on the parameters."""

    def __init__(self, function: Callable, *, is_discrete: bool = False, event_dim: int = 0):
        super().__init__(function)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else super().__get__(owner, kind)


def dependent_property(
    function: Callable | None = None, *, is_discrete: bool = False, event_dim: int = 0
) -> Any:
    """Decorator: a property that gives a constraint."""
    if function is None:
        return lambda function: DependentProperty(function, is_discrete=is_discrete, event_dim=event_dim)
    return DependentProperty(function, is_discrete=is_discrete, event_dim=event_dim)


def is_dependent(constraint: Constraint) -> bool:
    return isinstance(constraint, _Dependent)


class Independent(Constraint):
    """Vectors and more whose elements are all in `base_constraint`."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        if found.dim() < self.reinterpreted_batch_ndims:
            wanted = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {wanted} but got {value.dim()}")
        return found.reshape((*found.shape[: found.dim() - self.reinterpreted_batch_ndims], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What is in the set of every component of a mixture: their bounds may differ."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint
        self.event_dim, self.is_discrete = base_constraint.event_dim, base_constraint.is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # false for NaN


class Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers within bounds, each of which is a number or a tensor."""

    lower_bound: Any
    upper_bound: Any

    def __init__(self, **bounds: Any):
        self.__dict__.update(bounds)
        self._bounds = bounds

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._bounds.items())})"
        )


class GreaterThan(_Bounded):
    def __init__(self, lower_bound: Any):
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class GreaterThanEq(_Bounded):
    def __init__(self, lower_bound: Any):
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class LessThan(_Bounded):
    def __init__(self, upper_bound: Any):
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Interval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any):
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class HalfOpenInterval(Interval):
    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class IntegerInterval(Interval):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class IntegerGreaterThan(GreaterThanEq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class Simplex(Constraint):
    """Vectors of numbers >= 0 whose sum is 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class OneHot(Constraint):
    """Vectors of zeros and a single one."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class Multinomial(Constraint):
    """Vectors of counts whose sum is `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: int):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return weft.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=weft.bool)


class LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_lower = (value.tril() == value).flatten(-2).all(-1)
        return is_lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class PositiveDefinite(Square):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value) & weft.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)
        return is_symmetric & (weft.linalg.cholesky_ex(value).info == 0)


class CorrCholesky(LowerCholesky):
    """Cholesky factors of correlation matrices: their rows have the length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = weft.finfo(value.dtype).eps * value.size(-1) * 10  # 10 is a margin for rounding
        lengths = value.detach().norm(dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _OfParts(Constraint):
    """Tensors that consist of parts along `dim`, each of which is in a set of its own."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(each.is_discrete for each in self.cseq)
        self.event_dim = max(each.event_dim for each in self.cseq)


class Cat(_OfParts):
    """Parts of several `lengths`, as `torch.cat` joins them."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return weft.cat([each.check(part) for each, part in zip(self.cseq, parts, strict=True)], self.dim)


class Stack(_OfParts):
    """Parts as `torch.stack` joins them."""

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return weft.stack([each.check(part) for each, part in zip(self.cseq, parts, strict=True)], self.dim)


independent, cat, stack = Independent, Cat, Stack
greater_than, greater_than_eq, less_than = GreaterThan, GreaterThanEq, LessThan
interval, integer_interval, half_open_interval = Interval, IntegerInterval, HalfOpenInterval
multinomial = Multinomial
real, boolean, one_hot, simplex = Real(), Boolean(), OneHot(), Simplex()
square, lower_cholesky, positive_definite = Square(), LowerCholesky(), PositiveDefinite()
corr_cholesky = CorrCholesky()
real_vector = Independent(real, 1)
positive, nonnegative, unit_interval = GreaterThan(0.0), GreaterThanEq(0.0), Interval(0.0, 1.0)
nonnegative_integer, positive_integer = IntegerGreaterThan(0), IntegerGreaterThan(1)

__getattr__ = module_getattr(__name__)
