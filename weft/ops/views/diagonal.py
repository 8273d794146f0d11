"""Takes triangles and diagonals of matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core.arguments import integer
from ...core.device import CPU
from ...core.device import device as Device  # noqa: N812 (the public argument has this name)
from ...core.dtype import LEGACY_NAMES, DType, bool_, int32, int64
from ...core.public import public
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, address, empty, make, wrap_dim
from ...families.array_op import array, on_device, to_device
from ...families.custom_vjp import custom_vjp
from ...families.launches import OBJECT, Launches
from ..assembly.filling import fill_
from ..creation.creation import as_device, check_dtype, check_layout, check_storage_size
from ..indexing.masking import MASKED_FILL, counting
from .view_copies import copied
from .views import DIAGONAL


def _lower(ct, out, a, diagonal):
    return _tril(ct, diagonal)


@custom_vjp(_lower, launches=lambda input, diagonal: _launches(input, diagonal, True))
def _tril(input: Tensor, diagonal: int) -> Tensor:
    return _zeroed(input, diagonal, True, "tril")


def _upper(ct, out, a, diagonal):
    return _triu(ct, diagonal)


@custom_vjp(_upper, launches=lambda input, diagonal: _launches(input, diagonal, False))
def _triu(input: Tensor, diagonal: int) -> Tensor:
    return _zeroed(input, diagonal, False, "triu")


def _zeroed(input: Tensor, diagonal: int, above: bool, name: str) -> Tensor:
    """Return a contiguous copy with zeros above `diagonal`, or below it."""
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return MASKED_FILL(
        input.contiguous(), _mask_of(input.spec, integer(diagonal, name, "diagonal"), above), 0
    )


def _off_diagonal(ct, out, matrices, value):
    return with_diagonal(ct, 0)


@custom_vjp(_off_diagonal)
def with_diagonal(matrices: Tensor, value: int) -> Tensor:
    """The matrices with a number on their main diagonal."""
    rows, columns = matrices.spec.shape[-2:]
    mask = np.eye(rows, columns, dtype=bool)
    return MASKED_FILL(matrices, on_device(mask, matrices.spec.device), value)


def _launches(input: Tensor, diagonal: int, above: bool) -> Launches | None:
    """What `_zeroed` launches, where it makes neither a copy nor a mask."""
    rows, columns = input.spec.shape[-2:]
    if not input.spec.is_contiguous or rows * columns > SMALL_MASK:
        return None
    mask = _mask_of(input.spec, diagonal, above)
    launches = MASKED_FILL.launches(input, mask, 0)
    if launches is None:
        return None
    steps = [
        (entry, [(OBJECT, address(mask), 0) if each[1] is mask else each for each in given])
        for entry, given in launches.steps
    ]
    return launches._replace(steps=steps, keepalive=(launches.keepalive, mask))


def _mask_of(spec: Spec, diagonal: int, above: bool) -> Tensor:
    rows, columns = spec.shape[-2:]
    diagonal = min(max(diagonal, -rows - 1), columns + 1)
    side = 1 << (max(rows, columns, 1) - 1).bit_length()
    if side * side <= SMALL_MASK:  # matrices of many sizes share a mask
        whole = _small_mask(side, side, diagonal, above, spec.device)
        return make(whole._storage, 0, make_spec((rows, columns), (side, 1), bool_, spec.device))
    find = _small_mask if rows * columns <= SMALL_MASK else _mask
    return find(rows, columns, diagonal, above, spec.device)


def _mask(rows: int, columns: int, diagonal: int, above: bool, where: Device) -> Tensor:
    """A mask of the elements whose column is larger than the row plus `diagonal`, or smaller."""
    edge = on_device(np.arange(rows)[:, None] + diagonal, where)
    column = counting(columns, where)
    return column > edge if above else column < edge


# Elements of a matrix, and bytes of its mask: up to here masks are kept, because `tril` of 64 x 64 takes 2.4 us with a kept mask and
# 10.6 us with a new one (AMD EPYC, one thread).
SMALL_MASK = 1 << 14
_small_mask = functools.lru_cache(maxsize=64)(_mask)


@public("function method inplace", out="exact")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the matrices with zeros above the diagonal; `diagonal` counts upwards from the main one.

    >>> import weft as torch
    >>> torch.ones(2, 2).tril()
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _tril(input, diagonal)


@public("function method inplace", out="exact")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the matrices with zeros below the diagonal; `diagonal` counts upwards from the main one."""
    return _triu(input, diagonal)


def _below(rows: int, columns: int, offset: int) -> int:
    """How many elements of a matrix lie on or below a diagonal. Row r has r + offset + 1 of them, but at least 0 and at most `columns`."""

    def up_to(length: int) -> int:
        """How many elements rows of 1, 2, ..., `length` elements have together, if each is cut after `columns`."""
        growing = min(max(length, 0), columns)
        return growing * (growing + 1) // 2 + max(length - columns, 0) * columns

    return up_to(rows + offset) - up_to(offset)


def _write_indices(target: np.ndarray, rows: int, columns: int, offset: int, lower: bool) -> None:
    """The rows and columns of a triangle that is not empty, into [2, count]."""
    places = np.arange(max(-offset, 0), rows) if lower else np.arange(min(rows, columns - offset))
    first = np.zeros_like(places) if lower else np.maximum(places + offset, 0)
    end = np.minimum(places + offset + 1, columns) if lower else columns
    lengths = end - first
    target[0] = np.repeat(places, lengths)
    # Number the elements from row to row, then subtract from each the number at which its row begins.
    target[1] = np.arange(target.shape[1]) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)


def _indices(name: str, lower: bool):
    @public("function", name=name, words={"which": "lower" if lower else "upper"})
    def indices(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: DType | None = int64,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
    ) -> Tensor:
        """Rows and columns of the {which} triangle of a matrix, row by row: shape [2, count]."""
        check_layout(layout)
        row, col, offset = (
            integer(value, name, what) for value, what in ((row, "row"), (col, "col"), (offset, "offset"))
        )
        for size, what in ((row, "row"), (col, "col")):
            if size < 0:
                raise RuntimeError(f"{what} must be non-negative, got{size}")
        index_dtype = check_dtype(dtype) or int64
        if index_dtype not in (int32, int64):
            raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[index_dtype]}'")
        count = _below(row, col, offset) if lower else row * col - _below(row, col, offset - 1)
        where = as_device(device)
        spec = check_storage_size(contiguous_spec((2, count), index_dtype, where))
        if not count or not where.backend.has_memory:
            return empty(spec)
        result = empty(spec.like(device=CPU))
        _write_indices(array(result), row, col, offset, lower)
        return result if where is CPU else to_device(result, where)

    return indices


tril_indices = _indices("tril_indices", lower=True)
triu_indices = _indices("triu_indices", lower=False)


@public("function method", out="exact")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of a diagonal of a matrix; of a vector, the matrix that has it as its diagonal.

    >>> import weft as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input.dim() == 1:
        return diag_embed(input, diagonal)
    if input.dim() == 2:
        return copied(DIAGONAL(input, diagonal, 0, 1))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.dim()}D")


@public("function method")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix whose diagonal holds all elements of `input`."""
    return diag_embed(input.reshape(-1), offset)


# It is the adjoint of `diagonal`.
DIAG_EMBED = DIAGONAL.adjoint
DIAG_EMBED.name = "diag_embed"


@public("function method")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in the dims `dim1` and `dim2` of the result, whose diagonals are the last dim of `input`.

    >>> import weft as torch
    >>> torch.diag_embed(torch.ones(3, 2)).shape
    torch.Size([3, 2, 2])
    """
    dims = input.dim() + 1
    first, second = wrap_dim(dim1, dims), wrap_dim(dim2, dims)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.spec.shape[-1] + abs(offset)
    sizes = list(input.spec.shape[:-1])
    for dim in sorted((first, second)):
        sizes.insert(dim, size)
    return DIAG_EMBED(
        input, contiguous_spec(sizes, input.spec.dtype, input.spec.device), offset, first, second
    )


@public("function method", autocast="raise")
def trace(input: Tensor) -> Tensor:
    """Return the sum of the main diagonal of a matrix."""
    if input.spec.dtype is bool_:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    return _trace(input)


def _on_diagonal(ct, out, a, *, specs):
    rows, columns = specs[0].shape
    return DIAG_EMBED(ct.expand(min(rows, columns)), specs[0], 0, 0, 1)


@custom_vjp(_on_diagonal)
def _trace(input: Tensor) -> Tensor:
    return input.diagonal().sum()


@public("method")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal; with `wrap` a tall matrix gets another one every columns + 1 rows."""
    spec = self.spec
    if len(spec.shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(spec.shape) > 2 and len(set(spec.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    count, step = min(spec.shape), sum(spec.stride)
    diagonal = DIAGONAL(self, 0, 0, 1) if len(spec.shape) == 2 else self.as_strided((count,), (step,))
    fill_(diagonal, fill_value)
    if wrap and len(spec.shape) == 2 and spec.shape[0] > spec.shape[1] + 1:
        rows, columns = spec.shape
        for top in range(columns + 1, rows, columns + 1):
            below = self[top:]
            fill_(below.as_strided((min(below.spec.shape),), (step,)), fill_value)
    return self
