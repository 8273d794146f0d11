"""What a nested tensor holds, and its components.

A strided one holds a buffer, in which each component is a Piece: sizes, strides and an offset.
A jagged one holds values, whose one ragged dim concatenates those of the components, and offsets:

    components of sizes (2, 3) and (3, 3)     values of size (5, 3), offsets [0, 2, 5], shape (2, j1, 3)

Dim d of a nested tensor is dim d - 1 of its components, and of the values of a jagged one. Lengths may say that a component of a
jagged tensor ends before the next one begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import int64
from ...core.layout import jagged as JAGGED
from ...core.layout import strided as STRIDED
from ...core.layout_spec import LayoutSpec, layout_spec
from ...core.registry import FUNCTIONS
from ...core.size import shape
from ...core.spec import contiguous_stride
from ...core.tensor import Tensor, make
from ..parts import PartsStorage, bare, parts_of, values_of, with_values
from .ragged_size import RaggedSize, size_of_offsets, size_of_sizes
from .rules import NESTED

cat, tensor, zeros = FUNCTIONS["cat"], FUNCTIONS["tensor"], FUNCTIONS["zeros"]


class Piece(NamedTuple):
    """Where a component lies in the buffer of a strided nested tensor, in elements."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Span(NamedTuple):
    """Where a component lies in the ragged dim of the values of a jagged tensor."""

    start: int
    length: int


class NestedStorage(PartsStorage):
    """The parts, and as Python numbers where each component lies; None until that is read from the offsets."""

    __slots__ = ("places",)

    places: Any  # a tuple of Piece for strided, of Span for jagged tensors

    def __init__(self, parts: tuple[Tensor, ...], spec: LayoutSpec, places: Any = None):
        super().__init__(parts, spec)
        self.places = places

    def with_parts(self, parts: tuple[Tensor, ...], spec: LayoutSpec) -> NestedStorage:
        return NestedStorage(parts, spec, self.places)


def is_nested(x: Any) -> bool:
    if not isinstance(x, Tensor):
        return False
    spec: Any = x.spec
    return type(spec) is LayoutSpec and spec.rules is NESTED


def is_jagged(x: Tensor) -> bool:
    return x.layout is JAGGED


def dim_of(dim: int, ndim: int, function: str) -> int:
    """Return a dim counted from the front.

    Raises: IndexError if there is no such dim.
    """
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"{function}: Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
        )
    return dim % ndim


def _with_autograd(template: Tensor, values: Tensor) -> Tensor:
    return with_values(template, values) if values._autograd is not None else template


# ---- Jagged ---------------------------------------------------------------------------------------------------------


def jagged(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None = None,
    ragged_dim: int = 1,
    *,
    size: RaggedSize | None = None,
    spans: tuple[Span, ...] | None = None,
) -> Tensor:
    """A jagged tensor of these parts, without checks. The derivative goes to the values. size: its ragged size, if it has one already."""
    dim = ragged_dim - 1
    ragged = size or size_of_offsets(offsets if lengths is None else lengths)
    known: Any = (offsets.shape[0] - 1, *values.shape[:dim], ragged, *values.shape[dim + 1 :])
    sizes = shape(known)
    count = values.numel()
    if lengths is not None:
        count = int(lengths.sum()) * math.prod((*values.shape[:dim], *values.shape[dim + 1 :]))
    detail = count, ragged_dim, lengths is not None
    spec = layout_spec(sizes, (0,) * len(sizes), values.dtype, values.device, JAGGED, NESTED, detail)
    structure = (offsets,) if lengths is None else (offsets, lengths)
    return _with_autograd(make(NestedStorage((*structure, bare(values)), spec, spans), 0, spec), values)


def ragged_dim_of(x: Tensor) -> int:
    spec: Any = x.spec
    return spec.detail[1]


def ragged_size_of(x: Tensor) -> RaggedSize:
    size: Any = x.shape[ragged_dim_of(x)]
    return size


def offsets_of(x: Tensor) -> Tensor:
    return parts_of(x)[0]


def lengths_of(x: Tensor) -> Tensor | None:
    """The lengths of the components; None if each ends where the next begins."""
    spec: Any = x.spec
    return parts_of(x)[1] if spec.detail[2] else None


def spans_of(x: Tensor) -> tuple[Span, ...]:
    storage: Any = x._storage
    if storage.places is None:
        starts = offsets_of(x).tolist()
        lengths = lengths_of(x)
        counts = [b - a for a, b in zip(starts, starts[1:])] if lengths is None else lengths.tolist()
        storage.places = tuple(map(Span, starts, counts))
    return storage.places


def fills_values(x: Tensor) -> bool:
    """Return whether the components of a jagged tensor cover its values without gaps."""
    spans = spans_of(x)
    size = parts_of(x)[-1].shape[ragged_dim_of(x) - 1]
    ends = [span.start + span.length for span in spans]
    return [0, *ends] == [*(span.start for span in spans), size]


def like(x: Tensor, values: Tensor, ragged_dim: int | None = None) -> Tensor:
    """A jagged tensor with the offsets and lengths of `x` and other values, whose dense dims may be others."""
    storage: Any = x._storage
    dim = ragged_dim_of(x) if ragged_dim is None else ragged_dim
    return jagged(values, offsets_of(x), lengths_of(x), dim, size=ragged_size_of(x), spans=storage.places)


def offsets_for(lengths: Sequence[int], device: Any = None) -> Tensor:
    return tensor([0, *lengths], dtype=int64, device=device).cumsum(0)


def concatenated(tensors: Sequence[Tensor], ragged_dim: int, template: Tensor | None = None) -> Tensor:
    """A jagged tensor of components. It has the ragged size of the template, if its lengths are those."""
    dim = ragged_dim - 1
    lengths = [each.shape[dim] for each in tensors]
    values = cat(tensors, dim)
    if template is not None and lengths == [span.length for span in spans_of(template)]:
        if fills_values(template):
            return like(template, values, ragged_dim)
        size = ragged_size_of(template)
        return jagged(values, offsets_for(lengths, values.device), None, ragged_dim, size=size)
    return jagged(values, offsets_for(lengths, values.device), None, ragged_dim)


# ---- Strided --------------------------------------------------------------------------------------------------------


def strided(buffer: Tensor, pieces: Sequence[Piece]) -> Tensor:
    """A strided nested tensor of these parts, without checks. The derivative goes to the buffer."""
    known: Any = (len(pieces), *map(size_of_sizes, zip(*(each.size for each in pieces))))
    sizes = shape(known)
    count = sum(math.prod(each.size) for each in pieces)
    spec = layout_spec(sizes, (0,) * len(sizes), buffer.dtype, buffer.device, STRIDED, NESTED, (count,))
    return _with_autograd(make(NestedStorage((bare(buffer),), spec, tuple(pieces)), 0, spec), buffer)


def pieces_of(x: Tensor) -> tuple[Piece, ...]:
    storage: Any = x._storage
    return storage.places


def contiguous_pieces(sizes: Sequence[Sequence[int]]) -> list[Piece]:
    """Where components of these sizes lie if each follows the one before."""
    pieces, offset = [], 0
    for size in sizes:
        pieces.append(Piece(tuple(size), contiguous_stride(size), offset))
        offset += math.prod(size)
    return pieces


def packed(tensors: Sequence[Tensor]) -> Tensor:
    """Return a strided nested tensor of components, one after another in a new buffer."""
    buffer = cat([each.reshape(-1) for each in tensors])
    return strided(buffer, contiguous_pieces([each.shape for each in tensors]))


# ---- Both -----------------------------------------------------------------------------------------------------------


def detach(x: Tensor) -> Tensor:
    """Return the same memory without the history."""
    return make(x._storage, 0, x.spec)


def is_contiguous(x: Tensor) -> bool:
    """Whether the components follow each other without gaps, each in row-major order."""
    values = parts_of(x)[-1]
    if is_jagged(x):
        return values.is_contiguous() and fills_values(x)
    pieces = pieces_of(x)
    return values.numel() == x.numel() and pieces == tuple(contiguous_pieces([each.size for each in pieces]))


def contiguous(x: Tensor) -> Tensor:
    if is_contiguous(x):
        return x
    if is_jagged(x) and fills_values(x):
        return like(x, values_of(x).contiguous())
    return joined(x, [each.contiguous() for each in components(x)])


def components(x: Tensor) -> list[Tensor]:
    """Return the components, as views of the values."""
    values = values_of(x)
    if is_jagged(x):
        dim, spans = ragged_dim_of(x) - 1, spans_of(x)
        if fills_values(x):
            return list(values.split_with_sizes([span.length for span in spans], dim))
        return [values.narrow(dim, *span) for span in spans]
    pieces = pieces_of(x)
    if pieces and is_contiguous(x):
        flat = values.split_with_sizes([math.prod(each.size) for each in pieces])
        return [each.view(piece.size) for each, piece in zip(flat, pieces, strict=True)]
    return [values.as_strided(*piece) for piece in pieces]


def joined(x: Tensor, tensors: Sequence[Tensor], ragged_dim: int | None = None) -> Tensor:
    """Return a nested tensor of the layout of `x` with these components."""
    if not is_jagged(x):
        return packed(tensors)
    return concatenated(tensors, ragged_dim_of(x) if ragged_dim is None else ragged_dim, x)


def same_places(x: Tensor, y: Tensor) -> bool:
    """Whether the components of both lie at the same places of the values."""
    if x.layout is not y.layout or x.dim() != y.dim():
        return False
    if not is_jagged(x):
        return pieces_of(x) == pieces_of(y)
    return (
        ragged_dim_of(x) == ragged_dim_of(y)
        and ragged_size_of(x) == ragged_size_of(y)
        and (lengths_of(x) is None) == (lengths_of(y) is None)
    )
