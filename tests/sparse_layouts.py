"""The same elements in all sparse layouts, in weft and in PyTorch."""

import torch

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def dense(shape=(4, 6), dtype=torch.float64, seed=0):
    """A tensor a third of whose elements are not zero, as many in each matrix of a batch."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator, dtype=torch.float64) * 4
    kept = torch.arange(shape[-1] * shape[-2]).reshape(shape[-2:]) * 7 % 3 == 0
    return (values * kept).to(dtype)


def in_layout(dense, layout):
    """A dense tensor of either library in a layout; blocks are of size 2x2."""
    library = torch if isinstance(dense, torch.Tensor) else __import__("weft")
    blocksize = (2, 2) if layout in ("sparse_bsr", "sparse_bsc") else None
    return dense.to_sparse(layout=getattr(library, layout), blocksize=blocksize)


def parts(x):
    """All that tells a tensor of either library: layout, shape, dtype, whether it is coalesced, and its parts as lists."""
    x = x.detach()
    layout = str(x.layout).removeprefix("torch.")
    about = [layout, tuple(x.shape), str(x.dtype)]
    if layout == "strided":
        return [*about, x.tolist()]
    if layout == "sparse_coo":
        return [*about, x.is_coalesced(), x._indices().tolist(), x._values().tolist()]
    by_rows = layout in ("sparse_csr", "sparse_bsr")
    outer, inner = (x.crow_indices, x.col_indices) if by_rows else (x.ccol_indices, x.row_indices)
    return [*about, outer().tolist(), inner().tolist(), x.values().tolist()]
