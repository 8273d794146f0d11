"""Distances between many vectors, and their angles."""

from __future__ import annotations

import numpy as np

from ..core.dtype import LEGACY_NAMES
from ..core.iteration import broadcast_shapes
from ..core.op import public
from ..core.promotion import common_dtype
from ..core.tensor import Tensor
from ..families.lapack import check_tensor
from ..families.library import tensor_of
from .joining import cat
from .linalg import vecdot
from .matmul import matmul
from .norms import norm_row, vector_norm

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")

# The product of matrices is faster than summing squares from this many vectors and dimensions on (measured), but
# loses digits where vectors are close.
_MANY_VECTORS, _MANY_DIMENSIONS = 25, 32


@public("function")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The distance (p-norm of the difference) of every vector of `x1` and every vector of `x2`.

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
    compute_mode = compute_mode or _MODES[0]
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.spec.dtype is not x2.spec.dtype:
        first, second = LEGACY_NAMES[x1.spec.dtype], LEGACY_NAMES[x2.spec.dtype]
        raise RuntimeError(f"expected scalar type {first} but found {second}")
    batch = broadcast_shapes("cdist", x1.shape[:-2], x2.shape[:-2])
    many = max(x1.shape[-2], x2.shape[-2]) > _MANY_VECTORS and x1.shape[-1] > _MANY_DIMENSIONS
    if p == 2 and compute_mode != _MODES[2] and (many or compute_mode == _MODES[1]):
        return _euclidean_by_product(x1, x2)
    return _by_differences(x1, x2, p, tuple(batch))


def _by_differences(x1: Tensor, x2: Tensor, p: float, batch: tuple[int, ...]) -> Tensor:
    """A reduction over broadcast views; the many vectors lie side by side, so that one instruction serves several."""
    (n, d), m = x1.shape[-2:], x2.shape[-2]
    many = x2.mT.contiguous().unsqueeze(-2).expand((*batch, d, n, m))
    each = x1.mT.unsqueeze(-1).expand((*batch, d, n, m))
    return norm_row(float(p), difference=True)(many, each, dims=(len(batch),))


def _euclidean_by_product(x1: Tensor, x2: Tensor) -> Tensor:
    """|a - b|^2 = |a|^2 - 2 a.b + |b|^2, all in one product."""
    squares = [(x * x).sum(-1, keepdim=True) for x in (x1, x2)]
    ones = [square.new_ones(square.shape) for square in squares]
    left = cat((x1 * -2, squares[0], ones[0]), -1)
    right = cat((x2, ones[1], squares[1]), -1)
    return matmul(left, right.mT).clamp_(min=0).sqrt_()


@public("function", "nn.functional.pdist")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distance of every pair of rows, in the order (0, 1), (0, 2), ... (1, 2), ...: [n, d] -> [n * (n - 1) / 2]."""
    check_tensor(input, "pdist", "input")
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.shape[0]
    above = np.flatnonzero(np.triu(np.ones((n, n), bool), 1))
    return _by_differences(input, input, p, ()).reshape(n * n).index_select(0, tensor_of(above))


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
    """The cosine of the angle between vectors along `dim`: x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)).

    >>> import weft as torch
    >>> torch.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    check_tensor(x1, "cosine_similarity", "x1")
    check_tensor(x2, "cosine_similarity", "x2", 2)
    dtype = common_dtype((x1.spec, x2.spec))
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {LEGACY_NAMES[dtype]}"
        )
    sizes = broadcast_shapes("cosine_similarity", x1.shape, x2.shape)
    x1, x2 = (x.to(dtype).expand(sizes) for x in (x1, x2))
    lengths = [vector_norm(x, 2, dim).clamp(min=eps) for x in (x1, x2)]
    return vecdot(x1, x2, dim=dim) / (lengths[0] * lengths[1])
