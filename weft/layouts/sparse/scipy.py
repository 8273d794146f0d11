"""The bridge to SciPy's sparse matrices. Both directions share the memory of the values and of the indices.

A matrix of SciPy's comes in by the functions that make tensors, `torch.sparse_csr_tensor(a.indptr, a.indices, a.data, a.shape)`.
"""

from __future__ import annotations

import importlib
from typing import Any

from ...core.layout import sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ...core.tensor import Tensor
from ..parts import parts_of
from .compressed import FORMATS
from .coordinates import check_in_range
from .invariants import check_readable

_CLASSES = {
    sparse_coo: "coo_array",
    sparse_csr: "csr_array",
    sparse_csc: "csc_array",
    sparse_bsr: "bsr_array",
}


def to_scipy(x: Tensor) -> Any:
    """Return a sparse matrix as SciPy's array of the same format, in the same memory.

    Raises: TypeError for BSC, which SciPy does not have, and for a tensor that is not a sparse matrix or requires gradients; RuntimeError for
    indices out of range, because SciPy would read and write memory outside of its arrays.

    >>> import weft as torch
    >>> to_scipy(torch.eye(2).to_sparse_csr()).toarray()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if x.layout not in _CLASSES or len(x.shape) != 2 or x.dense_dim():
        raise TypeError(
            f"SciPy has no counterpart of a {x.layout} tensor with {x.dim()} dims: write x.to_sparse_csr() of a matrix"
        )
    if x.requires_grad:
        raise TypeError("a matrix of SciPy's takes no part in autograd: write x.detach()")
    if x.layout is sparse_coo:
        check_in_range(parts_of(x)[0], x.shape)
    else:
        outer, inner, entries = parts_of(x)
        check_readable(outer, inner, entries, x.shape, FORMATS[x.layout].by_rows, FORMATS[x.layout].blocks)
    *structure, values = (part.numpy() for part in parts_of(x))
    make = getattr(importlib.import_module("scipy.sparse"), _CLASSES[x.layout])
    if x.layout is sparse_coo:
        return make((values, tuple(structure[0])), shape=tuple(x.shape))
    return make((values, structure[1], structure[0]), shape=tuple(x.shape), copy=False)
