"""Computes distances between many vectors, and their angles."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import LEGACY_NAMES, compute_type
from ...core.iteration import broadcast_shapes
from ...core.limits import largest
from ...core.promotion import common_dtype
from ...core.public import public
from ...core.recording import needs_recording, unrecorded
from ...core.tensor import Tensor
from ...engine.expr import Expr, isnan, select
from ...engine.scalar import sgn
from ...families.array_op import on_device
from ...families.custom_vjp import custom_vjp
from ...families.map import Map, same_dtype
from ...families.monoid_op import Types
from ...families.reduce import Reduce
from ..assembly.joining import cat
from ..creation.creation import zeros_like
from ..reductions.norms import norm_order, vector_norm
from ..tensor.node_names import with_node_name
from .lapack import check_tensor
from .matmul import matmul

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")

# Dimensions; PyTorch computes more than 25 vectors by a product of matrices. The product loses digits for vectors that are close
# to each other, and it is faster only from this many dimensions on (measured).
_MANY_VECTORS, _MANY_DIMENSIONS = 25, 16

# Dimensions that one kernel reads: 8 loads of each vector fit the registers.
_DIMENSIONS_AT_ONCE = 8


@public("function", autocast="raise")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Return the distance (p-norm of the difference) of every vector of `x1` and every vector of `x2`.

    Shapes: [..., n, d], [..., m, d] -> [..., n, m]; the leading dims broadcast. No temporary has n * m * d elements.

    >>> import weft as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    for position, (tensor, name) in enumerate(((x1, "X1"), (x2, "X2")), 1):
        check_tensor(tensor, "cdist", name.lower(), position)
        if tensor.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {tensor.dim()}D")
        if not tensor.is_floating_point():
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {LEGACY_NAMES[tensor.spec.dtype]}"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.spec.dtype is not x2.spec.dtype and x1.spec.numel and x2.spec.numel:
        first, second = LEGACY_NAMES[x1.spec.dtype], LEGACY_NAMES[x2.spec.dtype]
        raise RuntimeError(f"expected scalar type {first} but found {second}")
    many = max(x1.shape[-2], x2.shape[-2]) > _MANY_VECTORS and x1.shape[-1] > _MANY_DIMENSIONS
    if p == 2 and compute_mode != _MODES[2] and (many or compute_mode == _MODES[1]):
        return _euclidean_by_product(x1, x2)
    return _cdist(x1, x2, float(p))


# Elements; the derivative computes so many differences at a time, which bounds its memory.
_DIFFERENCES_AT_ONCE = 1 << 22


def _sum_of(slope: Callable) -> Reduce:
    """The sum of ratio * slope(a - b); no temporary has the differences."""
    return Reduce(
        "cdist_backward",
        lambda dtype, result: Types(dtype, (dtype,)),
        lambda compute: ((0, compute),),
        lambda b, a, ratio: (ratio * slope(a - b),),
        lambda a, b: (a[0] + b[0],),
        cascade=True,
    )


# By the order p: the reduction of the differences, and the divisor of the cotangents.
_SUMS = {1.0: (_sum_of(sgn), None), 2.0: (_sum_of(lambda difference: difference), "distance")}


def _cdist_rule(ct, out, x1, x2, p):
    if p not in _SUMS or needs_recording((ct, out, x1, x2)):
        return _recorded_cdist_rule(ct, out, x1, x2, p)
    total, divisor = _SUMS[p]
    if divisor:
        ct = (ct / out).masked_fill_(out == 0, 0)
    return _pulled(total, ct, x1, x2), _pulled(total, ct.mT, x2, x1)


def _pulled(total: Reduce, ct: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """Map [..., n, m], [..., n, d], [..., m, d] -> [..., n, d]; the sums run along memory."""
    sizes = (*ct.shape[:-1], own.shape[-1], ct.shape[-1])
    parts = (others.mT.contiguous().unsqueeze(-3), own.unsqueeze(-1), ct.contiguous().unsqueeze(-2))
    return total(*[part.expand(sizes) for part in parts], dims=(len(sizes) - 1,))


def _recorded_cdist_rule(ct, out, x1, x2, p):
    """Made of ops with derivatives; a few dimensions at a time, so that no temporary has all differences."""
    if p == 0:  # no product with the cotangent, which may be infinite
        return zeros_like(x1), zeros_like(x2)
    step = max(1, _DIFFERENCES_AT_ONCE // max(1, out.numel()))
    left, right = [], []
    for a, b in zip(x1.split(step, -1), x2.split(step, -1), strict=True):
        pulled = ct.unsqueeze(-1) * _slope(a.unsqueeze(-2) - b.unsqueeze(-3), out.unsqueeze(-1), p)
        left.append(pulled.sum(-2))
        right.append(-pulled.sum(-3))
    return cat(left, -1), cat(right, -1)


def _slope(difference: Tensor, distance: Tensor, p: float) -> Tensor:
    """The derivative of distances by differences; 0 where vectors are equal."""
    if p == math.inf:
        return difference.sgn() * (difference.abs() == distance)
    # Divisors and bases of steep powers are 1 instead of 0, because derivatives of the slope would be NaN at 0.
    equal = distance == 0
    distance = distance.masked_fill(equal, 1)
    if p == 2:
        return (difference / distance).masked_fill(equal, 0)
    size = difference.abs()
    if p < 2:
        size = size.masked_fill(difference == 0, 1)
    return (difference.sgn() * size ** (p - 1) / distance ** (p - 1)).masked_fill(equal, 0)


@custom_vjp(joint=_cdist_rule, inputs=2)
def _cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    """All distances between two sets of vectors, [..., n, d] and [..., m, d]."""
    dtype = x1.spec.dtype
    wide = compute_type(dtype)
    return _distances(x1.detach().to(wide), x2.detach().to(wide), p).to(dtype)


def _distances(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    """No temporary is larger than the result. Many vectors take one pass over the result for every few dimensions."""
    dimensions = x1.shape[-1]
    if dimensions == 0:
        batch = broadcast_shapes("cdist", x1.shape[:-2], x2.shape[:-2])
        return x1.new_zeros((*batch, x1.shape[-2], x2.shape[-2]))
    if dimensions >= max(x2.shape[-2], 2 * _DIMENSIONS_AT_ONCE):
        # Long vectors, and few of them: one launch, whose loop runs along the vectors. 30 vectors of 512 numbers take 30 us
        # instead of 1400, but 500 of 16 take 1800 us instead of 270 (AMD Zen 4).
        pairs = (
            *broadcast_shapes("cdist", x1.shape[:-2], x2.shape[:-2]),
            x1.shape[-2],
            x2.shape[-2],
            dimensions,
        )
        vectors = x1.unsqueeze(-2).expand(pairs), x2.unsqueeze(-3).expand(pairs)
        return _along_vectors(p)(*vectors, dims=(len(pairs) - 1,))
    # The vectors of x2 side by side, so that one instruction serves several columns of the result.
    across = [column.unsqueeze(-2) for column in x2.mT.contiguous().unbind(-2)]
    down = [column.unsqueeze(-1) for column in x1.unbind(-1)]
    result: Any = None
    for start in range(0, dimensions, _DIMENSIONS_AT_ONCE):
        chosen = slice(start, start + _DIMENSIONS_AT_ONCE)
        operands = [*down[chosen], *across[chosen]]
        is_last = start + _DIMENSIONS_AT_ONCE >= dimensions
        part = _part(p, len(operands) // 2, result is None, is_last)
        result = part(*operands) if result is None else part.write(result, result, *operands)
    return result


def _order(p: float) -> Any:
    """The norm of differences. That of order 0, which counts, is NaN where one of them is."""
    order = norm_order(p)
    if p:
        return order
    return order._replace(
        to_state=lambda difference: select(isnan(difference), difference, norm_order(0).to_state(difference))
    )


@functools.lru_cache(maxsize=64)
def _along_vectors(p: float) -> Reduce:
    """The distance of a and b, which lie along the reduced dim."""
    order = _order(p)
    return Reduce(
        "cdist",
        lambda dtype, result: Types(dtype, (dtype,)),
        lambda compute: ((order.start, compute),),
        lambda a, b: (order.to_state(a - b),),
        order.combine,
        lambda state: (order.finish(state[0]),),
        cascade=not math.isinf(p),
    )


@functools.lru_cache(maxsize=64)
def _part(p: float, dimensions: int, is_first: bool, is_last: bool) -> Map:
    """Return the contribution of some dimensions to the distances, added to that of those before."""
    order = _order(p)

    def element(*values: Expr) -> Expr:
        total: Any = None if is_first else values[0]
        vectors = values if is_first else values[1:]
        for a, b in zip(vectors[:dimensions], vectors[dimensions:], strict=True):
            part = order.to_state(a - b)
            total = part if total is None else order.combine((total,), (part,))[0]
        return order.finish(total) if is_last else total

    return Map("cdist", same_dtype, element)


def _euclidean_rule(ct, out, x1, x2):
    ratio = ct / out.masked_fill(out == 0, math.inf)
    return (
        x1 * ratio.sum(-1, keepdim=True) - matmul(ratio, x2),
        x2 * ratio.sum(-2).unsqueeze(-1) - matmul(ratio.mT, x1),
    )


@custom_vjp(joint=_euclidean_rule, node_name="CdistBackward0")
def _euclidean_by_product(x1: Tensor, x2: Tensor) -> Tensor:
    """Compute |a - b|^2 = |a|^2 - 2 a.b + |b|^2, all in one product."""
    squares = [(x * x).sum(-1, keepdim=True) for x in (x1, x2)]
    ones = [square.new_ones(square.shape) for square in squares]
    left = cat((x1 * -2, squares[0], ones[0]), -1)
    right = cat((x2, ones[1], squares[1]), -1)
    return matmul(left, right.mT).clamp_(min=0).sqrt_()


@public("function", "nn.functional.pdist")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Return the distance of every pair of rows, in the order (0, 1), (0, 2), ... : [n, d] -> [n * (n - 1) / 2]."""
    check_tensor(input, "pdist", "input")
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.shape[0]
    above = np.flatnonzero(np.arange(n)[:, None] < np.arange(n))
    distances = (
        _cdist(input, input, float(p)).reshape(n * n).index_select(0, on_device(above, input.spec.device))
    )
    return with_node_name(distances, "PdistBackward0")


@public("function", "nn.functional.pairwise_distance")
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dim; the other dims broadcast."""
    check_tensor(x1, "pairwise_distance", "x1")
    check_tensor(x2, "pairwise_distance", "x2", 2)
    difference = x1 - x2 + eps
    return vector_norm(difference, p, difference.dim() - 1, keepdim)


@public("function", "nn.functional.cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along `dim`: x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)).

    >>> import weft as torch
    >>> torch.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    check_tensor(x1, "cosine_similarity", "x1")
    check_tensor(x2, "cosine_similarity", "x2", 2)
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    dtype = common_dtype((x1.spec, x2.spec))
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {LEGACY_NAMES[dtype]}"
        )
    sizes = broadcast_shapes("cosine_similarity", x1.shape, x2.shape)
    # Divide each input by its norm in its own dtype, and integers in the common dtype.
    x1, x2 = ((x if x.is_floating_point() else x.to(dtype)).expand(sizes) for x in (x1, x2))
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    """x / max(|x|, eps); as in PyTorch the derivative of the length is that of |x|, even below eps."""
    length = vector_norm(x, 2, dim, keepdim=True).clone()
    with unrecorded():
        own, wide = largest(x.spec.dtype), largest(compute_type(x.spec.dtype))
        # A length of half precision may be infinite.
        length.clamp_min_(math.inf if own < eps <= wide else eps)
    return x / length
