"""Computes eigenvalues of sparse matrices, by SciPy's ARPACK: `torch.lobpcg`."""

from __future__ import annotations

from typing import Any

from ...core.layout import sparse_csr
from ...core.recording import needs_recording
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...engine.blas import scipy
from ...families.array_op import array, inside, tensor_of
from ...ops.creation.random import randn
from ..parts import is_plain, values_of
from .conversion import as_compressed, to_dense
from .rules import SPARSE
from .scipy import to_scipy

# Rows. Below, the dense matrix takes less time than Lanczos steps (k = 4, ms: 1.1 and 3.6 for 128 rows, 8.5 and 15 for
# 256, 61 and 15 for 512; AMD Zen 5, one thread).
_DENSE = 384


@SPARSE.rule("lobpcg")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    **steering: Any,
) -> tuple[Tensor, Tensor]:
    """Compute `torch.lobpcg` of a sparse matrix by Lanczos steps, to full precision.

    A small matrix, a batch and a matrix that requires gradients are made dense. A, B: real symmetric or Hermitian.
    """
    k = k if k is not None else 1 if X is None else X.shape[-1]
    operands = [each for each in (A, B) if each is not None]
    if A.dim() != 2 or A.shape[0] < max(_DENSE, 3 * k) or needs_recording(operands):
        dense = [each if each is None or is_plain(each) else to_dense(each) for each in (A, B)]
        return FUNCTIONS["lobpcg"](dense[0], k, dense[1], largest=largest)
    with inside("lobpcg", [values_of(A)]):
        matrix, other = (None if each is None else _operator(each) for each in (A, B))
        which = "LA" if largest is None or largest else "SA"
        start = array(randn(A.shape[0], dtype=A.dtype, device=A.device))
        values, vectors = scipy("sparse.linalg").eigsh(matrix, k, other, which=which, v0=start)
    order = values.argsort()[:: -1 if which == "LA" else 1]
    return tensor_of(values[order]), tensor_of(vectors[:, order])


def _operator(matrix: Tensor) -> Any:
    """What SciPy multiplies with."""
    return array(matrix) if is_plain(matrix) else to_scipy(as_compressed(matrix, sparse_csr))
