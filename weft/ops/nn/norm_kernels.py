"""The kernels that batch, layer and group norm share: they shift a tensor to mean 0 and scale it to variance 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType, compute_type
from ...core.recording import needs_recording
from ...core.symbols import as_float
from ...core.tensor import Tensor
from ...engine.scalar import eq, rsqrt, where
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import Map, same_dtype
from ...families.monoid_op import Types
from ...families.reduce import Reduce
from ..reductions.reduction import MEAN
from .window_views import wide


class Rows(NamedTuple):
    """How a tensor is looked at: as `sizes`, whose `dims` are standardized together."""

    sizes: tuple[int, ...]
    dims: tuple[int, ...]
    across: tuple[int, ...]  # the shape in which weight and bias broadcast to `sizes`
    statistics: tuple[int, ...]  # the shape in which mean and deviation are given

    @property
    def elements(self) -> int:
        """How many elements are standardized together."""
        return math.prod(self.sizes[dim] for dim in self.dims)

    @property
    def together(self) -> float:
        """Return `elements` as a number for kernels."""
        return as_float(self.elements)

    @property
    def kept(self) -> tuple[int, ...]:
        """The shape in which statistics broadcast to `sizes`."""
        return tuple(1 if dim in self.dims else size for dim, size in enumerate(self.sizes))

    @property
    def summed(self) -> tuple[int, ...]:
        """The dims along which weight and bias are repeated."""
        n, own = len(self.sizes), self.across
        return tuple(dim for dim in range(n) if dim - n < -len(own) or own[dim - n] == 1)


# ---- Forward ---------------------------------------------------------------------------------------------------------

AFFINE = Map(
    "normalize", same_dtype, lambda x, mean, inverse, weight, bias: (x - mean) * inverse * weight + bias
)


def _spread(inverse: Callable) -> Reduce:
    """Compute (inverse of the variance plus eps, variance) along dims, given the mean."""
    return Reduce(
        "norm_spread",
        lambda dtype, wanted: Types(dtype, (dtype, dtype)),
        lambda dtype: (0,),
        lambda x, mean: ((x - mean) * (x - mean),),
        lambda a, b: (a[0] + b[0],),
        lambda sums, count, eps: (inverse(sums[0] / count + eps), sums[0] / count),
        cascade=True,
    )


SPREAD = _spread(rsqrt)
# As in PyTorch, batch norm with eps=0 makes a channel of equal elements 0; the other norms make it NaN.
SPREAD_OR_ZERO = _spread(lambda x: where(eq(x, 0.0), 0.0, rsqrt(x)))


def standardized(
    graph: GraphBuilder,
    x: Value,
    weight: Any,
    bias: Any,
    rows: Rows,
    eps: Value,
    kept: DType,
    spread: Reduce = SPREAD,
) -> tuple[list[Value], Value]:
    """Return the result, the means and the inverse deviations, as dtype `kept`; the variances.

    If the statistics are rounded, the unrounded statistics follow, because backward needs them.
    """
    dtype = x.spec.dtype
    compute = compute_type(dtype)
    source, weight, bias = (graph.to(each, compute) for each in (x, weight, bias))
    source = graph.reshape(source, rows.sizes)
    weight, bias = (None if each is None else graph.reshape(each, rows.across) for each in (weight, bias))
    (mean,) = graph.reduce(MEAN, source, dims=rows.dims, numbers=(rows.together,))
    inverse, var = graph.reduce(spread, source, mean, dims=rows.dims, numbers=(rows.together, eps))
    result = graph.map(
        AFFINE, source, mean, inverse, 1.0 if weight is None else weight, 0.0 if bias is None else bias
    )
    result = graph.to(graph.reshape(result, x.spec.shape), dtype)
    statistics = [graph.reshape(each, rows.statistics) for each in (mean, inverse)]
    if kept is compute:
        return [result, *statistics], var
    return [result, *(graph.to(each, kept) for each in statistics), *statistics], var


# The positions of the results above that backward needs.
STATISTICS = (1, 2, 3, 4)


# ---- Backward --------------------------------------------------------------------------------------------------------

# One pass computes the sums of g = ct * weight and of g * z, where z is the normalised input.
_SUMS = Reduce(
    "norm_sums",
    lambda dtype, wanted: Types(dtype, (dtype, dtype)),
    lambda dtype: (0, 0),
    lambda ct, x, mean, inverse, weight=1: (ct * weight, ct * weight * ((x - mean) * inverse)),
    lambda a, b: (a[0] + b[0], a[1] + b[1]),
    cascade=True,
)
_INPUT_COTANGENT = Map(
    "norm_backward",
    same_dtype,
    lambda ct, x, mean, inverse, weight, sum_g, sum_gz, count: (
        (ct * weight - sum_g / count - (x - mean) * inverse * (sum_gz / count)) * inverse
    ),
)


def _build_backward(
    graph: GraphBuilder, parts: tuple, parameters: tuple[int, ...] | None, of_input: bool
) -> list:
    """The cotangent of x, if wanted; the cotangents of bias and weight, of shape `parameters`, if one is wanted.

    `parts` are those of the `Rows`, as a plain tuple, because a template reads sizes in plain tuples.
    """
    rows = Rows(*parts)
    sizes = graph.inputs[1].spec.shape
    ct, x = (graph.reshape(each, rows.sizes) for each in graph.inputs[:2])
    mean, inverse = (graph.reshape(each, rows.kept) for each in graph.inputs[2:4])
    weight = None if graph.inputs[4] is None else graph.reshape(graph.inputs[4], rows.across)
    results = []
    if of_input:
        weights = () if weight is None else (weight,)
        sums = graph.reduce(_SUMS, ct, x, mean, inverse, *weights, dims=rows.dims)
        found = graph.map(
            _INPUT_COTANGENT, ct, x, mean, inverse, 1.0 if weight is None else weight, *sums, rows.together
        )
        results.append(graph.reshape(found, sizes))
    if parameters is not None:
        sums = graph.reduce(_SUMS, ct, x, mean, inverse, dims=rows.summed)
        results += [graph.reshape(each, parameters) for each in sums]
    return results


_BACKWARD = KernelGraph("normalize_backward", 5, _build_backward)


def cotangents(cts, outs, x: Tensor, weight: Tensor | None, rows: Rows, specs, wanted):
    """Return the cotangents of x, weight and bias, from the cotangents of the results of `standardized`.

    `specs` and `wanted` have an entry for each of x, weight, bias. Source: Ioffe and Szegedy 2015, section 3.
    """
    ct, ct_mean, ct_inverse = cts[:3]
    mean, inverse = outs[-2:]
    if x.spec.dtype is not mean.spec.dtype:
        ct, ct_mean, ct_inverse, x, weight = wide(x.spec.dtype, ct, ct_mean, ct_inverse, x, weight)
    if ct is None:
        ct = x.new_zeros(()).expand(x.shape)
    parameters = None
    if wanted[1] or wanted[2]:
        parameters = (specs[1] or specs[2]).shape
    if ct_mean is not None or ct_inverse is not None or needs_recording((ct, x, weight, mean, inverse)):
        return _recorded_cotangents(ct, ct_mean, ct_inverse, x, mean, inverse, weight, rows, parameters)
    found = _BACKWARD((ct, x, mean, inverse, weight), (tuple(rows), parameters, wanted[0]))
    if parameters is None:
        return found, None, None
    *first, of_bias, of_weight = found
    return first[0] if first else None, of_weight, of_bias


def _recorded_cotangents(ct, ct_mean, ct_inverse, x, mean, inverse, weight, rows: Rows, parameters):
    """The same in steps that can be differentiated, with cotangents of the statistics."""
    sizes, dims = x.shape, rows.dims
    ct, x = ct.reshape(rows.sizes), x.reshape(rows.sizes)
    mean, inverse = mean.reshape(rows.kept), inverse.reshape(rows.kept)
    z = (x - mean) * inverse
    g = ct if weight is None else ct * weight.reshape(rows.across)
    found = (g - g.mean(dims, keepdim=True) - z * (g * z).mean(dims, keepdim=True)) * inverse
    if ct_mean is not None:
        found = found + ct_mean.reshape(rows.kept) / rows.together
    if ct_inverse is not None:
        found = found - ct_inverse.reshape(rows.kept) * inverse * inverse * z / rows.together
    if parameters is None:
        return found.reshape(sizes), None, None
    of_weight, of_bias = (each.sum(rows.summed).reshape(parameters) for each in (ct * z, ct))
    return found.reshape(sizes), of_weight, of_bias
