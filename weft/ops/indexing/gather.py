"""Reading by index tensors: index_select, gather, take, take_along_dim, embedding; and unravel_index."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...core.above import above
from ...core.dtype import LEGACY_NAMES, DType, int32, int64
from ...core.iteration import broadcast_shapes
from ...core.outputs import check_apart, check_unrecorded, write_out
from ...core.public import public
from ...core.size import shape as shape_of
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, make, wrap_dim
from ...families.array_op import on_device
from ...families.custom_vjp import custom_vjp
from ...families.indexed import Gather, IndexMap
from ..assembly.copying import is_same_memory
from .advanced_indexing import at
from .masking import where


def along(spec: Spec, dim: int, index: Spec) -> IndexMap:
    """The elements that gather reads and scatter writes: the index gives the position along `dim`, the loop those along the others."""
    dim = wrap_dim(dim, len(spec.shape))
    none = (0,) * len(index.shape)
    if not index.numel:
        return IndexMap(index.shape, none, (none,), (dim,), (1,), (0,))
    if not spec.shape:
        return IndexMap(index.shape, none, (index.stride,), (0,), (1,), (1,))
    stride = (*spec.stride[:dim], 0, *spec.stride[dim + 1 :]) if index.shape else ()
    return IndexMap(index.shape, stride, (index.stride,), (dim,), (spec.shape[dim],), (spec.stride[dim],))


def _gathered(spec: Spec, dim: int, index: Spec) -> IndexMap:
    sizes, index_sizes = spec.shape, index.shape
    access = along(spec, dim, index)
    if index.numel:
        check_dtype(index, "gather(): Expected dtype int32/int64 for index")
        if max(len(sizes), 1) != max(len(index_sizes), 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        for other, (a, b) in enumerate(zip(index_sizes, sizes, strict=False)):
            if other != access.dims[0] and a > b:
                raise RuntimeError(
                    f"Size does not match at dimension {other} expected index {list(index_sizes)} to be no larger than self "
                    f"{list(sizes)} apart from dimension {access.dims[0]}"
                )
    return access


def slices(spec: Spec, dim: int, index: Spec) -> IndexMap:
    """Whole slices along `dim`. A vector or a 0-dim tensor holds their numbers."""
    dim = wrap_dim(dim, len(spec.shape))
    if not spec.shape and index.numel == 1:
        return IndexMap(spec.shape, (), ((),), (0,), (1,), (1,))
    if not spec.shape:  # each number in the index is another position of the one element
        return IndexMap(shape_of((index.numel,)), (0,), (index.stride,), (0,), (1,), (1,))
    stride = (*spec.stride[:dim], 0, *spec.stride[dim + 1 :])
    step = index.stride[0] if index.shape else 0
    row = tuple(step if other == dim else 0 for other in range(len(spec.shape)))
    sizes = shape_of((*spec.shape[:dim], index.numel, *spec.shape[dim + 1 :]))
    return IndexMap(sizes, stride, (row,), (dim,), (spec.shape[dim],), (spec.stride[dim],))


def _selected(spec: Spec, dim: int, index: Spec) -> IndexMap:
    check_dtype(index, "index_select(): Expected dtype int32 or int64 for index")
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not spec.shape and index.numel != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {index.numel} value(s)"
        )
    access = slices(spec, dim, index)
    if access.sizes == (0,) and index.numel:
        if len(spec.shape) == 1:
            raise IndexError("index out of range in self")
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    return access


def check_dtype(index: Spec, message: str, allowed: tuple[DType, ...] = (int32, int64)) -> None:
    if index.dtype not in allowed:
        raise RuntimeError(message.format(LEGACY_NAMES[index.dtype]))


def out_of_range_in_self(index: int, dim: int, size: int) -> Exception:
    return IndexError(f"index out of range in self\nindex {index} in dimension {dim} of size {size}")


def bounds_error(index: int, dim: int, size: int) -> Exception:
    return RuntimeError(f"index {index} is out of bounds for dimension {dim} with size {size}")


def flat_error(index: int, dim: int, size: int) -> Exception:
    return IndexError(f"out of range: tried to access index {index} on a tensor of {size} elements.")


GATHER = Gather("gather", _gathered, error=bounds_error)
INDEX_SELECT = Gather("index_select", _selected, error=out_of_range_in_self, always_checked=True)
TAKE = Gather("take", at, wrap=True, error=flat_error)


def check_index(
    index: Any, name: str, message: str = "", allowed: tuple[DType, ...] = (int32, int64)
) -> None:
    """Raises: TypeError unless the index is a tensor; RuntimeError with `message` if its dtype is not allowed."""
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if message:
        check_dtype(index.spec, f"{name}(): {message}", allowed)


@public("function method", out="apart")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` whose numbers are in the vector `index`.

    Raises: IndexError for numbers out of range, such as negative ones.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).index_select(1, torch.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    return INDEX_SELECT(input, (index,), dim)


@public("function method")
def gather(
    input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None
) -> Tensor:
    """Compute result[i][j] = input[index[i][j]][j] for dim 0, input[i][index[i][j]] for dim 1, and so on.

    `index` has the dims of `input` and may be shorter in all but `dim`. With `sparse_grad`, the gradient of `input` is a sparse tensor
    with an entry for each element of `index`.

    Raises: RuntimeError for indices out of range, such as negative ones.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    if out is not None:
        _check_out(out, input, index, "gather")
    result = _gather_sparsely(input, index, dim) if sparse_grad else GATHER(input, (index,), dim)
    return result if out is None else write_out(out, result, "gather", exact=True)


def _gathered_back(ct, out, input, index, dim, *, specs):
    return above("layouts.sparse.gradients").of_elements(ct, index, dim, specs[0])


@custom_vjp(_gathered_back, inputs=2, name="gather")
def _gather_sparsely(input: Tensor, index: Tensor, dim: int) -> Tensor:
    return GATHER(input, (index,), dim)


def _check_out(out: Tensor, input: Tensor, index: Tensor, name: str) -> None:
    """Raises: RuntimeError if `out` shares memory with an argument. As in PyTorch, it may be the index itself."""
    check_unrecorded(name, (input, index, out))
    # Check the memory that `out` reaches once it has the shape of the result.
    if out.spec.shape != index.spec.shape:
        out = make(
            out._storage, out._byte_offset, contiguous_spec(index.spec.shape, out.spec.dtype, out.spec.device)
        )
    check_apart(out, (input,) if is_same_memory(out, index) else (input, index), name)


def flat(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor as a vector on the same memory."""
    return make(
        tensor._storage,
        tensor._byte_offset,
        contiguous_spec((tensor.spec.numel,), tensor.spec.dtype, tensor.spec.device),
    )


@public("function method", out="apart")
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of `input`, read as a vector, at the positions `index`; the result has the shape of `index`.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).take(torch.tensor([0, -1]))
    tensor([1, 4])
    """
    check_index(index, "take", "Expected a long tensor for index, but got {}", (int64,))
    if input.spec.numel == 0 and index.spec.numel:
        raise IndexError("take(): tried to take from an empty tensor")
    return TAKE(input.reshape(-1), (index,), (0,))


@public("function method")
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Like `gather`, but all dims except `dim` are broadcast and negative indices count from the end. Without `dim`, both
    tensors are read as vectors.

    >>> import weft as torch
    >>> t = torch.tensor([[3, 1], [2, 4]])
    >>> t.take_along_dim(t.argmax(1, keepdim=True), 1)
    tensor([[3],
            [4]])
    """
    if out is not None:
        _check_out(out, input, indices, "take_along_dim")
        return write_out(out, take_along_dim(input, indices, dim), "take_along_dim", exact=True)
    if indices.spec.dtype is not int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {LEGACY_NAMES[indices.spec.dtype]}"
        )
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    dim = wrap_dim(dim, input.dim())
    other_sizes = broadcast_shapes("take_along_dim", *(_without(t.spec.shape, dim) for t in (input, indices)))
    wide, chosen = (
        t.expand(*other_sizes[:dim], t.spec.shape[dim], *other_sizes[dim + 1 :]) for t in (input, indices)
    )
    size = wide.spec.shape[dim]
    return gather(wide, dim, chosen % size if size else chosen)  # PyTorch wraps around


def _without(sizes: Sequence[int], dim: int) -> list[int]:
    return [1 if other == dim else size for other, size in enumerate(sizes)]


_ROWS = Gather("embedding", at, error=out_of_range_in_self, always_checked=True)


def _embedding_back(ct, out, weight, input, padding_idx, scale_grad_by_freq, sparse, *, specs):
    if sparse:
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return above("layouts.sparse.gradients").of_rows(ct, input, padding_idx, specs[0])
    if padding_idx is not None:
        ct = ct.masked_fill((input == padding_idx % specs[0].shape[0]).unsqueeze(-1), 0)
    if scale_grad_by_freq:
        counts = input.reshape(-1).bincount(minlength=specs[0].shape[0])
        ct = ct / counts[input].unsqueeze(-1)
    return _ROWS.adjoint(ct, (input,), (0,), specs[0])


@custom_vjp(_embedding_back)
def _embedding(weight: Tensor, input: Tensor, padding_idx, scale_grad_by_freq, sparse) -> Tensor:
    return _ROWS(weight, (input,), (0,))


@public("function", name="nn.functional.embedding")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of the matrix `weight` whose numbers are in `input`.

    Shapes: input [...], weight [rows, features] -> [..., features]. The row `padding_idx` gets no gradient. With `max_norm`,
    rows of a larger norm are first scaled down to it, in place, if `input` names them. With `sparse`, the gradient of `weight`
    is a sparse tensor with an entry for each number.

    Raises: IndexError for numbers out of range.
    """
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    if input.spec.dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{LEGACY_NAMES[input.spec.dtype]}Tensor instead (while checking arguments for embedding)"
        )
    rows = weight.spec.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renormalise(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    from .indexed_slices import index_copy_

    if not weight.spec.device.backend.has_memory:
        return
    numbers = input.reshape(-1).unique().long()
    rows = index_select(weight.detach(), 0, numbers)
    norms = rows.norm(norm_type, 1, keepdim=True)
    index_copy_(
        weight.detach(), 0, numbers, where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)
    )


@public("function method")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return the positions, dim by dim, of the elements of a tensor of `shape` that `indices` numbers row by row.

    >>> import weft as torch
    >>> torch.unravel_index(torch.tensor([5, 0]), (2, 3))
    (tensor([1, 0]), tensor([2, 0]))
    """
    if not isinstance(indices, Tensor) or indices.spec.dtype.category != 1:
        raise TypeError(
            f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices))}"
        )
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    sizes = list(map(operator.index, sizes))
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    steps = list(accumulate(reversed(sizes[1:]), operator.mul, initial=1))[::-1][: len(sizes)]
    strides, divisors = (on_device(np.array(each, np.int64), indices.spec.device) for each in (steps, sizes))
    columns = indices.unsqueeze(-1).floor_divide(strides) % divisors
    return columns.unbind(-1)
