"""The functions of `torch.masked`, which ignore masked-out elements. A mask is True where an element counts."""

from __future__ import annotations

import math
from typing import Any

from ...core.dtype import DType, bool_, float32, int64
from ...core.public import public
from ...core.tensor import Tensor, wrap_dim
from ...families.reduce import dims_of
from . import reduction, softmax
from .extrema import highest, lowest
from .norms import vector_norm


def full_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask as bools in the shape of the input."""
    if mask.spec.ndim > input.spec.ndim:
        raise IndexError(
            f"_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): {list(mask.shape)} "
            f"for {list(input.shape)}"
        )
    return mask.to(bool_).expand(input.spec.shape)


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """Return the input with `value` in place of masked-out elements."""
    if mask is None:
        return input
    if input.spec.dtype is bool_:
        value = bool(value)
    return input.masked_fill(~full_mask(input, mask), value)


def _dims(input: Tensor, dim: Any, name: str) -> tuple[int, ...]:
    return dims_of(dim, input.spec.ndim, name)


def _summed_type(input: Tensor, dtype: DType | None) -> DType:
    return dtype or (int64 if input.spec.dtype.category < 2 else input.spec.dtype)


@public(name="masked.sum")
def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the sum of the elements that count, over `dim` (an int, several, or all).

    >>> import weft as torch
    >>> torch.masked.sum(torch.tensor([1.0, 2.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(4.)
    """
    dims = _dims(input, dim, "sum")
    return reduction.sum(_filled(input, mask, 0), dims, bool(keepdim), dtype=_summed_type(input, dtype))


@public(name="masked.prod")
def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the product of the elements that count, over `dim` (an int, several, or all)."""
    result = _filled(input, mask, 1).to(_summed_type(input, dtype))
    dims = _dims(input, dim, "prod") if input.spec.shape or dim is None or dim == () else (0,)
    if dim == []:  # as in PyTorch, an empty list names no dims, although an empty tuple stands for all
        dims = ()
    for each in reversed(dims):
        result = result.prod(each, bool(keepdim))
    return result


@public(name="masked.cumsum")
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the running sum of the elements that count, along `dim`."""
    dtype = dtype or input.spec.dtype
    return _filled(input, mask, 0).cumsum(wrap_dim(dim, input.spec.ndim), dtype=dtype).to(dtype)


@public(name="masked.cumprod")
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the running product of the elements that count, along `dim`."""
    dtype = dtype or input.spec.dtype
    return _filled(input, mask, 1).cumprod(wrap_dim(dim, input.spec.ndim), dtype=dtype).to(dtype)


# ---- Extrema -----------------------------------------------------------------------------------------------------------------


def _define_extremum(name: str, identity: Any, what: str) -> None:
    find, is_position = getattr(Tensor, name), name.startswith("arg")

    @public(name=f"masked.{name}", words={"what": what})
    def extremum(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Compute {what}"""
        found = _filled(input, mask, identity(input.spec.dtype))
        dims = dim if is_position else _dims(input, dim, name)
        return find(found, dims, bool(keepdim)).to(dtype or input.spec.dtype)


for _name, _identity in (("max", lowest), ("min", highest)):
    _which = f"{_name}imum of the elements that count"
    _define_extremum(f"a{_name}", _identity, f"The {_which}, over `dim` (an int, several, or all).")
    _where = "along `dim` or in all elements as one row, in the input's dtype."
    _define_extremum(f"arg{_name}", _identity, f"The place of the {_which}, {_where}")


@public(name="masked.median")
def median(
    input: Tensor,
    dim: int | None = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median of the elements that count, along `dim`; NaN where there are none.

    Raises: ValueError where there are none and the input is of integers.
    """
    floats = input if input.spec.dtype.is_floating_point else input.to(float32)
    result = _filled(floats, mask, math.nan).nanmedian(wrap_dim(dim or 0, input.spec.ndim), keepdim).values
    if input.spec.dtype.is_floating_point:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype or input.spec.dtype)


# ---- Means and moments ---------------------------------------------------------------------------------------------------------


def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Any:
    """Return how many elements count."""
    dims = _dims(input, dim, "sum")
    if mask is not None:
        return full_mask(input, mask).sum(dims, keepdim)
    return math.prod(input.spec.shape[d] for d in dims)


@public(name="masked.mean")
def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that count, over `dim` (an int, several, or all); NaN where there are none."""
    result_dtype = dtype or input.spec.dtype
    if result_dtype.category < 2:
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: {result_dtype}"
        )
    return sum(input, dim, keepdim=keepdim, dtype=result_dtype, mask=mask) / _count(
        input, dim, bool(keepdim), mask
    )


def _variance(input: Tensor, dim, unbiased, correction, keepdim, dtype: DType | None, mask) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    dtype = dtype or (input.spec.dtype if input.spec.dtype.category >= 2 else float32)
    compute = dtype if dtype.category >= 2 else float32
    center = sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / _count(input, dim, True, mask)
    apart = input - center
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    count = _count(input, dim, bool(keepdim), mask)
    if correction:
        count = count - float(correction)
        count = (count.to(compute.to_real()).clamp_min(0)) if isinstance(count, Tensor) else max(count, 0.0)
    return (total / count).to(dtype)


@public(name="masked.var")
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance of the elements that count, divided by their number - correction (1 unless given)."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@public(name="masked.std")
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the root of `var`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


@public(name="masked.norm")
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the vector norm of the elements that count, over `dim` (an int, several, or all)."""
    filled = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return vector_norm(filled, ord, _dims(input, dim, "norm"), bool(keepdim), dtype=dtype or input.spec.dtype)


# ---- Exponentials ----------------------------------------------------------------------------------------------------------------


def _lowest_logarithm(dtype: DType) -> Any:
    return -math.inf if dtype.category >= 2 else lowest(dtype)


@public(name="masked.logsumexp")
def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute log(sum(exp(input))) of the elements that count, over `dim` (an int, several, or all)."""
    filled = _filled(input, mask, _lowest_logarithm(input.spec.dtype))
    return filled.logsumexp(_dims(input, dim, "logsumexp"), bool(keepdim)).to(dtype or input.spec.dtype)


@public(name="masked.logaddexp")
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), elementwise; masked-out elements add nothing."""
    a = _filled(input, input_mask, _lowest_logarithm(input.spec.dtype))
    b = _filled(other, other_mask, _lowest_logarithm(other.spec.dtype))
    return a.logaddexp(b).to(dtype or input.spec.dtype)


def _define_softmax(name: str, what: str, sign: int) -> None:
    unmasked = softmax.log_softmax if name == "log_softmax" else softmax.softmax

    @public(name=f"masked.{name}", words={"what": what})
    def function(
        input: Tensor, dim: int | None, *, dtype: DType | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Compute {what} along `dim`; masked-out elements count as infinitely far away."""
        identity = (lowest if sign > 0 else highest)(input.spec.dtype)
        values = _filled(input, mask, identity)
        return unmasked(
            values if sign > 0 else -values, wrap_dim(dim or 0, input.spec.ndim), dtype or input.spec.dtype
        )


_define_softmax("softmax", "exp(input) scaled to sum 1", 1)
_define_softmax("log_softmax", "The logarithm of `softmax`", 1)
_define_softmax("softmin", "The softmax of -input", -1)


@public(name="masked.normalize")
def normalize(
    input: Tensor,
    ord: float,
    dim: int | None,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Divide by the norm along `dim` of the elements that count, or by `eps` where that is larger."""
    lengths = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / lengths.clamp_min(eps)
