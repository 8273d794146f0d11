"""Computes quantiles: the values at a fraction of the sorted elements, interpolated between neighbours."""

from __future__ import annotations

from typing import Any

from ...core.arguments import number
from ...core.batched import beneath
from ...core.checking import check_tensor
from ...core.dtype import float32, float64, int64
from ...core.public import public
from ...core.tensor import Tensor
from ..creation.from_data import tensor
from ..order.sorting import dim_of, sort
from ..views.views import owned

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _define(name: str, ignore_nan: bool) -> None:
    of_nan = "NaN is left out" if ignore_nan else "NaN where there is one"

    @public("function method", name=name, out=True, autocast="raise", words={"of_nan": of_nan})
    def function(
        input: Tensor,
        q: float | Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        """Return the `q`-th quantiles of all elements or along `dim`, 0 <= q <= 1; {of_nan}.

        Shapes: q [] gives the shape without `dim`; q [n] puts n in front of it.
        interpolation: "linear", "lower", "higher", "midpoint" or "nearest", between the two that q lies between.

        >>> import weft as torch
        >>> torch.{name}(torch.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
        tensor(2.5000)
        """
        check_tensor(input, name)
        return _quantile(input, _check(input, q, interpolation), dim, keepdim, interpolation, ignore_nan)


def _check(input: Tensor, q: Any, interpolation: str) -> Tensor:
    """Return `q` as a tensor of the dtype of the input."""
    if not isinstance(q, Tensor):
        if not 0 <= number(q, "quantile", "q", 2) <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        q = tensor(q, dtype=input.spec.dtype, device=input.spec.device)
    if input.spec.numel == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if len(q.spec.shape) > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.spec.dtype not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.spec.dtype is not input.spec.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if q.spec.device is not input.spec.device:
        raise RuntimeError("quantile() q tensor must be on the same device as the input tensor")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if q.spec.device.backend.has_memory and not bool(beneath((q >= 0) & (q <= 1)).all()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _quantile(
    input: Tensor, q: Tensor, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Tensor:
    ndim = len(input.spec.shape)
    if dim is not None:
        dim = dim_of(input, dim, "quantile")
    rows = input.reshape(-1) if dim is None or not ndim else input.movedim(dim, -1)
    ordered = sort(rows)[0]
    ranks = _ranks(ordered, q, ignore_nan)
    result = _interpolated(ordered, ranks, interpolation)
    result = result.movedim(-1, 0) if q.spec.shape else result.squeeze(-1)
    if not keepdim or not ndim:
        return owned(result)
    if dim is None:
        return owned(result.reshape(*q.spec.shape, *(1,) * ndim))
    return owned(result.unsqueeze(dim + len(q.spec.shape)))


def _ranks(ordered: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Where each quantile lies in each row, as a fraction of positions."""
    missing, last = ordered.isnan(), ordered.spec.shape[-1] - 1
    if ignore_nan:
        ranks = q * (missing.logical_not().sum(-1, keepdim=True) - 1)
        return ranks.masked_fill(ranks < 0, 0)
    ranks = (q * last).expand(*ordered.spec.shape[:-1], q.spec.numel)
    return ranks.masked_fill(missing.any(-1, keepdim=True), last)


def _interpolated(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    position = ranks.to(int64)
    below = ordered.gather(-1, position)
    if interpolation not in ("linear", "midpoint"):
        return below
    above = ordered.gather(-1, ranks.ceil().to(int64))
    return below.lerp(above, ranks - position if interpolation == "linear" else 0.5)


_define("quantile", ignore_nan=False)
_define("nanquantile", ignore_nan=True)
