"""Running results along a dim: cumsum, cumprod, cummax, cummin, logcumsumexp; differences and covariances."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtype import FLOAT8, LEGACY_NAMES, DType, bool_, complex32, complex64, float32, int64
from ..core.op import add_inplace, check_inplace, copy_values, public, write_out
from ..core.return_types import return_type
from ..core.tensor import Tensor
from ..families.library import array, library, tensor_of, wide_array
from .joining import cat
from .representation import complex
from .sorting import back, check_selectable, check_tensor, dim_of, not_implemented, picked, rows_of

# ---- Sums and products ---------------------------------------------------------------------------------------------

# What a running result is accumulated in; each element of the result is rounded from it, as PyTorch does.
WIDER = {float32: np.float64, complex64: np.complex128}


def _accumulated(input: Tensor, dim: int, accumulate: Callable) -> Tensor:
    values = wide_array(input)
    values = values.astype(WIDER.get(input.spec.dtype, values.dtype), copy=False)
    with np.errstate(all="ignore"):
        found = accumulate(values.reshape(1) if values.ndim == 0 else values, dim)
    return tensor_of(found.reshape(values.shape), input.spec.dtype)


@library
def _cumsum(input: Tensor, dim: int) -> Tensor:
    return _accumulated(input, dim, np.add.accumulate)


@library
def _cumprod(input: Tensor, dim: int) -> Tensor:
    return _accumulated(input, dim, np.multiply.accumulate)


def _define_scan(name: str, leaf: Callable, what: str, example: str) -> Callable:
    def scan(input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        dim = dim_of(input, dim, name)
        own = input.spec.dtype
        if dtype is None:
            dtype = out.spec.dtype if out is not None else int64 if own.category < 2 else own
        lacking = dtype is bool_ or dtype is complex32 or dtype in FLOAT8
        if lacking and input.spec.shape and input.spec.numel:
            raise not_implemented(f"{name}_out_cpu", dtype)
        result = leaf(input.to(dtype), dim)
        return result if out is None else write_out(out, result, name)

    def scan_(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        check_inplace(self, name)
        dim_of(self, dim, name)
        if dtype is not None and dtype is not self.spec.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {self.spec.dtype} and output tensor dtype {dtype} should match"
            )
        copy_values(self, scan(self, dim, dtype=self.spec.dtype))
        return self

    scan.__name__ = scan.__qualname__ = name
    scan.__doc__ = f"""The running {what} along `dim`: integers and bools as int64, unless `dtype` is given.

    float32 accumulates in float64, the narrower floats in float32; each result is rounded once.

    >>> import weft as torch
    >>> torch.{name}(torch.tensor([1, 2, 3, 4]), 0)
    tensor({example})
    """
    scan_.__name__ = scan_.__qualname__ = f"{name}_"
    scan_.__doc__ = f"`{name}`, written into this tensor."
    add_inplace(name, scan_)
    return public("function method")(scan)


cumsum = _define_scan("cumsum", _cumsum, "sum", "[ 1,  3,  6, 10]")
cumprod = _define_scan("cumprod", _cumprod, "product", "[ 1,  2,  6, 24]")


def _complex_logaddexp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(exp(a) + exp(b)) without overflow: the greater real part is taken out."""
    greater, lesser = np.where(a.real >= b.real, a, b), np.where(a.real >= b.real, b, a)
    return np.where(np.isfinite(greater.real), greater + np.log1p(np.exp(lesser - greater)), greater)


def _complex_logcumsumexp(values: np.ndarray, dim: int) -> np.ndarray:
    result = values.copy()
    rows = np.moveaxis(result, dim, 0)
    for i in range(1, len(rows)):
        rows[i] = _complex_logaddexp(rows[i - 1], rows[i])
    return result


@library
def _logcumsumexp(input: Tensor, dim: int) -> Tensor:
    return _accumulated(
        input, dim, _complex_logcumsumexp if input.spec.dtype.is_complex else np.logaddexp.accumulate
    )


@public("function method", out=True)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """log(cumsum(exp(input))) along `dim`, without overflow. Floats and complex numbers only.

    >>> import weft as torch
    >>> torch.logcumsumexp(torch.tensor([1000.0, 1000.0]), 0)
    tensor([1000.0000, 1000.6932])
    """
    dim = dim_of(input, dim, "logcumsumexp")
    dtype = input.spec.dtype
    if dtype.category < 2 or dtype is complex32 or dtype in FLOAT8:
        raise not_implemented("logcumsumexp_out_cpu", dtype)
    return _logcumsumexp(input, dim)


# ---- Running extrema -----------------------------------------------------------------------------------------------


@library
def _running(input: Tensor, dim: int, extremum: np.ufunc) -> tuple[Tensor, Tensor]:
    """The running extremum and its last position; NaN wins, the latest of several."""
    values = wide_array(input)
    ndim = values.ndim
    rows = rows_of(values, dim)
    wins = rows == extremum.accumulate(rows, axis=-1)
    if rows.dtype.kind == "f":
        wins |= np.isnan(rows)
    order = np.maximum.accumulate(np.where(wins, np.arange(rows.shape[-1]), 0), axis=-1)
    found = np.take_along_axis(rows_of(array(input), dim), order, -1)
    return tensor_of(back(found, dim, ndim)), tensor_of(back(order, dim, ndim))


def _define_running(name: str, extremum: np.ufunc, what: str) -> None:
    def running(input: Tensor, dim: int) -> Any:
        dim = dim_of(input, dim, name)
        if input.spec.dtype is not bool_:
            check_selectable(input, f"{name}_cpu")
        found = _running(input.detach(), dim, extremum)
        return return_type(name, ("values", "indices"))(picked(input, dim, found))

    running.__name__ = running.__qualname__ = name
    running.__doc__ = f"""(values, indices): the {what} element so far along `dim`, and where it was last.

    >>> import weft as torch
    >>> torch.{name}(torch.tensor([2, 2, 2]), 0).indices
    tensor([0, 1, 2])
    """
    public("function method", out=True)(running)


_define_running("cummax", np.maximum, "greatest")
_define_running("cummin", np.minimum, "least")


# ---- Differences and covariances -----------------------------------------------------------------------------------


def _check_joined(input: Tensor, other: Tensor | None, dim: int) -> None:
    if other is None:
        return
    own, theirs = input.spec.shape, other.spec.shape
    if len(own) != len(theirs):
        raise RuntimeError(
            f"diff expects prepend or append to be the same dimension as input\ninput: {list(own)}, other: {list(theirs)}"
        )
    for k, (size, other_size) in enumerate(zip(own, theirs, strict=True)):
        if k != dim and size != other_size:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({k}) = {size}, but got tensor.size({k}) = {other_size}"
            )


@public("function method", out=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; `prepend` and `append` are joined on first.

    >>> import weft as torch
    >>> torch.diff(torch.tensor([1, 4, 9, 16]))
    tensor([3, 5, 7])
    """
    check_tensor(input, "diff")
    if not input.spec.shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = dim_of(input, dim, "diff")
    _check_joined(input, prepend, dim)
    _check_joined(input, append, dim)
    parts = [part for part in (prepend, input, append) if part is not None]
    result = cat(parts, dim) if len(parts) > 1 and n else input
    for _ in range(min(n, result.spec.shape[dim])):
        size = result.spec.shape[dim]
        after, before = result.narrow(dim, 1, size - 1), result.narrow(dim, 0, size - 1)
        result = after.logical_xor(before) if result.spec.dtype is bool_ else after - before
    return result.clone() if result is input else result


def _check_weights(weights: Tensor | None, name: str, count: int) -> None:
    if weights is None:
        return
    dtype = weights.spec.dtype
    wanted, fits = (
        ("integral", dtype.is_integral) if name == "fweights" else ("floating point", dtype.is_floating_point)
    )
    if len(weights.spec.shape) > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{len(weights.spec.shape)} dimensions"
        )
    if not fits:
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with {LEGACY_NAMES[dtype]} dtype"
        )
    if weights.spec.numel != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.spec.numel} != {count}"
        )
    if count and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public("function method")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables.

    Shapes: input [variables, observations] or [observations], weights [observations] -> [variables, variables].
    fweights: how often each observation occurred; aweights: how much it counts.

    >>> import weft as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check_tensor(input, "cov")
    ndim = len(input.spec.shape)
    if ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {ndim} dimensions"
        )
    if input.spec.dtype is bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.reshape(1, -1) if ndim < 2 else input
    count = rows.spec.shape[1]
    _check_weights(fweights, "fweights", count)
    _check_weights(aweights, "aweights", count)
    weights = aweights if fweights is None else fweights if aweights is None else fweights * aweights
    if weights is None:
        total, norm = count, count - correction
        average = rows.sum(1) / count if count else rows.sum(1) * float("nan")
    else:
        total = weights.sum()
        average = (rows * weights).sum(1) / total
        lost = (weights * aweights).sum() / total if aweights is not None and correction else 1
        norm = total - correction * lost
    if norm <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=2,
        )
        norm = 0 if weights is None else norm * 0
    centred = rows - average.unsqueeze(1)
    weighted = centred if weights is None else centred * weights
    product = centred.matmul(weighted.t().conj())
    return (product / norm).squeeze()


@public("function method")
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation coefficients of variables: their covariances divided by both standard deviations.

    Shapes: [variables, observations] or [observations] -> [variables, variables].

    >>> import weft as torch
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check_tensor(input, "corrcoef")
    if len(input.spec.shape) > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {len(input.spec.shape)} "
            "dimensions"
        )
    covariance = cov(input)
    if not covariance.spec.shape:
        return covariance / covariance
    variance = covariance.diagonal()
    deviation = (variance.real if variance.spec.dtype.is_complex else variance).sqrt()
    scaled = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if scaled.spec.dtype.is_complex:
        return complex(scaled.real.clip(-1, 1), scaled.imag.clip(-1, 1))
    return scaled.clip(-1, 1)
