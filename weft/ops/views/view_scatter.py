"""Copies of a tensor in which one view holds another tensor: select_scatter, slice_scatter and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.public import public
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, make
from ...families.custom_vjp import CustomVjp
from ...families.view import View
from ..assembly.copying import contiguous
from .slicing import check_bounds
from .views import AS_STRIDED, DIAGONAL, SELECT, SLICE


def _scatter_of(view: View) -> CustomVjp:
    """Return the op (input, src, *static): a copy of `input` with `src` in the place of `view(input, *static)`."""

    def scatter(input: Tensor, src: Tensor, *static: Any) -> Tensor:
        result = _same_strides(input)
        place = view(result, *static)
        if view is AS_STRIDED:
            check_bounds(place)
        if place.spec.shape != src.spec.shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
                f"slice size = {list(place.shape)}"
            )
        place.copy_(src)
        return result

    def input_rule(ct, out, input, src, *static, specs):
        return op(laid_out(ct, specs[0]), ct.new_zeros(specs[1].shape), *static)

    def src_rule(ct, out, input, src, *static, specs):
        return view(laid_out(ct, specs[0]), *static)

    laid_out = _laid_out if view is AS_STRIDED else lambda ct, spec: ct
    op = CustomVjp(scatter, input_rule, src_rule, inputs=2, name=f"{view.name}_scatter")
    return op


def _laid_out(ct: Tensor, spec: Spec) -> Tensor:
    """The cotangent with the strides of the input, because `as_strided` looks at memory."""
    if ct.spec.stride == spec.stride:
        return ct
    if spec.is_contiguous:
        return contiguous(ct)
    placed = AS_STRIDED(ct.new_zeros((spec.span,)), spec.shape, spec.stride, 0)
    return placed.copy_(ct)


def _same_strides(input: Tensor) -> Tensor:
    """A copy with the same strides and offset. The rest of the storage is copied as well."""
    spec = input.spec
    nbytes = input._storage.nbytes_
    if spec.repeats or spec.is_dense and spec.nbytes == nbytes:
        return input.clone()
    whole = (nbytes // spec.dtype.itemsize,)
    copied = make(input._storage, 0, contiguous_spec(whole, spec.dtype, spec.device)).clone()
    return make(copied._storage, input._byte_offset, spec)


SELECT_SCATTER = _scatter_of(SELECT)
SLICE_SCATTER = _scatter_of(SLICE)
DIAGONAL_SCATTER = _scatter_of(DIAGONAL)
AS_STRIDED_SCATTER = _scatter_of(AS_STRIDED)


@public("function method")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of `input` with `src` as its slice number `index` along `dim`.

    >>> import weft as torch
    >>> torch.zeros(2, 2).select_scatter(torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return SELECT_SCATTER(input, src, dim, index)


@public("function method")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` in its slice start:end:step along `dim`.

    >>> import weft as torch
    >>> torch.zeros(4).slice_scatter(torch.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    return SLICE_SCATTER(input, src, dim, start, end, step)


@public("function method")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of `input` with `src` on a diagonal.

    >>> import weft as torch
    >>> torch.zeros(2, 2).diagonal_scatter(torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return DIAGONAL_SCATTER(input, src, offset, dim1, dim2)


@public("function method")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` in the view that `as_strided` gives.

    >>> import weft as torch
    >>> torch.zeros(2, 2).as_strided_scatter(torch.ones(2), (2,), (2,))
    tensor([[1., 0.],
            [1., 0.]])
    """
    own = input.storage_offset()
    offset = own if storage_offset is None else storage_offset
    return AS_STRIDED_SCATTER(input, src, tuple(size), tuple(stride), offset - own)
