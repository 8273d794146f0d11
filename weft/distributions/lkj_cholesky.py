"""Defines the LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import weft

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution, Shape
from .utils import broadcast_all


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices C. The density of C is proportional to det(C) ** (concentration - 1).

    Source: Lewandowski, Kurowicka and Joe 2009.

    >>> import weft as torch
    >>> torch.distributions.LKJCholesky(3).sample().shape
    torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expanded = {"concentration": 0, "_beta": 1, "dim": None}

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # For each row, the distribution of the squared norm of the elements before the diagonal.
        steps = weft.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = weft.cat([steps.new_zeros((1,)), steps])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw each row as a point in the unit ball, by a direction and a norm."""
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            normals = weft.randn(self._extended_shape(sample_shape), dtype=squares.dtype).tril(-1)
            directions = normals / normals.norm(dim=-1, keepdim=True)
            directions[..., 0, :] = 0.0
            below = squares.sqrt() * directions
            tiny = weft.finfo(below.dtype).tiny
            diagonal = (1 - below.pow(2).sum(-1)).clamp(min=tiny).sqrt()
            return below + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rows = weft.arange(2, self.dim + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        found = (powers * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + weft.mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n
        return found - normalizer
