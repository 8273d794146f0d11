"""Tensors in CSR, CSC, BSR and BSC: `outer`, `inner` and `values`, see `compression.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.layout import Layout, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ...core.layout_spec import LayoutSpec, layout_spec
from ...core.spec import contiguous_stride
from ...core.tensor import Tensor, make
from ..parts import PartsStorage, bare, parts_of, values_of, with_values
from .compression import Compressed
from .narrowing import NarrowIndices
from .rules import SPARSE


class Format(NamedTuple):
    """What a compressed layout is."""

    by_rows: bool  # rows are compressed, else columns
    blocks: bool  # an entry is a block
    outer: str  # PyTorch's names of the indices
    inner: str


FORMATS: dict[Layout, Format] = {
    sparse_csr: Format(True, False, "crow_indices", "col_indices"),
    sparse_csc: Format(False, False, "ccol_indices", "row_indices"),
    sparse_bsr: Format(True, True, "crow_indices", "col_indices"),
    sparse_bsc: Format(False, True, "ccol_indices", "row_indices"),
}
# The layout of the transpose, whose parts are the same but for the transposed blocks.
TRANSPOSED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}
# As messages call the layouts.
TITLES = {sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr", sparse_bsc: "SparseBsc"}


class CompressedStorage(PartsStorage):
    """The pointers, the indices and the values; tensors with the same indices share what is known of their narrow copies."""

    __slots__ = ("narrow",)

    narrow: NarrowIndices

    def __init__(self, parts: tuple[Tensor, ...], spec: LayoutSpec, narrow: NarrowIndices | None = None):
        super().__init__(parts, spec)
        self.narrow = narrow or NarrowIndices()

    def with_parts(self, parts: tuple[Tensor, ...], spec: LayoutSpec) -> CompressedStorage:
        same = parts[0] is self.parts[0] and parts[1] is self.parts[1]
        return CompressedStorage(parts, spec, self.narrow if same else None)

    def take(self, other: Any) -> None:
        super().take(other)
        self.narrow = other.narrow


def compressed(parts: Compressed, shape: tuple[int, ...], layout: Layout) -> Tensor:
    """A tensor of these parts, without checks. The derivative goes to the values."""
    outer, inner, values = parts
    batch_dim = inner.dim() - 1
    dense_dim = values.dim() - batch_dim - (3 if FORMATS[layout].blocks else 1)
    spec = layout_spec(
        tuple(shape),
        contiguous_stride(shape),
        values.dtype,
        values.device,
        layout,
        SPARSE,
        (batch_dim, dense_dim),
    )
    template = make(CompressedStorage((outer, inner, bare(values)), spec), 0, spec)
    return with_values(template, values) if values._autograd is not None else template


def narrow_indices_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """The pointers and indices of a matrix, as int32 after some uses of this function."""
    outer, inner, _ = parts_of(x)
    rows, columns = matrix_sizes(x)
    storage: Any = x._storage
    return storage.narrow.of(outer, inner, columns if format_of(x).by_rows else rows)


def format_of(x: Tensor) -> Format:
    return FORMATS[x.layout]


def compressed_parts(x: Tensor) -> Compressed:
    """The parts; the values take part in autograd if the tensor does."""
    outer, inner, _ = parts_of(x)
    return Compressed(outer, inner, values_of(x))


def batch_dim_of(x: Tensor) -> int:
    spec: Any = x.spec
    return spec.detail[0]


def dense_dim_of(x: Tensor) -> int:
    spec: Any = x.spec
    return spec.detail[1]


def matrix_sizes(x: Tensor) -> tuple[int, int]:
    """Return rows and columns."""
    batch_dim = batch_dim_of(x)
    rows, columns = x.shape[batch_dim : batch_dim + 2]
    return rows, columns


def blocksize_of(x: Tensor) -> tuple[int, int] | None:
    """Return rows and columns of a block, None for layouts without blocks."""
    if not FORMATS[x.layout].blocks:
        return None
    first = batch_dim_of(x) + 1
    height, width = parts_of(x)[-1].shape[first : first + 2]
    return height, width
