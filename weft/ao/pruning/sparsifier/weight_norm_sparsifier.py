"""WeightNormSparsifier: sets the blocks of a matrix with the least norms to 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....core.tensor import Tensor
from ....nn import Module
from ....nn.functional import avg_pool2d
from ....ops.creation.creation import full, ones, ones_like, zeros_like
from .base_sparsifier import BaseSparsifier


class WeightNormSparsifier(BaseSparsifier):
    """Sets a share of the blocks of a matrix to 0, those with the least norms, or the least numbers in these blocks.

    sparsity_level: the share of blocks. sparse_block_shape: the rows and columns of a block. zeros_per_block: how many numbers
    of a block become 0, all by default. norm: 1 or 2 for the sum of absolute values or squares, or a function of the elements.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    >>> sparsifier = WeightNormSparsifier(sparsity_level=0.75)
    >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    >>> sparsifier.step()
    >>> sparsifier.squash_mask()
    >>> int((model[0].weight == 0).sum())
    24
    """

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[Tensor], Tensor] | int | None = None,
    ):
        if norm in (None, 2):
            self.norm_fn: Callable[[Tensor], Tensor] = _square
        elif norm == 1:
            self.norm_fn = abs
        elif callable(norm):
            self.norm_fn = norm
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        zeros = math.prod(sparse_block_shape) if zeros_per_block is None else zeros_per_block
        super().__init__(
            {
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros,
            }
        )

    def update_mask(
        self, module: Module, tensor_name: str, sparsity_level: float = 0.5, sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int = 4, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Write the mask of one matrix. It is bool if some numbers of a block stay, else of the mask's dtype."""
        size = math.prod(sparse_block_shape)
        if not 0 <= zeros_per_block <= size:
            raise ValueError(
                f"zeros_per_block must be between 0 and {size}, the size of a block, got {zeros_per_block}"
            )
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = ones_like(mask)
        elif sparsity_level >= 1 and zeros_per_block == size:
            mask.data = zeros_like(mask)
        else:
            norms = self.norm_fn(getattr(module, tensor_name))
            found = _kept_blocks(norms, sparsity_level, sparse_block_shape)
            if zeros_per_block != size:
                found = found.bool() | _kept_numbers(norms, sparse_block_shape, zeros_per_block).bool()
            mask.data = found


def _square(values: Tensor) -> Tensor:
    return values * values


def _in_blocks(sizes: tuple[int, ...], block: tuple[int, int]) -> tuple[int, int]:
    """The rows and columns of blocks, of which the last ones may lie partly outside of the matrix."""
    rows, columns = sizes
    return -(-rows // block[0]), -(-columns // block[1])


def _kept_blocks(norms: Tensor, level: float, block: tuple[int, int]) -> Tensor:
    """The mask [rows, columns] with zeros in the blocks with the least norms."""
    if level >= 1:
        return zeros_like(norms)
    rows, columns = _in_blocks(tuple(norms.shape), block)
    means = avg_pool2d(norms[None, None], block, block, ceil_mode=True) if math.prod(block) > 1 else norms
    count = rows * columns
    least = means.flatten().topk(max(0, min(count - 1, round(level * count))), largest=False).indices
    kept = ones(count, device=norms.device).scatter(0, least, 0.0).reshape(rows, columns)
    whole = kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return whole[: norms.shape[0], : norms.shape[1]].contiguous()


def _kept_numbers(norms: Tensor, block: tuple[int, int], zeros: int) -> Tensor:
    """The mask [rows, columns] with `zeros` zeros in each block, where the norms are least."""
    rows, columns = _in_blocks(tuple(norms.shape), block)
    # NaN, behind the last row and column, is never among the least.
    padded = full((rows * block[0], columns * block[1]), math.nan, dtype=norms.dtype, device=norms.device)
    padded[: norms.shape[0], : norms.shape[1]] = norms
    by_block = padded.reshape(rows, block[0], columns, block[1]).permute(0, 2, 1, 3)
    least = by_block.reshape(rows, columns, -1).topk(zeros, largest=False).indices
    kept = ones(rows, columns, math.prod(block), device=norms.device).scatter(2, least, 0.0)
    whole = kept.reshape(rows, columns, *block).permute(0, 2, 1, 3).reshape(padded.shape)
    return whole[: norms.shape[0], : norms.shape[1]]
