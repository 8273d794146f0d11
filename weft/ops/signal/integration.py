"""Computes integrals of sampled functions, by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from ...core.dtype import bool_
from ...core.public import public
from ...core.tensor import Tensor, wrap_dim
from ..linalg.lapack import check_tensor


def _neighbours(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return all samples along `dim` but the last, and all but the first."""
    if not values.dim():
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    n = values.size(dim)
    steps = max(n - 1, 0)
    return values.narrow(dim, 0, steps), values.narrow(dim, min(n, 1), steps)


def _check_numbers(name: str, y: Tensor, x: Tensor | None, dx: Any) -> None:
    if y.spec.dtype is bool_ or x is not None and x.spec.dtype is bool_:
        what = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {what}, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.\n{name}: dx is {dx!r}")


def _distances(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """The distances of neighbouring samples, in a shape that broadcasts with `y`."""
    ndim = y.dim()
    if x.dim() == 1:
        n = y.size(dim)
        if x.size(0) != n:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point\n{name}: {x.size(0)} values of x for {n} "
                f"samples along dim {dim}"
            )
        x = x.view([n if d == dim else 1 for d in range(ndim)])
    elif x.dim() < ndim:
        x = x.view((1,) * (ndim - x.dim()) + x.shape)
    left, right = _neighbours(x, dim)
    return right - left


def _double_areas(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """Twice the areas of the trapezoids between neighbouring samples."""
    distances = _distances(name, y, x, dim)
    left, right = _neighbours(y, dim)
    return (left + right) * distances


def _check_steps(name: str, x: Tensor | None, dx: Any) -> None:
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, dx={type(dx).__name__}), but "
            "expected x or dx"
        )


@public("function", "trapz")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral along `dim` of samples `y` at positions `x` (or a distance `dx` apart).

    >>> import weft as torch
    >>> torch.trapezoid(torch.tensor([0.0, 1.0, 2.0]), dx=0.5)
    tensor(1.)
    """
    _check_steps("trapezoid", x, dx)
    check_tensor(y, "trapezoid", "y")
    dim = dim if x is None else wrap_dim(dim, y.dim())
    if not y.size(dim):  # as in PyTorch, an empty dim gives zeros for all x and dx
        dim = wrap_dim(dim, y.dim())
        return y.new_zeros(y.shape[:dim] + y.shape[dim + 1 :])
    _check_numbers("trapezoid", y, x, dx)
    if x is not None:
        return _double_areas("trapezoid", y, x, dim).sum(dim) / 2.0
    # The order of PyTorch's sums, in which integers wrap around.
    ends = y.select(dim, 0) + y.select(dim, -1)
    return (y.sum(dim) - ends * 0.5) * (1.0 if dx is None else float(dx))


@public("function")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integrals along `dim` up to each sample but the first."""
    _check_steps("cumulative_trapezoid", x, dx)
    check_tensor(y, "cumulative_trapezoid", "y")
    _check_numbers("cumulative_trapezoid", y, x, dx)
    if x is not None:
        return _double_areas("cumulative_trapezoid", y, x, wrap_dim(dim, y.dim())).cumsum(dim) / 2.0
    left, right = _neighbours(y, dim)
    return ((left + right) * ((1.0 if dx is None else float(dx)) / 2.0)).cumsum(dim)
