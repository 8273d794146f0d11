"""Makes views of some of the elements: slices, diagonals, windows and strided views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.arguments import integer
from ...core.plans import PlanCache
from ...core.public import public
from ...core.spec import Spec
from ...core.tensor import Tensor, wrap_dim
from .views import AS_STRIDED, DIAGONAL, SELECT, SLICE, UNFOLD


@public("function method")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Element `index` of a dimension; the result does not have this dimension.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    return SELECT(input, dim, index)


@public("function method")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements of a dimension from `start`, an int or an integer tensor without dimensions.

    >>> import weft as torch
    >>> torch.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    own = input.spec.shape
    if not own:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.spec.shape or not start.spec.dtype.is_integral):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, len(own))
    start = integer(start, "narrow", "start")
    size = own[dim]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return SLICE(input, dim, start, start + length, 1)


@public("function method")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return the diagonals of the matrices in dimensions `dim1` and `dim2`, as the last dimension.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).diagonal()
    tensor([1, 4])
    """
    return DIAGONAL(input, offset, dim1, dim2)


@public("function", name="linalg.diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of the matrices in dimensions `dim1` and `dim2`, as the last dimension.

    >>> import weft as torch
    >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return diagonal(A, offset, dim1, dim2)


@public("method")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return windows of `size` elements, every `step` elements along a dimension, as a new last dimension.

    >>> import weft as torch
    >>> torch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    return UNFOLD(self, dimension, size, step)


@public("function method")
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a view of the storage of `input` with any sizes, strides and offset, counted in elements.

    Raises: RuntimeError if an element would lie outside of the storage.

    >>> import weft as torch
    >>> torch.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    own = input.storage_offset()
    offset = own if storage_offset is None else integer(storage_offset, "as_strided", "storage_offset")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    result = AS_STRIDED(input, tuple(size), tuple(stride), offset - own)
    check_bounds(result)
    return result


def check_bounds(tensor: Tensor) -> None:
    """Raises: RuntimeError if an element of the tensor lies outside of its storage."""
    spec, start = tensor.spec, tensor._byte_offset
    if start < 0 or _span_bytes[spec,] + start > tensor._storage.nbytes_ and spec.numel:
        needed = start + _span_bytes[spec,]
        raise RuntimeError(
            f"setStorage: sizes {list(spec.shape)}, strides {list(spec.stride)}, storage offset "
            f"{tensor.storage_offset()}, and itemsize {spec.dtype.itemsize} requiring a storage size of {needed} are out of bounds for storage of "
            f"size {tensor._storage.nbytes_}"
        )


@PlanCache
def _span_bytes(spec: Spec) -> int:
    return spec.span * spec.dtype.itemsize
