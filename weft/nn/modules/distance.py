"""Layers that compute distances between vectors."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """Computes the p-norm of x1 - x2 + eps over the last dim. Shapes: [N, D], [N, D] -> [N], or [N, 1] with keepdim.

    >>> import weft as torch
    >>> torch.nn.PairwiseDistance(eps=0.0)(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Computes the cosine of the angle between x1 and x2 along `dim`.

    Shapes: those of x1 and x2 broadcast, without `dim`.

    >>> import weft as torch
    >>> torch.nn.CosineSimilarity(dim=0)(torch.tensor([1.0, 0.0]), torch.tensor([3.0, 4.0]))
    tensor(0.6000)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
