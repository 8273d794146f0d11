"""Integrals of sampled functions, by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from ..core.dtype import bool_
from ..core.op import public
from ..core.tensor import Tensor, wrap_dim
from ..families.lapack import check_tensor


def _areas(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """Twice the areas of the trapezoids between neighbouring samples."""
    check_tensor(y, name, "y")
    if y.spec.dtype is bool_:
        what = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {what}, but bool is not supported")
    dim = wrap_dim(dim, y.dim())
    n = y.shape[dim]
    if x is not None:
        _check_positions(name, y, x, dim)
    if n == 0:
        return y.narrow(dim, 0, 0) * 1.0
    sums = y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)
    if x is None:
        return sums * (1 if dx is None else dx)
    if x.dim() == 1:
        x = x.reshape([n if d == dim else 1 for d in range(y.dim())])
    elif x.dim() < y.dim():
        x = x.reshape((1,) * (y.dim() - x.dim()) + x.shape)
    size = x.shape[dim]
    steps = max(size - 1, 0)
    return sums * (x.narrow(dim, size - steps, steps) - x.narrow(dim, 0, steps))


def _check_positions(name: str, y: Tensor, x: Tensor, dim: int) -> None:
    if x.spec.dtype is bool_:
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if not x.dim():
        raise RuntimeError(
            f"{name}: `x` must have at least one dimension, there is one value for each sample point"
        )
    if x.dim() == 1 and x.shape[0] != y.shape[dim]:
        raise RuntimeError(
            f"{name}: There must be one `x` value for each sample point\n{name}: {x.shape[0]} values of x for {y.shape[dim]} "
            f"samples along dim {dim}"
        )


def _check_steps(name: str, x: Tensor | None, dx: Any) -> None:
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, dx={type(dx).__name__}), but "
            "expected x or dx"
        )


@public("function", "trapz")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along `dim` of samples `y` at positions `x` (or a distance `dx` apart).

    >>> import weft as torch
    >>> torch.trapezoid(torch.tensor([0.0, 1.0, 2.0]), dx=0.5)
    tensor(1.)
    """
    _check_steps("trapezoid", x, dx)
    return _areas("trapezoid", y, x, dx, dim).sum(wrap_dim(dim, y.dim())) / 2


@public("function")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals along `dim` up to each sample but the first."""
    _check_steps("cumulative_trapezoid", x, dx)
    return _areas("cumulative_trapezoid", y, x, dx, dim).cumsum(wrap_dim(dim, y.dim())) / 2
