"""Sums over dims of sparse tensors, and softmax along one of them, where elements that are not stored count as -inf."""

from __future__ import annotations

from typing import Any

from ...core.dtype import LEGACY_NAMES, DType, bool_, int64
from ...core.layout import Layout, sparse_coo, sparse_csc, sparse_csr
from ...core.tensor import Tensor, wrap_dim
from ...families.custom_vjp import custom_vjp
from ...ops.assembly.joining import cat
from ..parts import values_of, with_values
from . import segments
from .compressed import blocksize_of, compressed, compressed_parts, dense_dim_of, format_of, matrix_sizes
from .compression import Compressed
from .conversion import as_compressed, as_coo, coalesce
from .coo import coo, indices_of, sparse_dim_of
from .multiplication import matrix_product, transposed_product
from .rules import SPARSE

rule = SPARSE.rule

# ---- Sums ----------------------------------------------------------------------------------------------------------


@rule("sum")
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = int64
    if dim is None:
        return _sum_of_all(input, dtype)
    if input.layout is sparse_coo:
        return _summed(input, dim, keepdim, dtype)
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    if keepdim and len(dims) == 1 and _is_real_matrix(input):
        return _sum_along(input, wrap_dim(dims[0], 2), dtype)
    result = _summed(as_coo(input), dim, True, dtype)
    result = result if result.layout is sparse_coo else result.to_sparse()
    if keepdim:
        return as_compressed(coalesce(result), input.layout, _kept_blocksize(input, result))
    return _summed(as_coo(input), dim, False, dtype)


def _is_real_matrix(input: Tensor) -> bool:
    """Whether sums are products with a vector of ones; complex ones are not, because infinity * (1 + 0j) is not infinity."""
    is_matrix = input.layout in (sparse_csr, sparse_csc) and input.dim() == 2 and not dense_dim_of(input)
    return is_matrix and not input.is_complex()


def _sum_along(input: Tensor, dim: int, dtype: DType | None) -> Tensor:
    """The sum over a dim of a CSR or CSC matrix, which keeps it: an entry for each row, or column, that has entries."""
    sizes, by_rows = matrix_sizes(input), format_of(input).by_rows
    majors, minors = sizes if by_rows else sizes[::-1]
    outer, inner, values = compressed_parts(input)
    values = values if dtype is None else values.to(dtype)
    shape = (sizes[0], 1) if dim else (1, sizes[1])
    if bool(dim) is by_rows:
        sums = matrix_product(values, values.new_ones(minors), outer, inner, minors)
        there = outer.diff() != 0
        places = there.nonzero().view(-1)
        structure = cat([outer[:1], there.cumsum(0)]), inner.new_zeros(len(places))
    else:
        sums = transposed_product(values, values.new_ones(majors), outer, inner, minors)
        places = inner.new_zeros(minors, dtype=bool_).index_fill_(0, inner, True).nonzero().view(-1)
        structure = outer.new_tensor([0, len(places)]), places
    new_outer, new_inner = (each.to(inner.dtype) for each in structure)
    return compressed(Compressed(new_outer, new_inner, sums.index_select(0, places)), shape, input.layout)


def _kept_blocksize(input: Tensor, result: Tensor) -> tuple[int, int] | None:
    """The blocksize of the input, 1 along dims of which only one row or column is left."""
    blocksize = blocksize_of(input)
    if blocksize is None:
        return None
    rows, columns = (
        1 if size == 1 else block for size, block in zip(result.shape[-2:], blocksize, strict=True)
    )
    return rows, columns


@rule("sparse.sum")
def sparse_sum(input: Tensor, dim: Any = None, dtype: DType | None = None) -> Tensor:
    if dim is None:
        return _whole_sum(input, dtype)
    return _summed(as_coo(input), dim, False, dtype)


@custom_vjp(lambda ct, out, input, dtype, *, specs: ct.to(specs[0].dtype).expand(specs[0].shape), inputs=1)
def _sum_of_all(input: Tensor, dtype: DType | None) -> Tensor:
    """The sum of all elements. Its gradient is dense, because that of elements without an entry is 1, too."""
    return _whole_sum(input, dtype)


def _whole_sum(input: Tensor, dtype: DType | None) -> Tensor:
    """The sum of all values. An element of a bool tensor counts once, however many entries it has."""
    if input.layout is sparse_coo and input.dtype is bool_:
        input = coalesce(input)
    return values_of(input).sum(dtype=dtype)


def _summed(input: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    """The sum over some dims of a COO tensor: dense if all sparse dims are among them, else coalesced unless `keepdim`."""
    sparse_dim, ndim = sparse_dim_of(input), input.dim()
    dims = [wrap_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    values = values_of(input)
    if dtype is not None:
        values = values.to(dtype)
    if dense := [d - sparse_dim + 1 for d in dims if d >= sparse_dim]:
        values = values.sum(dense)
    shape = tuple(size for d, size in enumerate(input.shape) if d not in dims)
    if all(d in dims for d in range(sparse_dim)):
        result = values.sum(0)
    else:
        indices, values = segments.summed(indices_of(input), values, input.shape[:sparse_dim], dims)
        result = coo(indices, values, shape, True)
    for d in sorted(dims) if keepdim else ():
        result = result.unsqueeze(d)
    return result


# ---- Softmax -------------------------------------------------------------------------------------------------------


@custom_vjp(
    lambda ct, out, values, indices, sizes, dim, is_log: segments.softmax_backward(
        ct, out, indices, sizes, dim, is_log
    ),
    inputs=1,
)
def _softmax(values: Tensor, indices: Tensor, sizes: tuple[int, ...], dim: int, is_log: bool) -> Tensor:
    return segments.softmax(indices, values, sizes, dim, is_log)


def _along(input: Tensor, dim: int, dtype: DType | None, is_log: bool) -> Tensor:
    layout: Layout = input.layout
    if layout is not sparse_coo:
        result = _along(coalesce(as_coo(input)), dim, dtype, is_log)
        return as_compressed(result, layout, blocksize_of(input))
    dim = wrap_dim(dim, input.dim())
    input = coalesce(input)
    values = values_of(input)
    if dtype is not None:
        values = values.to(dtype)
    if not values.is_floating_point():
        name = "log_softmax" if is_log else "softmax"
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[values.dtype]}'")
    sizes = tuple(input.shape[: sparse_dim_of(input)])
    return with_values(input, _softmax(values, indices_of(input), sizes, dim, is_log))


@rule("sparse.softmax", "softmax")
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    return _along(input, dim, dtype, False)


@rule("sparse.log_softmax", "log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    return _along(input, dim, dtype, True)


# ---- What is made of softmax -------------------------------------------------------------------------------------------


def _refused(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise SPARSE.missing(name)

    return refuse


# They would run as they are, and then take the softmax of a sparse tensor, which leaves out what a dense softmax counts.
for _name in (
    "nn.functional.cross_entropy",
    "nn.functional.scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
):
    rule(_name)(_refused(_name))
