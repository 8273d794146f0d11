"""softmax, its logarithm, and logsumexp: each is one graph of kernels, and so is its derivative."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...core import view_rules
from ...core.checking import check_tensor
from ...core.dtype import FLOAT, LEGACY_NAMES, DType, compute_type, get_default_dtype
from ...core.public import public
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...engine.scalar import exp, isinf, log, where
from ...families.custom_vjp import custom_vjp
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import COPY, Map, same_dtype, to_float
from ...families.map import Types as MapTypes
from ...families.monoid_op import Types
from ...families.reduce import Reduce, dims_of, single_dim
from ..tensor.rules import pass_through, with_reduced_dims
from .reduction import AMAX, SUM, finite_identity, plus


def _rounded_once(common: DType) -> MapTypes:
    return MapTypes(compute_type(common), common)


# fmt: off
SUM_EXP  = Reduce("sum_exp",  lambda d, w: Types(d, (compute_type(d),)), finite_identity(0), lambda a, m: (exp(a - m),), plus, cascade=True)
SUM_PRODUCTS = Reduce("sum_products", SUM_EXP.types, finite_identity(0), lambda a, b: (a * b,), plus, cascade=True,
                      derivative=(lambda ct, out, a, b, dims, keepdim: with_reduced_dims(ct, dims, keepdim) * b,
                                  lambda ct, out, a, b, dims, keepdim: with_reduced_dims(ct, dims, keepdim) * a))
# The sum of narrow floats without a rounding. PyTorch's backward of log_softmax rounds its result only.
WIDE_SUM = Reduce("wide_sum", SUM_EXP.types, finite_identity(0), lambda a: (a,), plus, cascade=True,
                  derivative=lambda ct, out, a, dims, keepdim: with_reduced_dims(ct, dims, keepdim).expand(a.spec.shape))
# The maps of the functions below. Each function is recorded as one step. `divided` computes 1 / s once for each row: with a division
# for each element softmax of 8192x512 takes 11 % longer (AMD Zen 4).
EXP_ABOVE   = Map("exp_above",   lambda d: MapTypes(compute_type(d), compute_type(d)), lambda a, m: exp(a - m), deciding=1, contiguous=True)
DIVIDED     = Map("divided",     same_dtype, lambda a, s: a * (1.0 / s))
LOG_SOFTMAX = Map("log_softmax", _rounded_once, lambda a, m, log_sum: (a - m) - log_sum, deciding=1, contiguous=True)
LOG         = Map("log",         to_float, log)
# The maps of their derivatives.
SOFTMAX_BACKWARD = Map("softmax_backward", _rounded_once, lambda ct, out, total: (ct - total) * out, deciding=1,
                       derivative=(lambda ct2, _, ct, out, total: ct2 * out,
                                   lambda ct2, _, ct, out, total: ct2 * (ct - total),
                                   lambda ct2, _, ct, out, total: -ct2 * out))
LOG_SOFTMAX_BACKWARD = Map("log_softmax_backward", _rounded_once, lambda ct, out, total: ct - exp(out) * total, deciding=1,
                           derivative=(pass_through,
                                       lambda ct2, _, ct, out, total: -ct2 * out.exp() * total,
                                       lambda ct2, _, ct, out, total: -ct2 * out.exp()))
# fmt: on


def _stable_maximum(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The maximum over `dims`, which keep size 1. It is 0 where it is infinite, so that the difference to it is not NaN."""
    maximum = AMAX(input, dims=dims, keepdim=True)
    return maximum.masked_fill(maximum.abs() == math.inf, 0)


def _as_float(input: Tensor, dtype: DType | None) -> Tensor:
    float_dtype = dtype or (input.spec.dtype if input.spec.dtype.category >= 2 else get_default_dtype())
    return input.to(float_dtype)


@public("function method", "special.logsumexp", out=True)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Compute log(sum(exp(input))) over `dim`, without overflow.

    Source: the maximum is subtracted first, Blanchard, Higham, Higham 2021, "Accurately computing the log-sum-exp".
    """
    check_tensor(input, "logsumexp")
    spec = input.spec
    dims = dims_of(dim, len(spec.shape), "logsumexp")
    if spec.dtype.is_complex or not spec.numel:
        return _logsumexp(input, dims, keepdim)
    return _LOGSUMEXP((_as_float(input, None),), (dims, bool(keepdim)))


def _logsumexp_rule(ct, out, input, dims, keepdim):
    return with_reduced_dims(ct, dims, keepdim) * (input - with_reduced_dims(out, dims, keepdim)).exp().conj()


_FINITE = Map("finite", to_float, lambda a: where(isinf(a), 0, a))
_LOG_ABOVE = Map("log_above", to_float, lambda total, center: log(total) + center)


def _build_logsumexp(graph: GraphBuilder, dims: tuple[int, ...], keepdim: bool) -> list[Value]:
    (x,) = graph.inputs
    (highest,) = graph.reduce(AMAX, x, dims=dims)
    center = graph.map(_FINITE, highest)  # so that the difference to it is not NaN
    (total,) = graph.reduce(SUM_EXP, x, center, dims=dims)
    result = graph.map(_LOG_ABOVE, total, graph.to(center, total.spec.dtype))
    result = graph.to(result, x.spec.dtype)
    return [result if keepdim else graph.view(view_rules.squeeze, result, dims)]


_LOGSUMEXP = KernelGraph("logsumexp", 1, _build_logsumexp, derivative=_logsumexp_rule)


@custom_vjp(_logsumexp_rule)
def _logsumexp(input: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Compute logsumexp of complex numbers, or of an input without elements."""
    if not input.spec.dtype.is_complex:
        return LOG(SUM(_as_float(input, None), dims=dims, keepdim=keepdim))
    center = _stable_maximum(input.real, dims).to(input.spec.dtype)
    total = SUM_EXP(input, center, dims=dims, keepdim=True)
    result = (LOG(total) + center.to(total.spec.dtype)).to(input.spec.dtype)
    return result if keepdim else result.squeeze(dims)


def _maximum_along(graph: Any, name: str, x: Any, dim: int) -> tuple[Any, tuple[int, ...]]:
    """Return the maximum along `dim`, and the dim as a tuple."""
    dims = single_dim(dim, len(x.spec.shape), name)
    if x.spec.dtype.category != FLOAT:
        raise NotImplementedError(
            f"\"{name}_lastdim_kernel_impl\" not implemented for '{LEGACY_NAMES[x.spec.dtype]}'"
        )
    return graph.reduce(AMAX, x, dims=dims)[0], dims


def _of_none(graph: Any, x: Any, dim: int) -> Any:
    """The result for an input without elements, which may have any dtype; None for other inputs."""
    if x.spec.numel:
        return None
    single_dim(dim, len(x.spec.shape), "softmax")
    return graph.map(COPY, x)


def build_softmax(graph: Any, x: Any, dim: int) -> Any:
    if (nothing := _of_none(graph, x, dim)) is not None:
        return nothing
    center, dims = _maximum_along(graph, "softmax", x, dim)
    powers = graph.map(EXP_ABOVE, x, center)
    (total,) = graph.reduce(SUM, powers, dims=dims)
    graph.write(DIVIDED, powers, powers, total)
    return graph.to(powers, x.spec.dtype)


def build_log_softmax(graph: Any, x: Any, dim: int) -> Any:
    if (nothing := _of_none(graph, x, dim)) is not None:
        return nothing
    center, dims = _maximum_along(graph, "log_softmax", x, dim)
    (total,) = graph.reduce(SUM_EXP, x, center, dims=dims)
    return graph.map(LOG_SOFTMAX, x, center, graph.map(LOG, total))


def _build_softmax_backward(graph: Any, dim: int) -> list:
    ct, out = graph.inputs
    (total,) = graph.reduce(SUM_PRODUCTS, ct, out, dims=single_dim(dim, len(out.spec.shape), "softmax"))
    return [graph.map(SOFTMAX_BACKWARD, ct, out, total)]


def _build_log_softmax_backward(graph: Any, dim: int) -> list:
    ct, out = graph.inputs
    (total,) = graph.reduce(WIDE_SUM, ct, dims=single_dim(dim, len(out.spec.shape), "log_softmax"))
    return [graph.map(LOG_SOFTMAX_BACKWARD, ct, out, total)]


def _softmax_graph(name: str, build: Callable, backward: KernelGraph) -> KernelGraph:
    """Return the graph with the arguments (input, dim)."""
    return KernelGraph(
        name,
        1,
        lambda graph, dim: [build(graph, *graph.inputs, dim)],
        derivative=lambda ct, out, input, dim: backward((ct, out), (dim,)),
    )


_SOFTMAX_BACKWARD = KernelGraph("softmax_backward", 2, _build_softmax_backward)
_LOG_SOFTMAX_BACKWARD = KernelGraph("log_softmax_backward", 2, _build_log_softmax_backward)
_SOFTMAX = _softmax_graph("softmax", build_softmax, _SOFTMAX_BACKWARD)
_LOG_SOFTMAX = _softmax_graph("log_softmax", build_log_softmax, _LOG_SOFTMAX_BACKWARD)


@public("function method", "special.softmax")
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Compute exp(input) scaled to sum 1 along `dim`.

    >>> import weft as torch
    >>> torch.softmax(torch.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _SOFTMAX((input if dtype is None else input.to(dtype),), (dim,))


@public("function method", "special.log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Compute log(softmax(input)) along `dim`, without overflow."""
    return _LOG_SOFTMAX((input if dtype is None else input.to(dtype),), (dim,))


# ---- The functions of nn.functional, where the dim may be left out ---


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """Return the dim of a softmax that was called without one: 0 for 0, 1 and 3 dimensions, otherwise 1."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=user_level(),
    )
    return 0 if ndim in (0, 1, 3) else 1


@public(name="nn.functional.softmax")
def _functional_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Compute exp(input) scaled to sum 1 along `dim`."""
    dim = _get_softmax_dim("softmax", input.spec.ndim, _stacklevel) if dim is None else dim
    return softmax(input, dim, dtype)


@public(name="nn.functional.softmin")
def _functional_softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Compute exp(-input) scaled to sum 1 along `dim`."""
    dim = _get_softmax_dim("softmin", input.spec.ndim, _stacklevel) if dim is None else dim
    return softmax(-input, dim, dtype)


@public(name="nn.functional.log_softmax")
def _functional_log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Compute log(softmax(input)) along `dim`, without overflow."""
    dim = _get_softmax_dim("log_softmax", input.spec.ndim, _stacklevel) if dim is None else dim
    return log_softmax(input, dim, dtype)
