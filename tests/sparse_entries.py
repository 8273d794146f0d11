"""Entries of sparse tensors for tests, and how they are compared."""

import torch
from oracle import TOLERANCE, name_of, to_torch


def entries(sizes, dense, nnz, dtype, seed=0):
    """Indices that occur several times, and values."""
    generator = torch.Generator().manual_seed(seed)
    columns = [torch.randint(min(size, 6) or 1, (nnz,), generator=generator) for size in sizes]
    spread = [column * (size // 6) if size > 6 else column for column, size in zip(columns, sizes)]
    indices = torch.stack(spread) if sizes else torch.zeros(0, nnz, dtype=torch.int64)
    values = (torch.randn(nnz, *dense, generator=generator) * 4).to(getattr(torch, dtype))
    return indices, values


def same(got, expected):
    """Equal dtypes, shapes and values, except that sums may differ in the last bit, because PyTorch sorts few keys in no stable order."""
    got = to_torch(got)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    tolerance = TOLERANCE[name_of(got.dtype)][0] if got.is_floating_point() or got.is_complex() else 0
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
