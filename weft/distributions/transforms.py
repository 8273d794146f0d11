"""Defines invertible functions with the logarithms of their Jacobian determinants, for transformed distributions."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import weft
import weft.nn.functional

from ..core.constructors import constructor, name_constructor
from ..core.size import Size
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape
from .utils import _sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip


class Transform:
    """A function from `domain` to `codomain`; its inverse is `inv`.

    With cache_size=1 it stores its last argument and result, so that the inverse of this result is exactly the
    argument.
    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`.
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint
    _parameter_names: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_constructor(cls)

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None  # a weak reference to the inverse
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # a subclass may have further bases, such as nn.Module

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse. Repeated access returns the same object while it is alive."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """Return 1 for increasing functions, -1 for decreasing ones."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same function with another `cache_size`."""
        if self._cache_size == cache_size:
            return self
        if constructor(type(self)) is constructor(Transform):
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        known_x, known_y = self._cached_x_y
        if x is known_x:
            return known_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        known_x, known_y = self._cached_x_y
        if y is known_y:
            return known_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| for each event, where y is the function's value at x."""
        raise NotImplementedError

    def forward_shape(self, shape: Shape) -> Size:
        """Return the shape of the result for an argument of `shape`."""
        return Size(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        """Return the shape of the argument for a result of `shape`."""
        return Size(shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # A subclass may have further parameters, so only the same object is equal.
        own = type(self).__module__ == __name__ and type(self) is not Transform
        return (
            own
            and type(self) is type(other)
            and all(
                bool(weft.as_tensor(getattr(self, name) == getattr(other, name)).all())
                for name in self._parameter_names
            )
        )

    __hash__ = object.__hash__

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_cached_x_y": (None, None)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of `transform`. Both share one cache."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached_x_y": (None, None)}

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv: Transform = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Applies the transforms `parts`, the first one first.

    >>> import weft as torch
    >>> from weft.distributions.transforms import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(torch.zeros(2))
    tensor([3., 3.])
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        pairs = [(part.codomain, part.domain) for part in reversed(self.parts)]
        return self._widened(self.parts[0].domain, pairs) if pairs else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        pairs = [(part.domain, part.codomain) for part in self.parts]
        return self._widened(self.parts[-1].codomain, pairs) if pairs else constraints.real

    @staticmethod
    def _widened(end: constraints.Constraint, pairs: list) -> constraints.Constraint:
        """The constraint `end` with the number of event dims that the composition needs."""
        event_dim = pairs[0][0].event_dim
        for near, far in pairs:
            event_dim = max(event_dim + far.event_dim - near.event_dim, far.event_dim)
        extra = event_dim - end.event_dim
        return constraints.independent(end, extra) if extra > 0 else end

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)], self._cache_size)
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        return functools.reduce(lambda value, part: part(value), self.parts, x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return functools.reduce(lambda value, part: part._inv_call(value), reversed(self.parts), y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return weft.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        event_dim, terms = self.domain.event_dim, []
        for part, before, after in zip(self.parts, points, points[1:], strict=False):
            terms.append(
                _sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim)
            )
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Shape) -> Size:
        return functools.reduce(lambda found, part: part.forward_shape(found), self.parts, Size(shape))

    def inverse_shape(self, shape: Shape) -> Size:
        return functools.reduce(
            lambda found, part: part.inverse_shape(found), reversed(self.parts), Size(shape)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """`base_transform` on tensors whose last `reinterpreted_batch_ndims` batch dims belong to the event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshapes events from `in_shape` to `out_shape`."""

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Shape) -> Size:
        return _with_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Size:
        return _with_end(shape, self.out_shape, self.in_shape)


def _with_end(shape: Shape, end: Size, instead: Size) -> Size:
    if len(shape) < len(end):
        raise ValueError("Too few dimensions on input")
    start = len(shape) - len(end)
    if Size(shape[start:]) != end:
        raise ValueError(f"Shape mismatch: expected {Size(shape[start:])} but got {end}")
    return Size((*shape[:start], *instead))


class _Monotone(Transform):
    """Serves as the base class of increasing elementwise functions."""

    bijective = True
    domain = constraints.real
    sign = 1


class ExpTransform(_Monotone):
    """Computes y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SoftplusTransform(_Monotone):
    """Computes y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return weft.nn.functional.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -weft.nn.functional.softplus(-x)


class SigmoidTransform(_Monotone):
    """Computes y = 1 / (1 + exp(-x)), clamped away from 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside_unit_interval(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -weft.nn.functional.softplus(-x) - weft.nn.functional.softplus(x)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _inside_unit_interval(weft.sigmoid(x))


def _inside_unit_interval(y: Tensor) -> Tensor:
    limits = weft.finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1.0 - limits.eps)


class TanhTransform(_Monotone):
    """y = tanh(x). Results that round to 1 have an inverse only with cache_size=1."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) without the cancellation
        return 2.0 * (math.log(2.0) - x - weft.nn.functional.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|. The inverse returns the positive number."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """Computes y = x ** exponent, of positive numbers."""

    bijective = True
    domain = constraints.positive
    codomain = constraints.positive
    _parameter_names = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = weft.as_tensor(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Size:
        return weft.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """Computes y = loc + scale * x, where the last `event_dim` dims form an event.

    >>> import weft as torch
    >>> torch.distributions.transforms.AffineTransform(1.0, 2.0).inv(torch.tensor(5.0))
    tensor(2.)
    """

    bijective = True
    _parameter_names = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            of_each = self.scale.abs().log().expand(x.shape)
        else:
            of_each = weft.full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(of_each, self._event_dim)

    def forward_shape(self, shape: Shape) -> Size:
        shapes = (value.shape for value in (self.loc, self.scale) if isinstance(value, Tensor))
        return weft.broadcast_shapes(shape, *shapes)

    inverse_shape = forward_shape


class SoftmaxTransform(Transform):
    """The softmax of vectors of logits. The inverse takes logarithms."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """The stick-breaking transform from n real numbers to n + 1 probabilities. Each number sets a part of the remainder."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        broken = _clipped_sigmoid(x - _pieces_left(x).log())
        left = (1 - broken).cumprod(-1)
        pad = weft.nn.functional.pad
        return pad(broken, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        left = (1 - pieces.cumsum(-1)).clamp(min=weft.finfo(y.dtype).tiny)
        return pieces.log() - left.log() + _pieces_left(pieces).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _pieces_left(x).log()
        return (-x + weft.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> Size:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Shape) -> Size:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] - 1))


def _pieces_left(x: Tensor) -> Tensor:
    """n, n - 1, ... 1, so that a vector of zeros gives equal probabilities."""
    return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)


class LowerCholeskyTransform(Transform):
    """Maps square matrices to lower triangular matrices with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Maps square matrices to positive definite matrices."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(weft.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """From vectors of n (n - 1) / 2 numbers to Cholesky factors of n x n correlation matrices.

    tanh of each number is a partial correlation, the element's part of the remaining norm of its row.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = weft.finfo(x.dtype).eps
        parts = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), -1)
        left = (1 - parts.pow(2)).sqrt().cumprod(-1)
        diagonal = weft.eye(parts.shape[-1], dtype=x.dtype, device=x.device)
        return (parts + diagonal) * _shifted(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _shifted(1 - y.pow(2).cumsum(-1))
        parts = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()
        return (parts.log1p() - (-parts).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - y.pow(2).cumsum(-1), -2)
        of_tanh = -2 * (x + weft.nn.functional.softplus(-2 * x) - math.log(2)).sum(-1)
        return 0.5 * left.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Shape) -> Size:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Shape) -> Size:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def _shifted(left: Tensor) -> Tensor:
    """Return the remainder before each element, given the remainder after it."""
    return weft.nn.functional.pad(left[..., :-1], [1, 0], value=1)


class _PartsTransform(Transform):
    """Applies a separate transform to each part along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(each.bijective for each in self.transforms)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _pairs(self, value: Tensor) -> list[tuple[Transform, Tensor]]:
        parts = self._parts(value)
        if len(parts) != len(self.transforms):
            raise ValueError(
                f"got {len(parts)} parts along dim {self.dim} for {len(self.transforms)} transforms"
            )
        return list(zip(self.transforms, parts))


class CatTransform(_PartsTransform):
    """Applies transforms to parts along `dim` with the given `lengths` (default: 1 each), and concatenates the results.

    >>> import weft as torch
    >>> from weft.distributions.transforms import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([identity_transform, ExpTransform()], lengths=[2, 1])(torch.zeros(3))
    tensor([0., 0., 1.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"got {len(self.lengths)} lengths for {len(self.transforms)} transforms")

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        if value.size(self.dim) != self.length:
            raise ValueError(
                f"got size {value.size(self.dim)} along dim {self.dim}, but the parts have lengths {self.lengths}"
            )
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return weft.cat([each(part) for each, part in self._pairs(x)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return weft.cat([each._inv_call(part) for each, part in self._pairs(y)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for (each, before), after in zip(self._pairs(x), self._parts(y), strict=True):
            term = each.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - each.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return weft.cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_PartsTransform):
    """Applies transforms to the slices along `dim`, and stacks the results."""

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self if cache_size == self._cache_size else StackTransform(self.transforms, self.dim, cache_size)
        )

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return weft.stack([each(part) for each, part in self._pairs(x)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return weft.stack([each._inv_call(part) for each, part in self._pairs(y)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self._pairs(x), self._parts(y), strict=True)
        return weft.stack([each.log_abs_det_jacobian(part, after) for (each, part), after in pairs], self.dim)


class CumulativeDistributionTransform(Transform):
    """Computes y = distribution.cdf(x), which maps samples of the distribution to uniform numbers."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1
    _parameter_names = ("distribution",)

    def __init__(self, distribution: Distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


def as_transforms(transforms: Any) -> list[Transform]:
    """Return one transform, or a list of them, as a list.

    Raises: ValueError for anything else.
    """
    found = [transforms] if isinstance(transforms, Transform) else transforms
    if isinstance(found, Iterable) and all(isinstance(each, Transform) for each in found):
        return list(found)
    raise ValueError("transforms must be a Transform or a list of Transforms")
