"""NearlyDiagonalSparsifier: keeps the numbers near the main diagonal."""

from __future__ import annotations

from typing import Any

from ....nn import Module
from ....ops.creation.creation import ones_like, zeros_like
from .base_sparsifier import BaseSparsifier


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Sets all but the `nearliness` diagonals nearest to the main one to 0. The number is odd."""

    def __init__(self, nearliness: int = 1):
        super().__init__({"nearliness": nearliness})

    def update_mask(self, module: Module, tensor_name: str, nearliness: int = 1, **kwargs: Any) -> None:
        """Write the mask of one matrix."""
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data = zeros_like(mask)
        if nearliness <= 0:
            return
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        reach = nearliness // 2
        if reach >= min(mask.shape):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.data = ones_like(mask).triu(-reach).tril(reach)
