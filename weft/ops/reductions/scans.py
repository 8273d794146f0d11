"""Scans along a dim (cumsum, cumprod, cummax, cummin, logcumsumexp); computes diff, cov and corrcoef."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...core.arguments import integer
from ...core.batched import beneath
from ...core.checking import check_tensor
from ...core.dtype import (
    FLOAT,
    LEGACY_NAMES,
    REDUCED_FLOATS,
    DType,
    bool_,
    complex32,
    complex64,
    complex128,
    float32,
    float64,
    int64,
)
from ...core.grad_mode import mode
from ...core.limits import largest
from ...core.names import named
from ...core.outputs import check_result_dtype, write_out
from ...core.public import add_inplace, inplace, public
from ...core.recording import check_recorded_write, needs_recording
from ...core.return_types import return_type
from ...core.tensor import Tensor, wrap_dim
from ...core.warn import user_level
from ...engine.expr import Expr, as_expr, isnan
from ...engine.monoid import index
from ...engine.scalar import exp, isinf, log, maximum, where
from ...families.monoid_op import Types
from ...families.reduce import check_recordable
from ...families.scan import Scan
from ..assembly.joining import cat
from ..creation.creation import zeros_like
from ..elementwise.float_bits import complex
from ..elementwise.pointwise import OPS
from ..order.sorting import check_comparable, dim_of, not_implemented
from .extrema import highest, larger, lowest

# ---- Sums and products ---------------------------------------------------------------------------------------------

# The dtype that a scan accumulates in. As in PyTorch, each element of the result is rounded from the accumulated value.
WIDER = dict.fromkeys(REDUCED_FLOATS, float32) | {
    float32: float64,
    complex32: complex64,
    complex64: complex128,
}


def _wider(dtype: DType, wanted: DType | None) -> Types:
    return Types(WIDER.get(dtype, dtype), (dtype,))


def _value(element: Any) -> tuple:
    return (element,)


def _from_the_end(scan: Callable, ct: Tensor, dim: int) -> Tensor:
    return scan(ct.flip(dim), dim).flip(dim) if ct.spec.shape else scan(ct, dim)


def _cumsum_rule(ct, out, a, dim):
    return _from_the_end(cumsum, ct, dim)


def _cumprod_rule(ct, out, a, dim):
    zeros = a == 0
    if a.spec.device.backend.has_memory and not bool(beneath(zeros).any()):
        return _from_the_end(cumsum, ct * out.conj(), dim) / a.conj()
    if not a.spec.shape:
        return ct
    return _products_without_each(ct, a, dim) if mode.enabled else _up_to_first_zero(ct, out, a, dim, zeros)


def _up_to_first_zero(ct: Tensor, out: Tensor, a: Tensor, dim: int, zeros: Tensor) -> Tensor:
    """Elements behind the first zero of a row get 0, because all products behind it are 0. The zero gets the product of the others."""
    count = zeros.cumsum(dim)
    first = zeros & (count == 1)
    others = cumprod(a.masked_fill(first, 1), dim)
    of_first = _from_the_end(cumsum, ct * others.conj(), dim)
    before = _from_the_end(cumsum, ct * out.conj(), dim) / a.conj()
    return of_first.where(first, before).masked_fill((count > 0) & ~first, 0)


def _products_without_each(ct: Tensor, a: Tensor, dim: int) -> Tensor:
    """Return the cotangent for derivatives of higher order: for each element, the products without that element."""
    n = a.shape[dim]
    products = []
    for k in range(n):
        before = a.narrow(dim, 0, k).prod(dim, keepdim=True)
        after = cat((before, a.narrow(dim, k + 1, n - k - 1)), dim).cumprod(dim)
        products.append((ct.narrow(dim, k, n - k) * after.conj()).sum(dim, keepdim=True))
    return cat(products, dim)


CUMSUM = Scan(
    "cumsum", _wider, lambda dtype: (0,), _value, lambda a, b: (a[0] + b[0],), derivative=_cumsum_rule
)
CUMPROD = Scan(
    "cumprod", _wider, lambda dtype: (1,), _value, lambda a, b: (a[0] * b[0],), derivative=_cumprod_rule
)


def _define_scan(name: str, op: Scan, what: str, example: str) -> Callable:
    @named(name, what=what, example=example)
    def scan(input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """The running {what} along `dim`: integers and bools as int64, unless `dtype` is given.

        float32 accumulates in float64, the narrower floats in float32; each result is rounded once.

        >>> import weft as torch
        >>> torch.{name}(torch.tensor([1, 2, 3, 4]), 0)
        tensor({example})
        """
        own = input.spec.dtype
        dim = wrap_dim(dim if type(dim) is int else integer(dim, name, "dim"), len(input.spec.shape))
        if dtype is None and out is None and own.category >= FLOAT:  # the usual case
            return op(input, dim)
        if dtype is None:
            dtype = out.spec.dtype if out is not None else int64 if own.category < 2 else own
        elif out is not None:
            check_result_dtype(out, dtype, name)
        if dtype is bool_ and input.spec.shape and input.spec.numel:
            raise not_implemented(f"{name}_out_cpu", dtype)
        if dtype.category < FLOAT and needs_recording((input,)):
            check_recordable(dtype)
        result = op(input.to(dtype), dim)
        return result if out is None else write_out(out, result, name)

    write = inplace(scan, name)

    @named(f"{name}_", of=name)
    def scan_(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Compute `{of}`, written into this tensor."""
        check_recorded_write(self)
        dim_of(self, dim, name)
        if dtype is not None and dtype is not self.spec.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {self.spec.dtype} and output tensor dtype {dtype} should match"
            )
        return write(self, dim, dtype=self.spec.dtype)

    add_inplace(name, scan_)
    return public("function method")(scan)


cumsum = _define_scan("cumsum", CUMSUM, "sum", "[ 1,  3,  6, 10]")
cumprod = _define_scan("cumprod", CUMPROD, "product", "[ 1,  2,  6, 24]")


def _reference(greatest: Expr) -> Expr:
    """The number that is subtracted from exponents: the largest element so far, or 0 if that is infinite."""
    return where(isinf(greatest), 0.0, greatest)


def _take_in(state: tuple, element: tuple) -> tuple:
    """A state is the largest element, and the sum of exp(element - largest). So only the final step computes a logarithm."""
    (left, a), (right, b) = state, element
    greatest = maximum(left, right)
    reference = _reference(greatest)
    return greatest, a * exp(left - reference) + b * exp(right - reference)


def _logcumsumexp_rule(ct, out, a, dim):
    """The sum over later results of ct * exp(a - out). It is computed by logarithms, separately for positive and negative ct."""

    if not a.spec.shape:
        return ct

    def pulled(logarithm: Tensor) -> Tensor:
        return (_from_the_end(logcumsumexp, logarithm - out, dim) + a).exp()

    if a.is_complex():
        return pulled(ct.conj().log()).conj()
    none = -largest(a.spec.dtype)  # stands for log(0), but is finite, because out is subtracted from it
    return pulled(ct.log().where(ct > 0, none)) - pulled((-ct).log().where(ct < 0, none))


LOGCUMSUMEXP = Scan(
    "logcumsumexp",
    _wider,
    lambda dtype: (-math.inf, 0),
    lambda x: (x, as_expr(1.0, x)),
    _take_in,
    lambda state: (_reference(state[0]) + log(state[1]),),
    derivative=_logcumsumexp_rule,
)
# The imaginary part of the result counts full turns, as in PyTorch, so elements are added one by one with `logaddexp`.
COMPLEX_LOGCUMSUMEXP = Scan(
    "logcumsumexp",
    _wider,
    lambda dtype: (-math.inf,),
    _value,
    lambda a, b: (OPS["logaddexp"].element(b[0], a[0]),),
    derivative=_logcumsumexp_rule,
)


@public("function method", out="exact")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Compute log(cumsum(exp(input))) along `dim`, without overflow. Floats and complex numbers only.

    >>> import weft as torch
    >>> torch.logcumsumexp(torch.tensor([1000.0, 1000.0]), 0)
    tensor([1000.0000, 1000.6932])
    """
    dim = dim_of(input, dim, "logcumsumexp")
    dtype = input.spec.dtype
    if dtype.category < 2:
        raise not_implemented("logcumsumexp_out_cpu", dtype)
    return (COMPLEX_LOGCUMSUMEXP if dtype.is_complex else LOGCUMSUMEXP)(input, dim)


# ---- Running extrema -----------------------------------------------------------------------------------------------


def _value_and_index(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (dtype, int64))


class _Latest:
    """The parts of a running extremum: (number, the position of the latest one that is as extreme, for floats that of the latest NaN).

    The state keeps the NaNs apart from the numbers, so that the order in which states are combined does not matter.
    """

    def __init__(self, identity: Callable, wins: Callable):
        self.least, self.wins = identity, wins

    def identity(self, dtype: DType) -> tuple:
        own = (self.least(dtype), (0, int64))
        return (*own, (-1, int64)) if dtype.is_floating_point else own

    def to_state(self, x: Expr) -> tuple:
        if not x.dtype.is_floating_point:
            return x, index()
        return where(isnan(x), self.least(x.dtype), x), index(), where(isnan(x), index(), -1)

    def combine(self, a: tuple, b: tuple) -> tuple:
        takes = self.wins(b[0], a[0])
        return (*(where(takes, new, old) for new, old in zip(b[:2], a[:2])), *map(larger, a[2:], b[2:]))

    @staticmethod
    def finish(state: tuple) -> tuple:
        if len(state) == 2:
            return state
        value, position, nan = state
        return where(nan < 0, value, math.nan), where(nan < 0, position, nan)


def _running_rule(ct, out, a, dim):
    """An element gets the cotangents of all results that were taken from it."""
    return zeros_like(ct[0]).scatter_add(dim, out[1], ct[0]) if ct[0].spec.shape else ct[0]


def _extremum(name: str, parts: _Latest) -> Scan:
    return Scan(
        name,
        _value_and_index,
        parts.identity,
        parts.to_state,
        parts.combine,
        parts.finish,
        exact=True,
        derivative=_running_rule,
    )


CUMMAX = _extremum("cummax", _Latest(lowest, lambda new, old: old <= new))
CUMMIN = _extremum("cummin", _Latest(highest, lambda new, old: new <= old))


def _define_running(op: Scan, what: str) -> None:
    name = op.name

    @public("function method", name=name, out=True, words={"what": what})
    def running(input: Tensor, dim: int) -> Any:
        """(values, indices): the {what} element so far along `dim`, and where it was last.

        >>> import weft as torch
        >>> torch.{name}(torch.tensor([2, 2, 2]), 0).indices
        tensor([0, 1, 2])
        """
        dim = dim_of(input, dim, name)
        check_comparable(input, f"{name}_cpu")
        return return_type(name, ("values", "indices"))(op(input, dim))


_define_running(CUMMAX, "greatest")
_define_running(CUMMIN, "least")


# ---- Differences and covariances -----------------------------------------------------------------------------------


def _check_joined(input: Tensor, other: Tensor | None, dim: int) -> None:
    if other is None:
        return
    spec, theirs = input.spec.shape, other.spec.shape
    if len(spec) != len(theirs):
        raise RuntimeError(
            f"diff expects prepend or append to be the same dimension as input\ninput: {list(spec)}, other: {list(theirs)}"
        )
    for k, (size, other_size) in enumerate(zip(spec, theirs, strict=True)):
        if k != dim and size != other_size:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({k}) = {size}, but got tensor.size({k}) = {other_size}"
            )


@public("function method", out=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along `dim`, `n` times. `prepend` and `append` are joined to the input first.

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
    expected, fits = (
        ("integral", dtype.is_integral) if name == "fweights" else ("floating point", dtype.is_floating_point)
    )
    if len(weights.spec.shape) > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{len(weights.spec.shape)} dimensions"
        )
    if not fits:
        raise RuntimeError(
            f"cov(): expected {name} to have {expected} dtype but got {name} with {LEGACY_NAMES[dtype]} dtype"
        )
    if weights.spec.numel != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.spec.numel} != {count}"
        )
    if count and weights.spec.device.backend.has_memory and bool(beneath(weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public("function method")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the covariances of variables.

    Shapes: input [variables, observations] or [observations], weights [observations] -> [variables, variables].
    fweights: how often each observation occurred. aweights: the weight of each observation.

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
    is_known = not isinstance(norm, Tensor) or norm.spec.device.backend.has_memory
    if is_known and norm <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=user_level(),
        )
        norm = 0 if weights is None else norm.clamp(min=0)
    centred = rows - average.unsqueeze(1)
    weighted = centred if weights is None else centred * weights
    product = centred.matmul(weighted.t().conj())
    return (product / norm).squeeze()


@public("function method")
def corrcoef(input: Tensor) -> Tensor:
    """Return Pearson's correlation coefficients of variables: their covariances divided by both standard deviations.

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
