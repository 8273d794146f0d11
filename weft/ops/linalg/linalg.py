"""Computes determinants, inverses, powers and other functions of matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.arguments import number
from ...core.batched import beneath
from ...core.derivative import differentiate
from ...core.dtype import LEGACY_NAMES, bool_
from ...core.layout import contiguous_format
from ...core.outputs import write_out
from ...core.public import public
from ...core.registry import add_function
from ...core.return_types import return_type
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, wrap_dim
from ...engine.complexes import Complex
from ...families.array_op import host_array, on_device
from ...families.custom_vjp import custom_vjp
from ...families.monoid_op import Types
from ...families.reduce import Reduce, single_dim
from ..assembly.copying import clone
from ..assembly.joining import cat
from ..indexing.masking import where
from ..views.broadcasting import broadcast_tensors
from ..views.views import owned
from . import device_plans, native, stacks
from .eigen import eigh, eigvalsh, linalg_svd, svdvals
from .equations import linalg_solve, solve_adjoint, solve_each
from .lapack import (
    LinAlgError,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    check_supported,
    check_tensor,
    columns,
    columns_like,
    eye_like,
    first_failure,
    infos_spec,
    matrix_op,
    real_like,
    rows,
)
from .matmul import matmul, mm

add_function("linalg.LinAlgError", LinAlgError)

# ---- Determinants ----------------------------------------------------------------------------------------------------

Slogdet = return_type("linalg_slogdet", ("sign", "logabsdet"))
OldSlogdet = return_type("slogdet", ("sign", "logabsdet"))


@matrix_op
def _linalg_det(a: np.ndarray) -> Tensor:
    if stacks.beats_numpy(a):
        return _det_of(*stacks.triangle(stacks.inside_out(a, a.shape[:-2])))
    return rows(np.linalg.det(a))


def _det_of(diagonal: np.ndarray, swapped: Any) -> Tensor:
    """The determinants from the diagonals [n, *stack] of U, and -1 where an odd number of rows was swapped."""
    return rows((diagonal.prod(0) * swapped).astype(diagonal.dtype))


def _det_plan(a: Spec) -> Callable | None:
    triangle = native.triangle_plan(a)
    return None if triangle is None else lambda a: _quietly(_det_of, *triangle(a))


_linalg_det.on_memory(_det_plan)
_linalg_det.on_device(device_plans.det_plan)


@_linalg_det.spec_rule
def _linalg_det_specs(a: Spec) -> Spec:
    return contiguous_spec(a.shape[:-2], a.dtype)


def _det_rule(ct, out, a):
    """Jacobi's formula: the cofactors, which are conj(det) * inv(A).mH if there is an inverse."""
    # The determinant of a nearly singular matrix consists of rounding errors. They cancel with those of the inverse if both come
    # from the same LU factors. Therefore compute the determinant again, of A.mH, whose factors the solution below uses.
    conjugate = det(a.mH)
    if not a.spec.device.backend.has_memory or host_array(beneath(conjugate)).all():
        return linalg_solve(a.mH, _diagonal(ct * conjugate, a))
    U, S, Vh = linalg_svd(a)
    ones = on_device(np.eye(S.shape[-1], dtype=bool), S.spec.device)
    # For each singular value, compute the product of the others.
    others = S.unsqueeze(-2).masked_fill(ones, 1).prod(-1)
    scale = ct * (det(U) * det(Vh)).conj()
    return matmul(U * (scale.unsqueeze(-1) * others).unsqueeze(-2), Vh)


def _diagonal(values: Tensor, a: Tensor) -> Tensor:
    """Compute values[...] times the identity, as large as the matrices of `a`."""
    return values.to(a.dtype).unsqueeze(-1).expand(a.shape[:-1]).diag_embed()


differentiate(_linalg_det, _det_rule)


@public("function method", "linalg.det", out=True)
def det(A: Tensor) -> Tensor:
    """Return the determinants: [..., n, n] -> [...].

    >>> import weft as torch
    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    check_supported(A, "lu_cpu")
    return _linalg_det(A)


@matrix_op
def _linalg_slogdet(a: np.ndarray) -> tuple[Tensor, Tensor]:
    if stacks.beats_numpy(a):
        return _slogdet_of(*stacks.triangle(stacks.inside_out(a, a.shape[:-2])))
    return _signs_and_logarithms(*np.linalg.slogdet(a))


def _slogdet_of(diagonal: np.ndarray, swapped: Any) -> tuple[Tensor, Tensor]:
    """Return the sign and the logarithm of determinants, from the same values as `_det_of`."""
    size = np.abs(diagonal)
    sign = np.sign(diagonal) if diagonal.dtype.kind == "f" else np.where(size == 0, 0, diagonal / size)
    return _signs_and_logarithms((sign.prod(0) * swapped).astype(diagonal.dtype), np.log(size).sum(0))


def _signs_and_logarithms(sign: np.ndarray, logarithm: np.ndarray) -> tuple[Tensor, Tensor]:
    if sign.dtype.kind == "f":
        sign = np.where(np.isnan(logarithm), sign.dtype.type(0), sign)  # PyTorch's sign of NaN
    return rows(sign), rows(logarithm)


def _slogdet_plan(a: Spec) -> Callable | None:
    triangle = native.triangle_plan(a)
    return None if triangle is None else lambda a: _quietly(_slogdet_of, *triangle(a))


def _quietly(function: Callable, *arrays: Any) -> Any:
    """Call a function of NumPy without its warnings, which PyTorch does not give."""
    with np.errstate(all="ignore"):
        return function(*arrays)


_linalg_slogdet.on_memory(_slogdet_plan)
_linalg_slogdet.on_device(device_plans.slogdet_plan)


@_linalg_slogdet.spec_rule
def _linalg_slogdet_specs(a: Spec) -> tuple[Spec, ...]:
    return contiguous_spec(a.shape[:-2], a.dtype), real_like(a.shape[:-2], a)


def _slogdet_rule(ct, out, a):
    ct_sign, ct_log = ct
    if a.spec.dtype.is_complex and ct_sign is not None:
        turn = (ct_sign.conj() * out[0]).imag * -1j
        ct_log = turn if ct_log is None else turn + ct_log
    return (None if ct_log is None else solve_adjoint(a, _diagonal(ct_log, a)),)


differentiate(_linalg_slogdet, joint=_slogdet_rule)


def _sign_and_logarithm(A: Tensor) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet", low_precision=False)
    return _linalg_slogdet(A)


@public("function", name="linalg.slogdet", out=True)
def linalg_slogdet(A: Tensor) -> Any:
    """Return the sign of the determinant (or its complex direction) and the logarithm of its absolute value."""
    return Slogdet(_sign_and_logarithm(A))


@public("function method", out=True)
def slogdet(input: Tensor) -> Any:
    """Compute the same as `linalg.slogdet`, whose older name this is."""
    return OldSlogdet(_sign_and_logarithm(input))


@public("function method", autocast="raise")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where that is negative, -inf where it is 0."""
    check_square(input, "linalg.slogdet")
    sign, logarithm = _sign_and_logarithm(input)
    if sign.is_complex():
        return sign.log() + logarithm
    return where(sign == -1, math.nan, logarithm)


# ---- Inverses --------------------------------------------------------------------------------------------------------

InvEx = return_type("linalg_inv_ex", ("inverse", "info"))


@matrix_op
def _linalg_inv_ex(a: np.ndarray) -> tuple[Tensor, Tensor]:
    if stacks.beats_numpy(a):
        inverse = stacks.inside_out(np.eye(a.shape[-1], dtype=a.dtype), a.shape[:-2])
        infos = stacks.solve(stacks.inside_out(a, a.shape[:-2]), inverse)
        return columns(stacks.outside_in(inverse)), rows(infos)
    infos = np.zeros(a.shape[:-2], np.int32)
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        inverse, infos = solve_each(a, np.eye(a.shape[-1], dtype=a.dtype))
    return columns(inverse), rows(infos)


_linalg_inv_ex.on_memory(native.inverse_plan)
_linalg_inv_ex.on_device(device_plans.inverse_plan)


@_linalg_inv_ex.spec_rule
def _linalg_inv_ex_specs(a: Spec) -> tuple[Spec, ...]:
    return columns_like(a.shape, a), infos_spec(a.shape[:-2])


differentiate(_linalg_inv_ex, joint=lambda ct, out, a: (-matmul(matmul(out[0].mH, ct[0]), out[0].mH),))


def _checked_inv(A: Tensor) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv", low_precision=False)
    return _linalg_inv_ex(A)


def _check_invertible(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[0]}The diagonal element {failed[1]} is zero, the inversion could not be completed because "
            "the input matrix is singular."
        )


@public("function", name="linalg.inv", out=True, autocast="raise")
def inv(A: Tensor) -> Tensor:
    """Return the inverses of square matrices: [..., n, n] -> [..., n, n].

    Raises: LinAlgError naming the first singular matrix.

    >>> import weft as torch
    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = _checked_inv(A)
    _check_invertible(info, "linalg.inv")
    return inverse


@public("function method", out=True, autocast="raise")
def inverse(input: Tensor) -> Tensor:
    """Compute the same as `linalg.inv`, whose older name this is."""
    return inv(input)


@public("function", name="linalg.inv_ex", out=True)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Invert as `linalg.inv`, with LAPACK's info (0, or the first zero pivot) instead of an error."""
    inverse, info = _checked_inv(A)
    if check_errors:
        _check_invertible(info, "linalg.inv_ex")
    return InvEx((inverse, info))


# ---- Pseudo-inverse and rank -----------------------------------------------------------------------------------------


def _check_tolerances(name: str, **tolerances: Any) -> None:
    """Raises: TypeError for a tolerance that is neither a number nor a tensor."""
    for argument, value in tolerances.items():
        if value is not None and not isinstance(value, Tensor):
            number(value, name, argument)


def _tolerance(A: Tensor, largest: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Return what counts as zero among singular values: max(atol, rtol * largest)."""
    if rtol is None:
        eps = float(np.finfo(A.spec.dtype.to_real().numpy).eps) * max(A.shape[-2:])
        rtol = eps if atol is None else _where_positive(atol, eps)
    if not isinstance(rtol, Tensor):
        return _at_least(rtol * largest, atol)
    return _at_least(rtol.to(largest.dtype).unsqueeze(-1) * largest, atol)


def _where_positive(atol: Any, eps: float) -> Any:
    """The default rtol: 0 where an absolute tolerance is given."""
    if not isinstance(atol, Tensor):
        return 0.0 if atol > 0 else eps
    return (atol <= 0).to(atol.dtype) * eps


def _at_least(tolerance: Tensor, atol: Any) -> Tensor:
    if atol is None:
        return tolerance
    if not isinstance(atol, Tensor):
        return tolerance.clamp(min=float(atol))
    return tolerance.maximum(atol.to(tolerance.dtype).unsqueeze(-1))


@public("function", name="linalg.pinv", out=True)
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """Return the Moore-Penrose inverses: [..., m, n] -> [..., n, m].

    Singular values up to max(atol, rtol * the largest) count as zero; `rcond` is the older name of `rtol`.
    """
    check_tensor(A, "linalg.pinv")
    dtype = A.spec.dtype
    if A.dim() < 2 or dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise RuntimeError(
            f"linalg.pinv({LEGACY_NAMES[dtype]}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    _check_tolerances("linalg.pinv", rcond=rcond, atol=atol, rtol=rtol)
    rtol = rcond if rtol is None else rtol
    return _linalg_pinv(A, atol, rtol, hermitian)


def pinv_rule(ct: Tensor, inverse: Tensor, A: Tensor) -> Tensor:
    """The formulas are from Golub and Pereyra 1973, "The differentiation of pseudo-inverses"."""
    adjoint, ct_adjoint = inverse.mH, ct.mH
    half = matmul(ct_adjoint, inverse)  # the parts that leave the ranges of A and of A.mH
    first = matmul(half - matmul(A, matmul(inverse, half)), adjoint)
    half = matmul(inverse, ct_adjoint)
    second = matmul(adjoint, half - matmul(matmul(half, inverse), A))
    return first + second - matmul(matmul(adjoint, ct), adjoint)


@custom_vjp(lambda ct, out, A, atol, rtol, hermitian: pinv_rule(ct, out, A))
def _linalg_pinv(A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    if A.numel() == 0:
        return A.new_zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    if hermitian:
        values, vectors = eigh(A)
        size = values.abs()
        left, right = vectors, vectors
    else:
        vectors, values, others = linalg_svd(A, False)
        size, left, right = values, others.mH, vectors
    largest = size.amax(-1, keepdim=True)
    inverted = (size > _tolerance(A, largest, atol, rtol)).to(values.dtype) / values
    inverted = inverted.masked_fill(values == 0, 0)
    return matmul(left * inverted.unsqueeze(-2), right.mH)


@public("function method", autocast="raise")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Invert as `linalg.pinv`: its older form."""
    return pinv(input, rcond)


@public("function", name="linalg.matrix_rank", out=True, autocast="raise")
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above max(atol, rtol * the largest); `tol` is the older name of `atol`."""
    check_tensor(input, "linalg.matrix_rank", "input")
    if input.spec.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise RuntimeError("This function doesn't handle types other than float and double")
    check_matrix(input, "torch.linalg.matrix_rank", "input")
    _check_tolerances("linalg.matrix_rank", tol=tol, atol=atol, rtol=rtol)
    for value, what in ((atol, "atol"), (rtol, "rtol"), (tol, "tol")):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(f"torch.linalg.matrix_rank: {what} tensor of complex type is not supported.")
    if tol is not None:
        atol, rtol = tol, 0.0
    if input.numel() == 0:
        return on_device(np.zeros(input.shape[:-2], np.int64), input.spec.device)
    size = eigvalsh(input).abs() if hermitian else svdvals(input)
    return (size > _tolerance(input, size.amax(-1, keepdim=True), atol, rtol)).sum(-1)


# ---- Powers, products, exponentials -----------------------------------------------------------------------------------


@public("function method", "linalg.matrix_power", out=True, autocast="lower")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Multiply matrices by themselves n times; for negative n their inverses."""
    check_square(input, "linalg.matrix_power", "A")
    if not -(2**63) <= n < 2**63:
        raise ValueError(f"Overflow when unpacking long long: linalg.matrix_power of n = {n}")
    if n == 0:
        return _identities(input)
    if n == 1:
        return clone(input, memory_format=contiguous_format)
    if n < 0:
        input, n = inv(input), -n
    return _power(input, n)


@custom_vjp(lambda ct, out, like: ct.new_zeros(ct.shape), node_name="CopyBackwards")
def _identities(like: Tensor) -> Tensor:
    identity = eye_like(like)
    return owned(identity.expand(like.shape).contiguous())


def _power(a: Tensor, n: int) -> Tensor:
    if n == 1:
        return a
    half = _power(matmul(a, a), n // 2)
    return matmul(half, a) if n & 1 else half


@functools.lru_cache(maxsize=64)
def _best_order(sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The products of the cheapest way to multiply matrices [s0, s1], [s1, s2], ...: dynamic programming.

    (i, k) stands for the product of what begins with matrix i and what begins with matrix k; inner products come first.
    """
    n = len(sizes) - 1
    size = np.array(sizes, float)
    costs, splits = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1), int)  # of the matrices i to j - 1
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            ways = costs[i, i + 1 : j] + costs[i + 1 : j, j] + size[i] * size[i + 1 : j] * size[j]
            best = int(ways.argmin())
            costs[i, j], splits[i, j] = ways[best], i + 1 + best
    order, ranges = [], [(0, n)]
    while ranges:
        i, j = ranges.pop()
        if j - i > 1:
            k = int(splits[i, j])
            order.append((i, k))
            ranges += [(i, k), (k, j)]
    return tuple(reversed(order))


def _chain(matrices: Sequence[Tensor]) -> Tensor:
    products = list(matrices)  # at i: the product that begins with matrix i, as far as it is done
    for i, k in _best_order((matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices))):
        products[i] = mm(products[i], products[k])
    return products[0]


@public("function", name="linalg.multi_dot", autocast="lower")
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Return the product of two or more matrices in the order with the fewest multiplications.

    The first and the last may be vectors: a row and a column.
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, tensor in enumerate(tensors):
        allowed = (1, 2) if i in (0, len(tensors) - 1) else (2,)
        if tensor.dim() not in allowed:
            kind = "1D or 2D" if len(allowed) == 2 else "2D"
            where = {0: "the first tensor", len(tensors) - 1: "the last tensor"}.get(i, f"tensor {i}")
            raise RuntimeError(f"multi_dot(): {where} must be {kind} but got {tensor.dim()}D")
        if tensor.spec.dtype is not tensors[0].spec.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype} and tensor {i} {tensor.dtype}"
            )
    first, last = tensors[0].dim() == 1, tensors[-1].dim() == 1
    matrices = [t.unsqueeze(0) if i == 0 and first else t for i, t in enumerate(tensors)]
    matrices[-1] = matrices[-1].unsqueeze(-1) if last else matrices[-1]
    for i, (a, b) in enumerate(zip(matrices, matrices[1:], strict=False)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                f"{list(tensors[i + 1].shape)} cannot be multiplied"
            )
    shape = (() if first else matrices[0].shape[:1]) + (() if last else matrices[-1].shape[1:])
    result = _chain(matrices).reshape(tuple(shape))
    return result if out is None else write_out(out, result, "multi_dot")


# ---- Tensors as matrices -----------------------------------------------------------------------------------------------


@public("function", name="linalg.tensorinv", out=True, autocast="raise")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of `tensordot(A, ., ind)`: the first `ind` dims change places with the others."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    check_tensor(A, "linalg.tensorinv")
    if ind > A.dim():
        raise RuntimeError(f"linalg.tensorinv: ind is {ind}, but A has {A.dim()} dimensions")
    first, last = A.shape[:ind], A.shape[ind:]
    rows_, columns_ = math.prod(first), math.prod(last)
    if rows_ != columns_:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns_} != {rows_}"
        )
    return inv(A.reshape(rows_, columns_)).reshape((*last, *first))


@public("function", name="linalg.tensorsolve", out=True, autocast="raise")
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with `tensordot(A, X, X.ndim) == B`; `dims` of A are moved to its end first."""
    check_tensor(A, "linalg.tensorsolve")
    check_tensor(B, "linalg.tensorsolve", "B", 2)
    if dims is not None:
        moved = [wrap_dim(dim, A.dim()) for dim in dims]
        A = A.permute([dim for dim in range(A.dim()) if dim not in moved] + moved)
    shape = A.shape[B.dim() :]
    if B.numel() != math.prod(shape):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(shape)} != {B.numel()}"
        )
    return linalg_solve(A.reshape(B.numel(), B.numel()), B.flatten()).reshape(shape)


@public("function", name="linalg.vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 (N is by default n) of each element: [..., n] -> [..., n, N]."""
    check_tensor(x, "linalg.vander", "x")
    if x.spec.dtype is bool_:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got Bool"
        )
    x = x.reshape(1) if x.dim() == 0 else x
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1, got {count}")
    powers = x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)
    return cat([powers.new_ones((*x.shape, 1)), powers], -1)


@public("function")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element of a vector, descending unless `increasing`: [n] -> [n, N]."""
    check_tensor(x, "vander", "x")
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    count = x.numel() if N is None else N
    if count <= 1:
        return x.new_ones((x.numel(), count))
    powers = linalg_vander(x, N=count)
    return powers if increasing else powers.flip(1)


# ---- Dot products along a dim --------------------------------------------------------------------------------------------


def _conj_product(a: Any, b: Any) -> tuple:
    if isinstance(a, Complex):
        return (Complex(a.real * b.real + a.imag * b.imag, a.real * b.imag - a.imag * b.real),)
    return (a * b,)


VECDOT = Reduce(
    "linalg_vecdot",
    lambda dtype, result: Types(dtype, (dtype,)),
    lambda compute: ((0, compute),),
    _conj_product,
    lambda a, b: (a[0] + b[0],),
    cascade=True,
    derivative=(
        lambda ct, out, x, y, dims, keepdim: _along(ct, dims).conj() * y,
        lambda ct, out, x, y, dims, keepdim: _along(ct, dims) * x,
    ),
    node_name="SumBackward1",  # as in PyTorch, which multiplies first
)


def _along(ct: Tensor, dims: tuple[int, ...]) -> Tensor:
    return ct.unsqueeze(dims[0]) if dims else ct


@public("function", name="linalg.vecdot", out=True, autocast="lower")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along `dim`, those of `x` conjugated; the other dims broadcast.

    >>> import weft as torch
    >>> torch.linalg.vecdot(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    check_tensor(x, "linalg.vecdot", "x")
    check_tensor(y, "linalg.vecdot", "y", 2)
    check_floating(x, "linalg.vecdot")
    check_same_dtype(x, y, "linalg.vecdot", "x", "y")
    if x.dim() == y.dim() == 1 and x.shape != y.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(x.shape)} and src {list(y.shape)} to have the same number of "
            "elements (linalg.vecdot of vectors does not broadcast)"
        )
    x, y = broadcast_tensors(x, y)
    return VECDOT(x, y, dims=single_dim(dim, x.dim(), "linalg.vecdot"))
