"""The functions of `torch.sparse`: what they do with dense tensors. Those of sparse tensors are rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import LEGACY_NAMES, int64
from ...core.layout import Layout, sparse_coo, sparse_csc, sparse_csr
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from .compressed import TITLES
from .conversion import as_compressed
from .coo import coo

addmm = FUNCTIONS["addmm"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Return the product of two dense matrices."""
    if reduce is not None:
        raise NotImplementedError(
            f"torch.sparse.mm with reduce={reduce!r} takes a CSR matrix: write x.to_sparse_csr()"
        )
    return FUNCTIONS["mm"](mat1, mat2)


def _refusing(name: str) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.sparse.{name} takes a sparse tensor, and this one is dense: write x.to_sparse() first"
        )

    return function


sum, softmax, log_softmax, sampled_addmm, spsolve = map(
    _refusing, ("sum", "softmax", "log_softmax", "sampled_addmm", "spsolve")
)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Layout | None = None) -> Tensor:
    """Return a sparse matrix of the given shape from its diagonals.

    diagonals [n, width]: element j of a diagonal stands in column j. offsets [n]: 0 is the main diagonal, 1 the one above.

    >>> import weft as torch
    >>> torch.sparse.spdiags(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1., 4.],
            [0., 2.]])
    """
    _check_diagonals(diagonals, offsets, shape, layout)
    diagonals, offsets = (
        each.unsqueeze(0) if each.dim() == own else each for each, own in ((diagonals, 1), (offsets, 0))
    )
    rows, columns = shape
    width = min(diagonals.shape[1], columns)
    column = FUNCTIONS["arange"](width, device=offsets.device).expand(len(offsets), width)
    row = column - offsets.unsqueeze(1)
    inside = (row >= 0) & (row < rows)
    indices = FUNCTIONS["stack"]([row[inside], column[inside]])
    result = coo(indices, diagonals[:, :width][inside], (rows, columns), indices.shape[1] < 2)
    return result if layout in (None, sparse_coo) else as_compressed(result, layout)  # type: ignore[arg-type]


def _check_diagonals(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Layout | None) -> None:
    if not isinstance(offsets, Tensor):
        raise TypeError(
            f"_spdiags(): argument 'offsets' (position 2) must be Tensor, not {type(offsets).__name__}"
        )
    if diagonals.dim() > 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dim() > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {LEGACY_NAMES[offsets.dtype]}")
    count = diagonals.shape[0] if diagonals.dim() == 2 else 1
    if offsets.numel() != count:
        raise RuntimeError(
            f"Number of diagonals ({count}) does not match the number of offsets ({offsets.numel()})"
        )
    if len(set(offsets.flatten().tolist())) != count:
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        title = TITLES.get(layout, layout)  # type: ignore[call-overload]
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {title}")
