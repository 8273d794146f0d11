"""Matrix products with sparse tensors, and their derivatives.

Three products are each other's derivatives, so all orders of derivatives exist:

    product       A @ B          of a sparse matrix A and a dense matrix B
    transposed    A.T @ B
    sampled       (L @ R.T) at the entries of A

Of `torch.sparse.mm` the cotangent of A has the entries of A. Of `torch.mm` and its relatives it is dense, as in PyTorch, because
they do not take what A leaves out as constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ...ops.assembly.joining import cat, stack
from ...ops.creation.ranges import arange
from ..parts import is_plain, values_of, with_values
from . import products
from .compressed import TITLES, compressed, compressed_parts, matrix_sizes, narrow_indices_of
from .compression import Compressed, check_inner, majors_of, swapped
from .conversion import as_compressed, as_coo, coalesce, to_dense
from .coo import coo, indices_of
from .filling import without_entries
from .rules import SPARSE

rule = SPARSE.rule

# ---- The three products ------------------------------------------------------------------------------------------------


def _of_product(ct, out, values, dense, outer, inner, minors, *, wanted):
    return (
        _sampled(ct, dense.conj(), outer, inner) if wanted[0] else None,
        transposed_product(values.conj(), ct, outer, inner, minors) if wanted[1] else None,
        None,
        None,
    )


@custom_vjp(joint=_of_product, inputs=4)
def matrix_product(values: Tensor, dense: Tensor, outer: Tensor, inner: Tensor, minors: int) -> Tensor:
    return products.matmul(Compressed(outer, inner, _ready(values)), minors, _ready(dense))


def _of_transposed(ct, out, values, dense, outer, inner, minors, *, wanted):
    return (
        _sampled(dense.conj(), ct, outer, inner) if wanted[0] else None,
        matrix_product(values.conj(), ct, outer, inner, minors) if wanted[1] else None,
        None,
        None,
    )


@custom_vjp(joint=_of_transposed, inputs=4)
def transposed_product(values: Tensor, dense: Tensor, outer: Tensor, inner: Tensor, minors: int) -> Tensor:
    return products.transposed_matmul(Compressed(outer, inner, _ready(values)), minors, _ready(dense))


def _of_sampled(ct, out, left, right, outer, inner, *, wanted, specs):
    return (
        matrix_product(ct, right.conj(), outer, inner, specs[1].shape[0]) if wanted[0] else None,
        transposed_product(ct, left.conj(), outer, inner, specs[1].shape[0]) if wanted[1] else None,
        None,
        None,
    )


@custom_vjp(joint=_of_sampled, inputs=4)
def _sampled(left: Tensor, right: Tensor, outer: Tensor, inner: Tensor) -> Tensor:
    if left.dim() == 1:
        left, right = left.unsqueeze(1), right.unsqueeze(1)
    parts = Compressed(outer, inner, left.new_empty(inner.shape))
    return products.sampled_matmul(parts, _ready(left), _ready(right))


def _ready(x: Tensor) -> Tensor:
    return x.resolve_conj().resolve_neg().contiguous()


def _common(x: Tensor, dense: Tensor) -> tuple[Tensor, Tensor]:
    """Values and a dense operand in one dtype.

    Raises: RuntimeError if they have different ones, as for dense matrices.
    """
    values = values_of(x)
    if values.dtype is not dense.dtype:
        raise RuntimeError(
            f"expected mat1 and mat2 to have the same dtype, but got: {values.dtype} != {dense.dtype}"
        )
    return values, dense


# ---- Sparse and dense --------------------------------------------------------------------------------------------------


def sparse_dense(x: Tensor, dense: Tensor) -> Tensor:
    """`x @ dense` of a sparse matrix and a dense matrix or vector. The cotangent of `x` has its entries."""
    _check_product(x, dense)
    rows, columns = x.shape
    if x.layout in (sparse_bsr, sparse_bsc) and dense.dim() == 2:
        blocks = as_compressed(x, sparse_bsr, _blocksize(x))
        _, dense = _common(blocks, dense)
        return products.block_matmul(compressed_parts(blocks), columns // _blocksize(x)[1], dense)
    if x.layout is not sparse_csc:
        x = as_compressed(x, sparse_csr)
    values, dense = _common(x, dense)
    if x.layout is sparse_csr:
        outer, inner = narrow_indices_of(x) if dense.dim() == 1 else compressed_parts(x)[:2]
        return matrix_product(values, dense, outer, inner, columns)
    outer, inner, _ = compressed_parts(x)
    return transposed_product(values, dense, outer, inner, rows)


def _check_product(x: Tensor, dense: Tensor) -> None:
    rows, columns = matrix_shape(x)
    if dense.shape[0] != columns:
        shown = "x".join(map(str, dense.shape))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{columns} and {shown})")


def transposed_dense(x: Tensor, dense: Tensor) -> Tensor:
    """Compute `x.T @ dense` of a sparse matrix and a dense matrix or vector."""
    rows, columns = matrix_shape(x)
    if x.layout is not sparse_csc:
        x = as_compressed(x, sparse_csr)
    values, dense = _common(x, dense)
    outer, inner, _ = compressed_parts(x)
    if x.layout is sparse_csr:
        return transposed_product(values, dense, outer, inner, columns)
    return matrix_product(values, dense, outer, inner, rows)


def _of_unmasked(ct: Tensor, out: Any, x: Any, dense: Tensor, transposed: bool, *, wanted: Any) -> tuple:
    for_x, for_dense = None, None
    if wanted[0]:
        matrix, cotangent = (dense.unsqueeze(1), ct.unsqueeze(1)) if dense.dim() == 1 else (dense, ct)
        for_x = matrix.conj() @ cotangent.mT if transposed else cotangent @ matrix.mH
    if wanted[1]:
        for_dense = unmasked(_conjugate(x), ct, not transposed)
    return for_x, for_dense


@custom_vjp(joint=_of_unmasked, inputs=2)
def unmasked(x: Tensor, dense: Tensor, transposed: bool) -> Tensor:
    """Compute `x @ dense`, or `x.T @ dense`, with a dense cotangent of `x`."""
    return transposed_dense(x, dense) if transposed else sparse_dense(x, dense)


def _conjugate(x: Tensor) -> Tensor:
    return with_values(x, values_of(x).conj().resolve_conj()) if x.dtype.is_complex else x


def dense_sparse(dense: Tensor, x: Tensor) -> Tensor:
    """Compute `dense @ x` of a dense matrix or vector and a sparse matrix."""
    rows, columns = matrix_shape(x)
    if dense.shape[-1] != rows:
        shown = "x".join(map(str, dense.shape))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shown} and {rows}x{columns})")
    return unmasked(x, dense.t(), True).t()


def matrix_shape(x: Tensor) -> tuple[int, int]:
    """Rows and columns.

    Raises: RuntimeError for a tensor with another number of dims.
    """
    if x.dim() != 2:
        raise RuntimeError(f"Expected a matrix, but got a {x.layout} tensor with {x.dim()} dims")
    return x.shape[0], x.shape[1]


def _blocksize(x: Tensor) -> tuple[int, int]:
    height, width = values_of(x).shape[-2:]
    return height, width


# ---- Sparse and sparse -------------------------------------------------------------------------------------------------


class _Structure(NamedTuple):
    """Where the entries of a compressed matrix lie."""

    outer: Tensor
    inner: Tensor
    minors: int

    def swapped(self) -> tuple[_Structure, Tensor]:
        """Return the structure of the transpose, and the place here of each entry there."""
        places = arange(len(self.inner), device=self.inner.device)
        outer, inner, order = swapped(Compressed(self.outer, self.inner, places), self.minors)
        return _Structure(outer, inner, len(self.outer) - 1), order


def _of_sampled_pairs(ct, out, left, right, at, of_left, of_right, *, wanted):
    for_left, for_right = None, None
    if wanted[0]:
        transposed, order = of_right.swapped()
        values = right.conj().index_select(0, order)
        for_left = _sampled_pairs(ct, values, of_left, at, transposed)
    if wanted[1]:
        (by_minor, order), (transposed, left_order) = at.swapped(), of_left.swapped()
        values = left.conj().index_select(0, left_order)
        for_right = _sampled_pairs(ct.index_select(0, order), values, of_right, by_minor, transposed)
    return for_left, for_right


@custom_vjp(joint=_of_sampled_pairs, inputs=2)
def _sampled_pairs(
    left: Tensor, right: Tensor, at: _Structure, of_left: _Structure, of_right: _Structure
) -> Tensor:
    """The elements of left @ right.T at the entries of a matrix; left and right are given by values and structure."""
    pattern = Compressed(at.outer, at.inner, left.new_empty(at.inner.shape))
    x = Compressed(of_left.outer, of_left.inner, _ready(left))
    y = Compressed(of_right.outer, of_right.inner, _ready(right))
    return products.sampled_pairs(pattern, x, y, of_left.minors)


def _of_pairs(ct, out, left, right, left_outer, left_inner, right_outer, right_inner, minors, *, wanted):
    """Return the cotangents of the values: each entry's element of ct @ right.T, and of left.T @ ct."""
    product = _Structure(out[1], out[2], minors)
    of_left = _Structure(left_outer, left_inner, len(right_outer) - 1)
    of_right = _Structure(right_outer, right_inner, minors)
    for_left, for_right = None, None
    if wanted[0]:
        for_left = _sampled_pairs(ct[0], right.conj(), of_left, product, of_right)
    if wanted[1]:
        (by_column, order), (of_entries, left_order) = product.swapped(), of_left.swapped()
        (at, places) = of_right.swapped()
        values = left.conj().index_select(0, left_order)
        found = _sampled_pairs(ct[0].index_select(0, order), values, at, by_column, of_entries)
        for_right = found.new_zeros(found.shape).index_copy(0, places, found)
    return for_left, for_right, None, None, None, None


@custom_vjp(joint=_of_pairs, inputs=6, results=(1, 2))
def _pairs(
    left: Tensor,
    right: Tensor,
    left_outer: Tensor,
    left_inner: Tensor,
    right_outer: Tensor,
    right_inner: Tensor,
    minors: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Values and indices of the product of two matrices that are compressed along their rows."""
    x = Compressed(left_outer, left_inner, _ready(left))
    y = Compressed(right_outer, right_inner, _ready(right))
    outer, inner, values = products.matmul_pairs(x, y, minors)
    return values, outer, inner


def sparse_sparse(x: Tensor, other: Tensor) -> Tensor:
    """Compute `x @ other` of two sparse matrices, in the layout of `x`."""
    (rows, inner_size), (other_rows, columns) = matrix_shape(x), matrix_shape(other)
    if inner_size != other_rows:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner_size} and {other_rows}x{columns})"
        )
    matrices = as_compressed(x, sparse_csr), as_compressed(other, sparse_csr)
    _common(matrices[0], values_of(matrices[1]))
    left, right = map(compressed_parts, matrices)
    if products.multiplies_pairs(left, right, columns):
        values, outer, inner = _pairs(left.values, right.values, *left[:2], *right[:2], columns)
        parts = Compressed(outer, inner, values)
    else:
        parts = products.matmul_sparse(left, right, columns)
    result = compressed(parts, (rows, columns), sparse_csr)
    if x.layout is sparse_coo:
        return as_coo(result)
    return as_compressed(result, x.layout, _blocksize(x)) if x.layout in (sparse_bsr, sparse_bsc) else result


# ---- The public functions ----------------------------------------------------------------------------------------------


@rule("mm", "spmm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    if is_plain(input):
        return dense_sparse(input, mat2)
    return unmasked(input, mat2, False) if is_plain(mat2) else sparse_sparse(input, mat2)


@rule("sparse.mm")
def masked_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """`torch.sparse.mm`: the cotangent of a sparse operand has its entries. reduce: of CSR, how the products of a row are combined."""
    if reduce is not None:
        return reduced_product(mat1, mat2, reduce)
    if is_plain(mat1):
        return dense_sparse(mat1, mat2)
    if is_plain(mat2):
        return sparse_dense(mat1, mat2)
    product = sparse_sparse(mat1, mat2)
    return as_compressed(product, sparse_csc) if mat1.layout is mat2.layout is sparse_csc else product


def reduced_product(x: Tensor, dense: Tensor, reduce: str) -> Tensor:
    """Return for each row of a CSR matrix the sum, mean, amax or amin of its products with rows of a dense matrix."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"torch.sparse.mm: reduce is 'sum', 'mean', 'amax' or 'amin', not {reduce!r}")
    if x.layout is not sparse_csr:
        raise NotImplementedError(
            f"torch.sparse.mm with reduce={reduce!r} takes a CSR matrix, not {x.layout}: write x.to_sparse_csr()"
        )
    if reduce == "sum":
        return sparse_dense(x, dense)
    outer, inner, values = compressed_parts(x)
    majors = majors_of(outer, len(inner)).long()
    check_inner(inner, x.shape[1])
    terms = values.unsqueeze(1) * dense.index_select(0, inner)
    result = terms.new_zeros((x.shape[0], dense.shape[1]))
    return result.scatter_reduce(0, majors.unsqueeze(1).expand_as(terms), terms, reduce, include_self=False)


@rule("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    if not is_plain(vec):
        if input.shape[-1] != vec.shape[0]:
            raise RuntimeError(
                f"mv: expected self.size(-1) == vec.size(-1), but got {input.shape[-1]} and {vec.shape[0]}"
            )
        vec = to_dense(vec)
    if vec.dim() != 1 or input.shape[-1] != vec.shape[0]:
        raise RuntimeError(
            f"mv: expected self.size(-1) == vec.size(-1), but got {list(input.shape)} and {list(vec.shape)}"
        )
    if is_plain(input):
        return input.mv(vec)
    _check_product(input, vec)
    return unmasked(input, vec, False)


@rule("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    if input.dim() == 2 and other.dim() == 2:
        return mm(input, other)
    if input.dim() == 2 and other.dim() == 1:
        return mv(input, other)
    if input.dim() == 1 and other.dim() == 2:
        vector = input if is_plain(input) else to_dense(input)
        return unmasked(other, vector, True)
    if input.dim() == 3 and other.dim() == 3:
        return bmm(input, other)
    if is_plain(other) and input.dim() == 2:
        batched = other.transpose(0, -2).flatten(1)
        return mm(input, batched).unflatten(1, other.transpose(0, -2).shape[1:]).transpose(0, -2)
    if is_plain(input) and other.dim() == 2:
        return mm(input.flatten(0, -2), other).unflatten(0, input.shape[:-1])
    raise SPARSE.missing("matmul")


@rule("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of a batch, as one product with a matrix that has the batch along its diagonal."""
    for position, each in enumerate((input, mat2), 1):
        if each.dim() != 3:
            raise RuntimeError(
                f"bmm: batch{position} must be a 3D tensor, not one of size {list(each.shape)}"
            )
    if is_plain(input):
        return bmm(mat2.transpose(1, 2), input.transpose(1, 2)).transpose(1, 2)
    if not is_plain(mat2):
        raise SPARSE.missing("bmm")
    batch, rows, columns = input.shape
    if mat2.shape[0] != batch or mat2.shape[1] != columns:
        raise RuntimeError(f"bmm: batches {list(input.shape)} and {list(mat2.shape)} cannot be multiplied")
    whole = coalesce(as_coo(input))
    place, row, column = indices_of(whole).unbind(0)

    diagonal = coo(
        stack([place * rows + row, place * columns + column]),
        values_of(whole),
        (batch * rows, batch * columns),
        True,
    )
    # Not `unmasked`: a dense cotangent of the diagonal matrix would have as many elements as the batch has, squared.
    result = sparse_dense(diagonal, mat2.reshape(batch * columns, mat2.shape[2]))
    return result.view(batch, rows, mat2.shape[2])


@rule("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    if is_plain(mat1) and is_plain(mat2):
        raise RuntimeError(
            "addmm: a sparse input of two dense matrices is not supported: write input.to_dense()"
        )
    return _added(input, mm(mat1, mat2), beta, alpha)


@rule("sparse.addmm")
def masked_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _added(mat, masked_mm(mat1, mat2), beta, alpha)


def _added(input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if is_plain(product) and not is_plain(input):
        input = to_dense(input)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:  # NaN and infinities of the input do not count
        if is_plain(scaled):
            return scaled
        return to_dense(scaled) if is_plain(input) else without_entries(input) + scaled
    return (input if beta == 1 else input * beta) + scaled


@rule("addmv")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _added(input, mv(mat, vec), beta, alpha)


@rule("baddbmm")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _added(input, bmm(batch1, batch2), beta, alpha)


@rule("nn.functional.linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if is_plain(input):
        flat = input.reshape(-1, input.shape[-1])
        _check_product(weight, flat.t())
        result = unmasked(weight, flat.t(), False).t().reshape(*input.shape[:-1], weight.shape[0])
    else:
        result = unmasked(input, weight.t(), False) if is_plain(weight) else sparse_sparse(input, weight.t())
    return result if bias is None else result + bias


@rule("smm")
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    return sspaddmm(_zeros(input.shape[0], mat2.shape[1], values_of(input)), input, mat2)


@rule("sspaddmm")
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """The sum of a sparse matrix and a product, as a sparse matrix: of the product, all rows that `mat1` has entries in."""
    if is_plain(input):
        raise RuntimeError("sspaddmm: Expected 'self' to be sparse, but got dense")

    rows, product = _hybrid(mat1, mat2)
    width = mat2.shape[1]
    columns = rows.new_tensor(range(width)).repeat(len(rows))
    indices = stack([rows.repeat_interleave(width), columns])
    own = coalesce(as_coo(input))
    return coo(
        cat([indices_of(own), indices], 1),
        cat([values_of(own) * beta, (product * alpha).flatten()]),
        input.shape,
        False,
    )


@rule("hspmm")
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix with one sparse dim: the rows that `mat1` has entries in."""
    rows, product = _hybrid(mat1, mat2)
    return coo(rows.unsqueeze(0), product, (mat1.shape[0], mat2.shape[1]), False)


def _hybrid(mat1: Tensor, mat2: Tensor) -> tuple[Tensor, Tensor]:
    matrix = coalesce(as_coo(mat1))
    rows = indices_of(matrix)[0].unique()
    return rows, sparse_dense(matrix, mat2 if is_plain(mat2) else to_dense(mat2)).index_select(0, rows)


def _zeros(rows: int, columns: int, like: Tensor) -> Tensor:
    indices = like.new_zeros((2, 0)).long()
    return coo(indices, like.new_zeros((0,)), (rows, columns), True)


# ---- Products at the entries of a matrix --------------------------------------------------------------------------------


def _sampled_batch(left: Tensor, right: Tensor, outer: Tensor, inner: Tensor) -> Tensor:
    """`_sampled` for each matrix of a batch; all have as many entries."""
    last = inner.dim() - 2
    batch = [each.flatten(0, last).unbind(0) for each in (left, right, outer, inner)]
    return stack([_sampled(*parts) for parts in zip(*batch, strict=True)]).unflatten(0, inner.shape[:-1])


@rule("sparse.sampled_addmm")
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """Compute `beta * input + alpha * (mat1 @ mat2)` at the entries of `input`, a CSR or CSC matrix."""
    if input.layout not in (sparse_csr, sparse_csc):
        title = TITLES.get(input.layout, "Sparse")
        raise RuntimeError(f"sampled_addmm: Expected self to be a sparse CSR matrix, but got {title}")
    if mat1.dtype is not mat2.dtype or mat1.dtype is not input.dtype:
        raise RuntimeError(
            f"sampled_addmm: Expected all dtypes to be equal, but got {input.dtype}, {mat1.dtype} and {mat2.dtype}"
        )
    rows, columns = matrix_sizes(input)
    if mat1.shape[-2] != rows or mat2.shape[-1] != columns or mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: the product of {list(mat1.shape)} and {list(mat2.shape)} does not have the shape {list(input.shape)}"
        )
    outer, inner, values = compressed_parts(input)
    right = mat2.transpose(-1, -2)
    left, right = (mat1, right) if input.layout is sparse_csr else (right, mat1)
    if left.dim() > inner.dim() + 1:  # one pattern for a batch of products
        batch = left.shape[: left.dim() - inner.dim() - 1]
        outer, inner, values = (each.expand(*batch, *each.shape) for each in (outer, inner, values))
    shape = (*inner.shape[:-1], rows, columns)
    product = (
        _sampled_batch(left, right, outer, inner) if inner.dim() > 1 else _sampled(left, right, outer, inner)
    )
    scaled = product if alpha == 1 else product * alpha
    result = scaled if beta == 0 else values * beta + scaled
    return compressed(Compressed(outer, inner, result), shape, input.layout)
