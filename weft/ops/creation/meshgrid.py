"""Grids and combinations: the coordinates of grids, and ways to pick elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.arguments import text
from ...core.dtype import int64
from ...core.public import public
from ...core.tensor import Tensor
from ...core.warn import warn_once
from ...families.array_op import on_device
from ...families.rearrange import check_tensors
from ..assembly.joining import stack
from ..views.reshaping import reshape
from ..views.views import EXPAND, VIEW, unsafe_view
from .creation import check_room, new


@public("function", asks=True)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each tensor of one dimension repeated along those of the others.

    indexing: "ij" gives results of shape (len of first, len of second, ...); "xy" exchanges the first two.

    >>> import weft as torch
    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
        )
    check_tensors(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    _check_grid(tensors)
    if indexing is not None and text(indexing, "meshgrid", "indexing") not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    exchanged = indexing == "xy" and len(tensors) >= 2
    if exchanged:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    sizes = [tensor.spec.numel for tensor in tensors]
    grids = []
    for position, tensor in enumerate(tensors):
        own = [1] * len(sizes)
        own[position] = sizes[position]
        grids.append(EXPAND(VIEW(tensor, tuple(own)), tuple(sizes)))
    if exchanged:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _check_grid(tensors: tuple[Tensor, ...]) -> None:
    first = tensors[0].spec
    for tensor in tensors:
        if tensor.spec.dtype is not first.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor.spec.device is not first.device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
        if tensor.spec.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(tensor.shape)}"
            )


def _check_vector(input: Tensor) -> None:
    if input.spec.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.spec.shape)}")


@public("function")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples with one element of each tensor, as rows; one tensor is returned as it is.

    >>> import weft as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    check_tensors(tensors)
    for tensor in tensors:
        _check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return stack([reshape(grid, (-1,)) for grid in grids], 1)


@public("function")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to pick `r` elements in order, as rows.

    >>> import weft as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return new((0,), input.spec.dtype, input.spec.device)
    n = input.spec.numel
    ways = math.comb(n + r - 1, r) if with_replacement and n else math.comb(n, r)
    check_room(max(ways, 1), r, dtype=int64)
    rows = _picks(n, r, with_replacement) if ways else np.empty(0, np.int64)
    picked = on_device(rows.ravel(), input.spec.device)
    return unsafe_view(input.index_select(0, picked), (ways, r))


def _picks(n: int, r: int, with_replacement: bool) -> np.ndarray:
    """All ways to pick r of n positions in order, int64 [ways, r]."""
    rows = np.arange(n)[:, None]
    for _ in range(r - 1):
        first = rows[:, -1] + (not with_replacement)  # the least that may follow each row
        counts = n - first
        ends = np.cumsum(counts)
        following = np.arange(counts.sum()) - np.repeat(ends - counts - first, counts)
        rows = np.column_stack([np.repeat(rows, counts, axis=0), following])
    return rows
