"""Ops that change the sizes and keep the elements in their order."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...core import view_rules as rules
from ...core.arguments import integers
from ...core.checking import tensors as check_tensors
from ...core.dtype import DType
from ...core.entry import entry
from ...core.layout import contiguous_format
from ...core.plans import PlanCache
from ...core.public import public
from ...core.registry import add_function
from ...core.spec import Spec
from ...core.tensor import Tensor, wrap_dim
from ..assembly.copying import clone, contiguous
from .views import SQUEEZE, SQUEEZE_DIM, SQUEEZE_DIMS, UNSQUEEZE, VIEW, VIEW_DTYPE, unsafe_view


@public("method", checks=False)
def view(self: Tensor, *shape: Any, size: Any = None, dtype: DType | None = None) -> Tensor:
    """Return a view of the same memory with another shape or another dtype.

    Forms: view(*sizes), view(sizes), view(dtype); one size may be -1.

    Raises: RuntimeError if the strides do not allow a view; `reshape` copies then.

    >>> import weft as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if len(shape) == 1 and isinstance(shape[0], DType):
        dtype = shape[0]
    if dtype is not None:
        return _view_dtype(self, dtype)
    if size is not None:
        shape = (size,)
    elif not shape:
        raise TypeError("view() received an invalid combination of arguments: it takes sizes or a dtype")
    return VIEW(self, integers(shape, "view", "size"))


def _view_dtype(self: Tensor, dtype: DType) -> Tensor:
    if dtype.itemsize > self.spec.dtype.itemsize:
        _check_offset(self, dtype.itemsize // self.spec.dtype.itemsize, dtype)
    result = VIEW_DTYPE(self.detach(), dtype)
    result._base = None  # as in PyTorch, autograd does not connect it with the tensor
    return result


def _check_offset(self: Tensor, ratio: int, dtype: DType) -> None:
    """PyTorch raises the error about the last size first, then that about the offset, then those about strides."""
    if self.storage_offset() % ratio and not (self.spec.conj or self.spec.neg):
        rules.check_last_size(self.spec, dtype)
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {rules.described(self.spec, dtype)}, but got "
            f"{self.storage_offset()}"
        )


@public("method")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view of the same memory with the shape of `other`.

    >>> import weft as torch
    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return VIEW(self, other.spec.shape)


@public("function method")
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements with another shape: a view where the strides allow it, else a copy.

    >>> import weft as torch
    >>> torch.arange(6).reshape(2, 3).t().reshape(6)
    tensor([0, 3, 1, 4, 2, 5])
    """
    sizes = integers(sizes if shape is None else (shape,), "reshape", "shape")
    if input.spec.is_contiguous or _is_viewable[input.spec, sizes]:
        return VIEW(input, sizes)
    return unsafe_view(clone(input, memory_format=contiguous_format), sizes)


@PlanCache
def _is_viewable(spec: Spec, sizes: tuple[int, ...]) -> bool:
    return rules.view_stride(spec, rules.inferred_shape(sizes, spec.shape)) is not None


@public("method")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same elements with the shape of `other`.

    >>> import weft as torch
    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(self, other.spec.shape)


@public("function method")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dimensions from `start_dim` to `end_dim` into one.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    sizes = _flat_shape[input.spec, start_dim, end_dim]
    if sizes is None:
        return input
    return VIEW(input, sizes) if input.spec.is_contiguous else reshape(input, sizes)


@PlanCache
def _flat_shape(spec: Spec, start_dim: int, end_dim: int) -> tuple[int, ...] | None:
    sizes = spec.shape
    start, end = wrap_dim(start_dim, len(sizes)), wrap_dim(end_dim, len(sizes))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not sizes:
        return (1,)
    return None if start == end else (*sizes[:start], sizes[start : end + 1].numel(), *sizes[end + 1 :])


@public("function method")
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several of the given sizes, one of which may be -1.

    >>> import weft as torch
    >>> torch.zeros(2, 12).unflatten(1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    own = input.spec.shape
    parts = tuple(sizes)
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    dim = wrap_dim(dim, len(own))
    if not own:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    size = own[dim]
    try:
        inferred = rules.inferred_shape(parts, (size,))
    except RuntimeError as error:
        if list(parts).count(-1) > 1 or min(parts) < -1:
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {dim} ({size}) in the input "
            "tensor"
        ) from None
    return VIEW(input, (*own[:dim], *inferred, *own[dim + 1 :]))


@public("function method")
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view if the tensor is contiguous, else a copy.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).ravel()
    tensor([1, 2, 3, 4])
    """
    return VIEW(contiguous(input), (-1,))


@public("function method")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1 before position `dim`.

    >>> import weft as torch
    >>> torch.zeros(2, 3).unsqueeze(-1).shape
    torch.Size([2, 3, 1])
    """
    return UNSQUEEZE(input, dim)


@public("function method")
def squeeze(input: Tensor, *dims: Any, dim: Any = None) -> Tensor:
    """Remove dimensions of size 1: all of them, or those in `dim` (an int or a tuple).

    >>> import weft as torch
    >>> torch.zeros(1, 2, 1).squeeze().shape, torch.zeros(1, 2, 1).squeeze(0).shape
    (torch.Size([2]), torch.Size([2, 1]))
    """
    if dim is not None:
        dims = (dim,)
    elif not dims or dims == (None,):
        return SQUEEZE(input)
    chosen = integers(dims, "squeeze", "dim")
    return (SQUEEZE_DIM if type(dims[0]) is int and len(dims) == 1 else SQUEEZE_DIMS)(input, chosen)


def _each(function):
    """Let the function also take several tensors, or a sequence of them, and return a tuple of results."""

    @entry
    @functools.wraps(function)
    def complete(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        if len(tensors) == 1:
            tensors = tuple(check_tensors(tensors[0], function.__name__, "tensors", 1))
        return tuple(function(tensor) for tensor in tensors)

    add_function(function.__name__, complete)
    return complete


@_each
def atleast_1d(input: Tensor) -> Tensor:
    """A 0-dim tensor as a vector; other tensors unchanged. Several tensors give a tuple."""
    return input if input.spec.shape else input.view(1)


@_each
def atleast_2d(input: Tensor) -> Tensor:
    """Add dimensions in front until there are two. Several tensors give a tuple."""
    ndim = input.spec.ndim
    if ndim >= 2:
        return input
    return input.unsqueeze(0) if ndim else input.view(1, 1)


@_each
def atleast_3d(input: Tensor) -> Tensor:
    """Add dimensions until there are three, the first of them in front. Several tensors give a tuple."""
    ndim = input.spec.ndim
    if ndim >= 3:
        return input
    if ndim == 2:
        return input.unsqueeze(-1)
    return input.unsqueeze(0).unsqueeze(-1) if ndim else input.view(1, 1, 1)
