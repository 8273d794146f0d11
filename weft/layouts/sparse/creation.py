"""Makes sparse tensors from indices and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.checking import sizes
from ...core.dtype import int64
from ...core.layout import Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from . import invariants
from .compressed import FORMATS, compressed
from .compression import Compressed
from .coo import coo
from .node_names import named

as_tensor, empty = FUNCTIONS["as_tensor"], FUNCTIONS["empty"]


@named
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor in COO: element `indices[:, k]` is `values[k]`; values at equal indices add up.

    indices: integers of shape (sparse dims, number of values). values: shape (number of values, *sizes of dense dims).
    sparse_coo_tensor(size) has no values.
    check_invariants: whether the indices are checked; None: as `torch.sparse.check_sparse_tensor_invariants` says.

    >>> import weft as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if indices is None or values is None:
        if size is None and values is None:  # sparse_coo_tensor(size)
            size = indices
        if size is None:
            raise TypeError("sparse_coo_tensor() needs indices and values, or size=")
        size = sizes(size, "sparse_coo_tensor", "size", 1)
        indices = empty((len(size), 0), dtype=int64, device=device)
        values = empty((0,), dtype=dtype, device=device)
    indices = as_tensor(indices, device=device).to(int64).contiguous()
    values = _values(values, dtype, device, requires_grad)
    if values.dim() == 0:  # one number for all elements
        values = values.expand(indices.shape[1]).contiguous()
    if size is None:
        size = _inferred(indices, values)
    size = tuple(size)
    invariants.check_coo_sizes(indices, values, size)
    if invariants.wanted(check_invariants):
        invariants.check_coo(indices, values, size, bool(is_coalesced))
    alone = indices.shape[1] < 2 if is_coalesced is None else is_coalesced
    return _leaf(coo(indices, values, size, alone), requires_grad)


def _values(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    values = as_tensor(values, dtype=dtype, device=device).contiguous()
    return values.detach() if requires_grad else values


def _leaf(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


def _inferred(indices: Tensor, values: Tensor) -> tuple[int, ...]:
    """The least size that has room for the indices."""
    if indices.numel() and int(indices.amin()) < 0:
        dim, place = (indices < 0).nonzero()[0].tolist()
        raise RuntimeError(f"found negative index {int(indices[dim, place])} for dim {dim}")
    sizes = (indices.amax(1) + 1).tolist() if indices.shape[1] else [0] * len(indices)
    return (*sizes, *values.shape[1:])


# ---- Compressed layouts ---------------------------------------------------------------------------------------------


@named
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a sparse tensor in CSR, CSC, BSR or BSC.

    compressed_indices: for each row (column) where its entries begin; then their number. Shape (*batch, rows + 1).
    plain_indices: the column (row) of each entry, of shape (*batch, entries). Both are int32 or int64.
    values: of shape (*batch, entries, *blocksize, *sizes of dense dims), with a blocksize for BSR and BSC only.

    >>> import weft as torch
    >>> torch.sparse_csr_tensor([0, 1, 3], [1, 0, 1], [2.0, 3.0, 4.0]).to_dense()
    tensor([[0., 2.],
            [3., 4.]])
    """
    if layout is None:
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got none: pass layout="
        )
    if layout not in FORMATS:
        raise RuntimeError(f"expected a sparse compressed layout, but got {layout}")
    form = FORMATS[layout]
    outer = _indices(compressed_indices, device)
    inner = _indices(plain_indices, device)
    values = _values(values, dtype, device, requires_grad)
    if size is None:
        size = _inferred_compressed(outer, inner, values, layout)
    size = tuple(size)
    if invariants.wanted(check_invariants):
        invariants.check_compressed(outer, inner, values, size, form.by_rows, form.blocks)
    return _leaf(compressed(Compressed(outer, inner, values), size, layout), requires_grad)


def _indices(values: Any, device: Any) -> Tensor:
    found = as_tensor(values, device=device).contiguous()
    return found if isinstance(values, Tensor) or found.numel() else found.to(int64)


def _inferred_compressed(outer: Tensor, inner: Tensor, values: Tensor, layout: Layout) -> tuple[int, ...]:
    form = FORMATS[layout]
    batch_dim = inner.dim() - 1
    height, width = values.shape[batch_dim + 1 : batch_dim + 3] if form.blocks else (1, 1)
    majors, minors = outer.shape[-1] - 1, int(inner.amax()) + 1 if inner.numel() else 0
    rows, columns = (majors, minors) if form.by_rows else (minors, majors)
    dense = values.shape[batch_dim + (3 if form.blocks else 1) :]
    return (*inner.shape[:-1], rows * height, columns * width, *dense)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """Make a `sparse_compressed_tensor` in CSR."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **_options(options, sparse_csr))


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """Make a `sparse_compressed_tensor` in CSC."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **_options(options, sparse_csc))


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """Make a `sparse_compressed_tensor` in BSR."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **_options(options, sparse_bsr))


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """Make a `sparse_compressed_tensor` in BSC."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **_options(options, sparse_bsc))


def _options(options: dict[str, Any], layout: Layout) -> dict[str, Any]:
    if options.setdefault("layout", layout) not in (layout, None):
        raise RuntimeError(f"expected layout {layout}, but got {options['layout']}")
    return {**options, "layout": layout}


# ---- Empty ones -----------------------------------------------------------------------------------------------------


def empty_sparse(
    size: Sequence[int],
    layout: Layout,
    dtype: Any = None,
    device: Any = None,
    dense_dim: int = 0,
    blocksize: tuple[int, int] | None = None,
) -> Tensor:
    """A tensor without elements; all `size` is sparse but the last `dense_dim` dims. blocksize: of BSR and BSC."""
    size = tuple(size)
    if layout is sparse_coo:
        indices = empty((len(size) - dense_dim, 0), dtype=int64, device=device)
        values = empty((0, *size[len(size) - dense_dim :]), dtype=dtype, device=device)
        return coo(indices, values, size, True)
    form = FORMATS[layout]
    if len(size) - dense_dim < 2:
        raise RuntimeError(
            "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size "
            f"{list(size)}: a matrix has two dims"
        )
    if form.blocks and blocksize is None:
        raise RuntimeError(
            f"torch.empty: expected sparse compressed (non-block) tensor layout but got {layout}: the blocksize is not known"
        )
    blocks = blocksize if form.blocks and blocksize is not None else ()
    batch = size[: len(size) - 2 - dense_dim]
    major = 0 if form.by_rows else 1
    count = size[len(batch) + major] // (blocks[major] if blocks else 1)
    outer = FUNCTIONS["zeros"]((*batch, count + 1), dtype=int64, device=device)
    inner = empty((*batch, 0), dtype=int64, device=device)
    values = empty((*batch, 0, *blocks, *size[len(size) - dense_dim :]), dtype=dtype, device=device)
    return compressed(Compressed(outer, inner, values), size, layout)
