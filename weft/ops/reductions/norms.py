"""Computes norms of vectors and matrices, distances and condition numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.arguments import integer, number, wrong_type
from ...core.dtype import LEGACY_NAMES, DType
from ...core.plans import PlanCache
from ...core.promotion import promote_types
from ...core.public import public, show_out
from ...core.spec import Spec
from ...core.tensor import Tensor, wrap_dim
from ...engine.complexes import Complex
from ...engine.expr import Expr, cast, const, isnan, ne, select
from ...engine.scalar import absolute, pow, sqrt
from ...families.custom_vjp import custom_vjp
from ...families.monoid_op import Types
from ...families.reduce import Reduce, dims_of
from ..indexing.masking import where
from ..linalg.eigen import svdvals
from ..linalg.lapack import check_floating, check_matrix, check_square, check_tensor
from ..linalg.linalg import inv_ex
from ..tensor.rules import split_among_ties, with_reduced_dims
from ..views.complex_views import conj, real

# ---- Vector norms, as reductions ---------------------------------------------------------------------------------------


def _types(dtype: DType, wanted: DType | None) -> Types:
    operands = wanted or dtype
    return Types(operands, (operands.to_real(),))


def _is_nonzero(a: Any) -> Expr:
    nonzero = ne(a.real, 0) | ne(a.imag, 0) if isinstance(a, Complex) else ne(a, 0)
    return cast(nonzero, _real(a).dtype)


def _square(a: Any) -> Expr:
    return a.real * a.real + a.imag * a.imag if isinstance(a, Complex) else a * a


def _real(a: Any) -> Expr:
    return a.real if isinstance(a, Complex) else a


def _sum(a, b):
    return (a[0] + b[0],)


def _larger(a, b):
    return (select((b[0] < a[0]) | isnan(a[0]), a[0], b[0]),)


def _smaller(a, b):
    return (select((a[0] < b[0]) | isnan(a[0]), a[0], b[0]),)


class _Order(NamedTuple):
    """A norm as a reduction: the state of one element, how states combine, and the norm of the final state."""

    to_state: Callable[[Any], Expr]
    combine: Callable[[tuple, tuple], tuple]
    finish: Callable[[Expr], Expr] = lambda total: total
    start: float = 0.0


def norm_order(p: float) -> _Order:
    if p == 0:
        return _Order(_is_nonzero, _sum)
    if p == 1:
        return _Order(absolute, _sum)
    if p == 2:
        return _Order(_square, _sum, sqrt)
    if p == math.inf:
        return _Order(absolute, _larger)
    if p == -math.inf:
        return _Order(absolute, _smaller, start=math.inf)
    return _Order(lambda a: _power(absolute(a), p), _sum, lambda total: _power(total, 1 / p))


def _power(a: Expr, exponent: float) -> Expr:
    return pow(a, const(exponent, a.dtype))


def _norm_rule(p: float) -> Callable:
    """The derivative of a norm. A zero vector gets 0, because it has no derivative. Several largest elements share the cotangent."""

    def rule(ct, out, a, dims, keepdim):
        ct, out = with_reduced_dims(ct, dims, keepdim), with_reduced_dims(out, dims, keepdim)
        if math.isinf(p):
            size = a.abs()
            return split_among_ties(ct, (size == out) | (size.isnan() & out.isnan()), dims) * a.sgn()
        if p == 2:
            return ct * (a / out).masked_fill(out == 0, 0)
        if p < 1:
            return ct * (a.sgn() * a.abs() ** (p - 1)).masked_fill(a == 0, 0) * out ** (1 - p)
        power = a.sgn() * a.abs() ** (p - 1) if p < 2 else a * a.abs() ** (p - 2)
        is_zero = out == 0  # masked on both sides of the division, because 0 / 0 in its derivative is NaN
        return power * (ct.masked_fill(is_zero, 0) / (out ** (p - 1)).masked_fill(is_zero, 1))

    if p == 0:
        return lambda ct, out, a, dims, keepdim: None
    return (
        (lambda ct, out, a, dims, keepdim: with_reduced_dims(ct, dims, keepdim) * a.sgn()) if p == 1 else rule
    )


class Norm(Reduce):
    """A norm of this order."""

    order: float


@functools.lru_cache(maxsize=64)  # programs use few orders
def _norm_row(p: float, of_one: bool) -> Norm:
    """`of_one`: the norm of one number is computed as its absolute value, because its power may overflow."""
    order = norm_order(math.inf if of_one else p)
    row = Norm(
        "linalg_vector_norm",
        _types,
        lambda compute: ((order.start, compute.to_real()),),
        lambda a: (order.to_state(a),),
        order.combine,
        lambda state: (order.finish(state[0]),),
        cascade=order.combine is _sum,
        derivative=_norm_rule(p),
    )
    row.order = p
    return row


@public("function", name="linalg.vector_norm", out=True)
def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Compute (sum of |x| ** ord) ** (1 / ord) over `dim` (an int, several, or all).

    ord: inf is the largest |x|, -inf the smallest, 0 the number of elements that are not 0.
    Raises: RuntimeError for integers, and for an empty dim if `ord` is negative or inf.

    >>> import weft as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    check_tensor(x, "linalg.vector_norm", "x")
    if isinstance(ord, complex):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a non-complex scalar as the order of norm, not {ord}"
        )
    order = float(number(ord, "linalg_vector_norm", "ord", 2))
    check_floating(x, "linalg.vector_norm")
    _check_result_dtype(x, dtype, "linalg.vector_norm")
    if dim is not None and type(dim) is not int:
        dim = dims_of(dim, x.dim(), "linalg.vector_norm")
    row, dims = _planned_norms[x.spec, order, dim]
    return row(x, dims=dims, keepdim=keepdim, dtype=dtype)


def _plan_norm(x: Spec, order: float, dim: int | tuple[int, ...] | None) -> tuple[Reduce, tuple[int, ...]]:
    """The reduction that computes a norm, and its dims. They and their errors depend on metadata alone."""
    dims = dims_of(dim, len(x.shape), "linalg.vector_norm")
    of_one = order != 0 and math.prod([x.shape[d] for d in dims]) == 1
    if order < 0 or order == math.inf:
        _check_not_empty(x, order, dims, dim)
    return _norm_row(order, of_one), dims


_planned_norms = PlanCache(_plan_norm)


def _check_result_dtype(x: Tensor, dtype: DType | None, name: str) -> None:
    if dtype is None:
        return
    own = x.spec.dtype
    got = f"(got {LEGACY_NAMES[dtype]})"
    if dtype.category < 2:
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got {LEGACY_NAMES[dtype]}"
        )
    if own.is_complex != dtype.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got {LEGACY_NAMES[dtype]} {got}"
        )
    if promote_types(own, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({LEGACY_NAMES[own]}) should be convertible without narrowing to the "
            f"specified dtype ({LEGACY_NAMES[dtype]})"
        )


def _check_not_empty(x: Spec, ord: float, dims: Sequence[int], dim: Any) -> None:
    for each in dims:
        if x.shape[each] == 0:
            where_ = (
                f"on the dimension {each}because this dimension is empty"
                if dim is not None
                else "on an empty tensor because"
            )
            join = " and" if dim is not None else ""
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord:g} norm {where_}{join} the operation does not have an identity"
            )


# ---- Matrix norms ------------------------------------------------------------------------------------------------------


def _pair(dim: Any) -> Any:
    """An int as a tuple of one, so that the check of the number of dims refuses it."""
    return (dim,) if isinstance(dim, int) else dim


def _check_matrix_dims(A: Tensor, dim: Any) -> tuple[int, int]:
    if not isinstance(dim, (tuple, list)):
        raise wrong_type(dim, "linalg_matrix_norm", "dim", "tuple of ints", 3)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    first, second = (wrap_dim(integer(d, "linalg_matrix_norm", "dim"), A.dim()) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


@public("function", name="linalg.matrix_norm", out=True)
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """A norm of matrices that lie in two dims.

    ord: "fro" all elements as a vector; "nuc" sum, 2 and -2 largest and smallest singular value; inf and -inf
    largest and smallest sum of |row|, 1 and -1 of |column|.
    """
    name = "linalg.matrix_norm"
    check_tensor(A, name, "input")
    if ord is None:
        raise TypeError(
            "linalg_matrix_norm() received an invalid combination of arguments - got (Tensor, NoneType), but expected a "
            "Number or str as ord"
        )
    if ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    check_floating(A, name)
    check_matrix(A, name)
    first, second = _check_matrix_dims(A, dim)
    _check_result_dtype(A, dtype, name)
    if ord == "fro":
        row, dims = _planned_norms[A.spec, 2.0, (min(first, second), max(first, second))]
        return row(A, dims=dims, keepdim=keepdim, dtype=dtype)
    if ord in ("nuc", 2, -2):
        A = A if dtype is None else A.to(dtype)
        others = [d for d in range(A.dim()) if d not in (first, second)]
        values = svdvals(A.permute((*others, first, second)))
        result = values.sum(-1) if ord == "nuc" else _extreme(values, -1, ord > 0)
        return _keep(result, sorted((first, second))) if keepdim else result
    summed, chosen = (second, first) if abs(ord) == math.inf else (first, second)
    sums = vector_norm(A, 1, (summed,), keepdim, dtype=dtype)
    return _extreme(sums, chosen if keepdim or chosen < summed else chosen - 1, ord > 0, keepdim)


def _extreme(values: Tensor, dim: int, largest: bool, keepdim: bool = False) -> Tensor:
    if largest and values.shape[dim] == 0:  # the norm of an empty matrix is 0
        return values.sum(dim, keepdim=keepdim)
    return values.amax(dim, keepdim=keepdim) if largest else values.amin(dim, keepdim=keepdim)


def _keep(result: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in dims:
        result = result.unsqueeze(dim)
    return result


@public("function", name="linalg.norm", out=True)
def linalg_norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The vector norm of all elements, or of `dim` if that is one; a matrix norm if `dim` is two, or `ord` asks for it."""
    check_tensor(A, "linalg.norm", "input")
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if A.dim() not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
            )
        if A.dim() == 1 and not isinstance(ord, str):
            return vector_norm(A, ord, None, keepdim, dtype=dtype)
        return matrix_norm(A, ord, (-2, -1), keepdim, dtype=dtype)
    if not isinstance(ord, str) and (isinstance(dim, int) or len(dim) == 1):
        return vector_norm(A, ord, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, _pair(dim), keepdim, dtype=dtype)


@public("function method", out=True)
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    """Compute the older form of the norms: a vector norm of order `p` over `dim`, "nuc" for the nuclear norm."""
    check_tensor(input, "norm", "input")
    if p is None or p == "fro":
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if isinstance(p, str):
        return matrix_norm(
            input, p, tuple(range(input.dim())) if dim is None else _pair(dim), keepdim, dtype=dtype
        )
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


@public("function", out=True)
def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the vector norm of order 2 over one or two dims."""
    return vector_norm(input, 2, dim, keepdim)


@public("function", out=True)
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """Return the sum of the singular values."""
    return matrix_norm(input, "nuc", _pair(dim), keepdim)


@public("function", name="linalg.cond", out=True, autocast="raise")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """Return the condition numbers: the ratio of largest and smallest singular value, or norm(A, p) * norm(inv(A), p).

    inf for a singular matrix. Shapes: [..., m, n] -> [...]; m = n unless p is None, 2 or -2.
    """
    check_tensor(A, "linalg.cond", "input")
    if A.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p in (None, 2, -2):
        values = svdvals(A)
        if A.numel() == 0:
            return values.new_zeros(A.shape[:-2])
        largest, smallest = values.select(-1, 0), values.select(-1, -1)
        return smallest / largest if p == -2 else largest / smallest
    check_square(A, f"linalg.cond(ord={p})")
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if A.numel() == 0:
        return A.abs().new_zeros(A.shape[:-2])
    inverse, info = inv_ex(A)
    singular = (info != 0).unsqueeze(-1).unsqueeze(-1)
    result = matrix_norm(A, p) * matrix_norm(where(singular, math.inf, inverse), p)
    return result if p == "nuc" else result.nan_to_num(math.inf, math.inf, -math.inf)


# ---- Distances and bounds ------------------------------------------------------------------------------------------------


@public("function method", out=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the vector norm of order `p` of input - other."""
    check_tensor(input, "dist", "input")
    check_tensor(other, "dist", "other", 2)
    return _dist(input, other, p)


def _dist_rule(ct, out, input, other, p):
    pulled = _norm_rule(float(p))(ct, out, input - other, None, False)
    return pulled, None if pulled is None else -pulled


@custom_vjp(joint=_dist_rule)
def _dist(input: Tensor, other: Tensor, p: float) -> Tensor:
    return vector_norm(input - other, p)


@public("function method inplace", out=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale each slice along `dim` down to a vector norm of at most `maxnorm`.

    >>> import weft as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    check_tensor(input, "renorm", "input")
    if isinstance(p, complex):
        raise TypeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex) or not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    dim = wrap_dim(dim, input.dim())
    others = tuple(d for d in range(input.dim()) if d != dim)
    return _renorm(input, p, others, maxnorm)


def _renorm_rule(ct, out, input, p, dims, maxnorm):
    """Slices that keep their size pass the gradient on without a product with `maxnorm`, because inf * 0 would be NaN."""
    sizes = vector_norm(input, p, dims, keepdim=True)
    inverse = 1 / (sizes + _BELOW)
    pulled = _norm_rule(float(p))(real(conj(input) * ct).sum(dims, keepdim=True), sizes, input, dims, True)
    return where(sizes > maxnorm, (maxnorm * inverse * (ct - inverse * pulled)).to(ct.dtype), ct)


_BELOW = 1e-7  # PyTorch's constant, which keeps the result just below the bound


@custom_vjp(_renorm_rule, node_name="RenormBackward0")
def _renorm(input: Tensor, p: float, dims: tuple[int, ...], maxnorm: float) -> Tensor:
    sizes = vector_norm(input, p, dims, keepdim=True)
    return input.contiguous() * where(sizes > maxnorm, maxnorm / (sizes + _BELOW), 1.0).to(sizes.dtype)


show_out("norm")
