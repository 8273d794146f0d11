"""Solves systems of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batched import beneath
from ...core.derivative import differentiate, nondifferentiable
from ...core.dtype import LEGACY_NAMES
from ...core.iteration import broadcast_shapes
from ...core.layout import contiguous_format
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec
from ...core.tensor import Tensor, own_dim, wrap_dim
from ...families.array_op import host_array
from ...families.custom_vjp import custom_vjp
from . import device_plans, native, stacks
from .lapack import (
    LinAlgError,
    broadcast_columns,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    check_supported,
    check_tensor,
    columns,
    columns_like,
    each,
    first_failure,
    first_matrix,
    infos_spec,
    matrix_op,
    routine,
    rows,
)
from .matmul import matmul

# ---- Linear equations ------------------------------------------------------------------------------------------------

SolveEx = return_type("linalg_solve_ex", ("result", "info"))
TriangularSolve = return_type("triangular_solve", ("solution", "cloned_coefficient"))


@matrix_op
def _solve(a: np.ndarray, b: np.ndarray) -> tuple[Tensor, Tensor]:
    if stacks.beats_numpy(a, b):
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        solution = stacks.inside_out(b, batch)
        infos = stacks.solve(stacks.inside_out(a, batch), solution).reshape(batch)
        return columns(stacks.outside_in(solution)), rows(infos)
    try:
        solution, infos = np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        solution, infos = solve_each(a, b)
    return columns(solution), rows(infos)


_solve.on_memory(native.solve_plan)
_solve.on_device(device_plans.solve_plan)


@_solve.spec_rule
def _solve_specs(a: Spec, b: Spec) -> tuple[Spec, ...]:
    return broadcast_columns(a, b), infos_spec(a.shape[:-2])


def solve_each(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solutions, of singular matrices with inf and NaN, and LAPACK's infos: 0, or the first pivot that is zero."""
    batch, factor = a.shape[:-2], routine("getrf", a.dtype)
    factors, pivots, infos = np.empty_like(a), np.empty(a.shape[:-1], np.int32), np.zeros(batch, np.int32)
    for i in each(batch):
        factors[i], pivots[i], infos[i] = factor(a[i])
    return _from_factors(factors, pivots, b, 0), infos


def _from_factors(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, trans: int) -> np.ndarray:
    """Solutions from LU factors and pivots that count from 0; `trans` as in LAPACK."""
    batch = np.broadcast_shapes(factors.shape[:-2], pivots.shape[:-1], b.shape[:-2])
    factors, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (factors, b))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    # `stacks.permute` expects this, and all factorizations give it.
    falling = pivots >= np.arange(pivots.shape[-1])
    if trans == 0 and stacks.beats_scipy(factors, b) and falling.all():
        inner, result = stacks.inside_out(factors, batch), stacks.inside_out(b, batch)
        stacks.permute(result, np.moveaxis(pivots, -1, 0))
        stacks.substitute(inner, result, upper=False, unitriangular=True)
        stacks.substitute(inner, result, upper=True)
        return stacks.outside_in(result)
    solution = np.empty_like(b)
    if b.size:
        solve = routine("getrs", b.dtype)
        for i in each(batch):
            solution[i] = solve(factors[i], pivots[i], b[i], trans=trans)[0]
    return solution


def is_vector(A: Spec, B: Spec) -> bool:
    """Whether B is one vector for each matrix of A."""
    return len(B.shape) == 1 or B.shape == A.shape[:-1]


def _checked_solve(A: Tensor, B: Tensor, left: bool, name: str) -> tuple[Tensor, Tensor]:
    check_tensor(A, name)
    check_tensor(B, name, "B", 2)
    check_floating(A, "linalg.solve", low_precision=False)
    check_same_dtype(A, B, "linalg.solve")
    check_square(A, "linalg.solve")
    if is_vector(A.spec, B.spec):
        if not left:
            raise RuntimeError(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                "linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        _check_equation(A, B.unsqueeze(-1), True, "linalg.solve")
    else:
        check_matrix(B, "linalg.solve", "B")
        _check_equation(A, B, left, "linalg.solve")
    return _linalg_solve_ex(A, B, left)


def _solve_rule(ct, out, A, B, left, *, specs, wanted):
    """The formulas are from Giles 2008, "Collected matrix derivative results", 2.3.1."""
    right = solve_adjoint(A, ct[0], left)
    if not wanted[0]:
        return None, right, None
    solution = out[0]
    if is_vector(*specs[:2]):
        return -right.unsqueeze(-1) * solution.conj().unsqueeze(-2), right, None
    return -(matmul(right, solution.mH) if left else matmul(solution.mH, right)), right, None


def solve_adjoint(A: Tensor, B: Tensor, left: bool = True) -> Tensor:
    """X with A.mH @ X = B, or X @ A.mH = B; inf and NaN, not an error, if A is singular."""
    return solve_ex(A.mH, B, left=left)[0]


@custom_vjp(joint=_solve_rule)
def _linalg_solve_ex(A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    if is_vector(A.spec, B.spec):
        result, info = _solve(A, B.unsqueeze(-1))
        return _vector_columns(result.squeeze(-1)), info
    if left:
        return _solve(A, B)
    result, info = _solve(A.mT, B.mT)
    return result.mT, info


def _vector_columns(result: Tensor) -> Tensor:
    """PyTorch stores a stack of solution vectors as if it were a matrix, column by column."""
    return result if result.dim() < 2 else result.mT.clone(memory_format=contiguous_format).mT


def _check_equation(A: Tensor, B: Tensor, left: bool, name: str) -> None:
    broadcast_shapes(name, A.shape[:-2], B.shape[:-2])
    n = B.shape[-2 if left else -1]
    if A.shape[-1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )


def _check_solvable(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(f"{name}: {failed[0]}The solver failed because the input matrix is singular.")


@public("function", name="linalg.solve", out=True, autocast="raise")
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A @ X = B, or X @ A = B if not `left`. The leading dims broadcast.

    Shapes: A [..., n, n]; B [..., n, k], or a vector [..., n] for each matrix.
    Raises: LinAlgError naming the first singular matrix.
    """
    result, info = _checked_solve(A, B, left, "linalg.solve")
    _check_solvable(info, "torch.linalg.solve")
    return result


@public("function", name="linalg.solve_ex", out=True)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Like `linalg.solve`, with LAPACK's info (0, or the first zero pivot) instead of an error."""
    result, info = _checked_solve(A, B, left, "linalg.solve_ex")
    if check_errors:
        _check_solvable(info, "torch.linalg.solve_ex")
    return SolveEx((result, info))


@matrix_op
def _linalg_solve_triangular(
    a: np.ndarray, b: np.ndarray, *, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if stacks.beats_scipy(a, b):
        return _substitute(a, b, batch, upper, left, unitriangular)
    a, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (a, b))
    solution = np.empty_like(b)
    if b.size:
        solve = routine("trsm", b.dtype)  # unlike LAPACK's trtrs it gives inf for a zero on the diagonal
        for i in each(batch):
            solution[i] = solve(1.0, a[i], b[i], side=not left, lower=not upper, diag=unitriangular)
    return columns(solution)


def _substitute(
    a: np.ndarray, b: np.ndarray, batch: tuple[int, ...], upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    if not left:  # X @ A = B is A.mT @ X.mT = B.mT
        a, b, upper = a.swapaxes(-2, -1), b.swapaxes(-2, -1), not upper
    solution = stacks.inside_out(b, batch)
    stacks.substitute(stacks.inside_out(a, batch), solution, upper, unitriangular)
    solution = stacks.outside_in(solution)
    return columns(solution if left else solution.swapaxes(-2, -1))


_linalg_solve_triangular.on_memory(native.triangular_plan)
_linalg_solve_triangular.on_device(device_plans.triangular_plan)


@_linalg_solve_triangular.spec_rule
def _linalg_solve_triangular_specs(a: Spec, b: Spec, *, upper: bool, left: bool, unitriangular: bool) -> Spec:
    return broadcast_columns(a, b)


def _triangular_rule(ct, out, A, B, upper, left, unitriangular, *, wanted):
    right = solve_triangular(A.mH, ct, upper=not upper, left=left, unitriangular=unitriangular)
    if not wanted[0]:
        return None, right
    whole = -(matmul(right, out.mH) if left else matmul(out.mH, right))
    skipped = int(unitriangular)
    return whole.triu(skipped) if upper else whole.tril(-skipped), right


differentiate(_linalg_solve_triangular, joint=_triangular_rule)


@public("function", name="linalg.solve_triangular", out=True)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with A @ X = B (X @ A = B if not `left`) for triangular A, of which only that triangle is read.

    A zero on the diagonal gives inf or NaN, not an error. `unitriangular`: the diagonal counts as ones.
    """
    name = "linalg.solve_triangular"
    check_square(A, name)
    check_matrix(B, name, "B")
    _check_equation(A, B, left, name)
    check_supported(A, "triangular_solve_cpu")
    check_same_dtype(A, B, name)
    return _linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


@public("function method", out=True)
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The older form of `linalg.solve_triangular`: also returns a copy of A."""
    for tensor, what in ((b, "b"), (A, "A")):
        if tensor.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it has {tensor.dim()} "
                "dimensions instead"
            )
    if A.spec.dtype is not b.spec.dtype:
        raise RuntimeError(
            f"triangular_solve: Expected b and A to have the same dtype, but found {b.dtype} and {A.dtype}"
        )
    check_square(A, "triangular_solve")
    _check_equation(A, b, True, "triangular_solve")
    return TriangularSolve(_triangular_solve(b, A, upper, transpose, unitriangular))


def _old_triangular_rule(ct, out, b, A, upper, transpose, unitriangular, *, wanted):
    from_solution = None, None
    if ct[0] is not None:
        triangle = A.mT if transpose else A
        upper = upper != transpose
        from_solution = _triangular_rule(
            ct[0], out[0], triangle, None, upper, True, unitriangular, wanted=wanted[1::-1]
        )
    ct_A, ct_b = from_solution
    if ct_A is not None and transpose:
        ct_A = ct_A.mT
    if ct[1] is not None:
        ct_A = ct[1] if ct_A is None else ct_A + ct[1]
    return ct_b, ct_A, None, None, None


@custom_vjp(joint=_old_triangular_rule)
def _triangular_solve(
    b: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Tensor, Tensor]:
    triangle = A.mT if transpose else A
    solution = solve_triangular(triangle, b, upper=upper != transpose, unitriangular=unitriangular)
    cloned = A.expand((*solution.shape[:-2], *A.shape[-2:])).mT.clone(memory_format=contiguous_format).mT
    return solution, cloned


@public("function method", out=True, autocast="raise")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with A @ X = input, where `input2` is the Cholesky factor of A."""
    for tensor, what in ((input, "b"), (input2, "u")):
        if tensor.dim() < 2:
            raise RuntimeError(
                f"{what} should have at least 2 dimensions, but has {tensor.dim()} dimensions instead"
            )
    check_square(input2, "cholesky_solve")
    _check_equation(input2, input, True, "cholesky_solve")
    check_same_dtype(input, input2, "cholesky_solve", "b", "A")
    check_supported(input, "cholesky_solve_cpu")
    return _cholesky_solve(input, input2, upper=upper)


def _factor_rule(symmetric: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """The cotangent of a Cholesky factor, given that of the matrix it stands for."""
    symmetric = symmetric + symmetric.mH
    return matmul(factor, symmetric) if upper else matmul(symmetric, factor)


def _cholesky_solve_rule(ct, out, b, factor, upper, *, wanted):
    right = cholesky_solve(ct, factor, upper)
    return right, _factor_rule(-matmul(right, out.mH), factor, upper) if wanted[1] else None


@matrix_op
def _cholesky_solve(b: np.ndarray, factor: np.ndarray, *, upper: bool) -> Tensor:
    adjoint = factor.swapaxes(-2, -1).conj()
    first, second = (adjoint, factor) if upper else (factor, adjoint)
    batch = np.broadcast_shapes(factor.shape[:-2], b.shape[:-2])
    if stacks.beats_scipy(factor, b):
        result = stacks.inside_out(b, batch)
        stacks.substitute(stacks.inside_out(first, batch), result, upper=False)
        stacks.substitute(stacks.inside_out(second, batch), result, upper=True)
        return columns(stacks.outside_in(result))
    factor, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (factor, b))
    result = np.empty_like(b)
    if b.size:
        solve = routine("potrs", b.dtype)
        for i in each(batch):
            result[i] = solve(factor[i], b[i], lower=not upper)[0]
    return columns(result)


differentiate(_cholesky_solve, joint=_cholesky_solve_rule)
_cholesky_solve.on_memory(native.cholesky_solve_plan)
_cholesky_solve.on_device(device_plans.cholesky_solve_plan)


@_cholesky_solve.spec_rule
def _cholesky_solve_specs(b: Spec, factor: Spec, *, upper: bool) -> Spec:
    return broadcast_columns(factor, b)


@public("function method", out=True, autocast="raise")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is `input`."""
    check_square(input, "cholesky_inverse")
    check_supported(input, "cholesky_inverse_out_cpu")
    _check_no_zero(input.detach().diagonal(0, -2, -1))
    return _cholesky_inverse(input, upper)


def _check_no_zero(diagonal: Tensor) -> None:
    if not diagonal.device.backend.has_memory:
        return
    zero = host_array(beneath(diagonal)) == 0
    if zero.any():
        singular = zero.any(-1)
        first = int(zero[singular][0].argmax()) + 1
        raise LinAlgError(
            f"cholesky_inverse: {first_matrix(singular)}The diagonal element {first} is zero, the inversion could not be "
            "completed because the input matrix is singular."
        )


@custom_vjp(lambda ct, out, factor, upper: _factor_rule(-matmul(matmul(out, ct), out), factor, upper))
def _cholesky_inverse(factor: Tensor, upper: bool) -> Tensor:
    transposed = _potri(factor, upper=upper).mT
    if upper:
        lower = transposed.tril()
        return (lower + lower.tril(-1).mH).mT
    above = transposed.triu()
    return (above + above.triu(1).mH).mT


@matrix_op
def _potri(factor: np.ndarray, *, upper: bool) -> Tensor:
    """One triangle of the inverses; the other holds anything."""
    result = np.empty_like(factor)
    if factor.size:
        invert = routine("potri", factor.dtype)
        for i in each(factor.shape[:-2]):
            result[i] = invert(factor[i], lower=not upper)[0]
    return columns(result)


_potri.derivative = nondifferentiable
_potri.on_memory(native.cholesky_inverse_plan)
_potri.on_device(device_plans.cholesky_inverse_plan)


@_potri.spec_rule
def _potri_specs(factor: Spec, *, upper: bool) -> Spec:
    return columns_like(factor.shape, factor)


@matrix_op
def _lu_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, adjoint: bool) -> Tensor:
    return columns(_from_factors(factors, pivots - 1, b, 2 if adjoint else 0))


_lu_solve.on_memory(native.lu_solve_plan)
_lu_solve.on_device(device_plans.lu_solve_plan)


@_lu_solve.spec_rule
def _lu_solve_specs(factors: Spec, pivots: Spec, b: Spec, *, adjoint: bool) -> Spec:
    return broadcast_columns(factors, b)


# LAPACK does not check pivots. A pivot out of range would make it write outside of the matrix, so check before the call.


def _check_lu_pivots(pivots: Tensor, size: int) -> None:
    values = _values_of(pivots)
    if not values.size or 1 <= values.min() <= values.max() <= size:
        return
    bound = "greater or equal to 1" if values.min() < 1 else f"smaller or equal to LU.size(-2), {size}"
    raise RuntimeError(
        f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?"
    )


def _check_ldl_pivots(pivots: Tensor, size: int) -> None:
    """A positive pivot stands for a block of one row in D; two negative ones, side by side, for a block of two rows."""
    values = _values_of(pivots)
    if not values.size:
        return
    if not values.all() or not -size <= values.min() <= values.max() <= size:
        raise RuntimeError(
            f"Pivots given to ldl_solve must all satisfy 1 <= |pivot| <= {size}, the size of LD. Did you properly pass the "
            "result of ldl_factor?"
        )
    alone = np.zeros(values.shape[:-1], bool)  # whether the pivot before is negative and has no partner yet
    for pivot in np.moveaxis(values < 0, -1, 0):
        if (alone & ~pivot).any():
            break
        alone = pivot & ~alone
    if alone.any():
        raise RuntimeError(
            "Negative pivots given to ldl_solve must come in pairs, because two of them stand for one block of D. Did you "
            "properly pass the result of ldl_factor?"
        )


def _values_of(pivots: Tensor) -> np.ndarray:
    return host_array(beneath(pivots)) if pivots.device.backend.has_memory else np.empty(0, np.int32)


@public("function", name="linalg.lu_solve", out=True)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A @ X = B from the factors that `linalg.lu_factor(A)` gives.

    `left=False`: X @ A = B; `adjoint`: A.mH in the place of A.
    """
    name = "linalg.lu_solve"
    check_same_dtype(LU, B, name, "LU", "B")
    if pivots.spec.dtype.name != "int32":
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve", "LU")
    check_matrix(B, name, "B")
    _check_equation(LU, B, left, name)
    if LU.shape[-1] != pivots.shape[own_dim(-1, pivots.dim(), name)]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if LU.shape[:-2] != pivots.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    check_supported(LU, "lu_solve_cpu")
    _check_lu_pivots(pivots, LU.shape[-2])
    return _linalg_lu_solve(LU, pivots, B, left, adjoint)


def _lu_solve_rule(ct, out, LU, pivots, B, left, adjoint, *, wanted):
    right = linalg_lu_solve(LU, pivots, ct, left=left, adjoint=not adjoint)
    if not wanted[0]:
        return None, None, right, None, None
    # The negative cotangent of A = P @ L @ U.
    if adjoint:
        whole = matmul(out, right.mH) if left else matmul(right.mH, out)
    else:
        whole = matmul(right, out.mH) if left else matmul(out.mH, right)
    from .factorizations import lu_unpack  # late, because that file imports this one

    P, L, U = lu_unpack(LU, pivots)
    whole = matmul(P.mT, whole)
    return -(matmul(whole, U.mH).tril(-1) + matmul(L.mH, whole).triu()), None, right, None, None


@custom_vjp(joint=_lu_solve_rule)
def _linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    if left:
        return _lu_solve(LU, pivots, B, adjoint=adjoint)
    # X @ A = B is equivalent to A.mH @ X.mH = B.mH.
    return _lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH.resolve_conj()


@public("function method", out=True, autocast="raise")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The older form of `linalg.lu_solve`."""
    return linalg_lu_solve(LU_data, LU_pivots, input)


@matrix_op(node_name="NotImplemented")  # as in PyTorch
def _ldl_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, hermitian: bool) -> Tensor:
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (factors, b))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    solution = np.empty_like(b)
    if b.size:
        solve = routine("hetrs" if hermitian and b.dtype.kind == "c" else "sytrs", b.dtype)
        for i in each(batch):
            solution[i] = solve(factors[i], pivots[i], b[i], lower=True)[0]
    return columns(solution)


@_ldl_solve.spec_rule
def _ldl_solve_specs(factors: Spec, pivots: Spec, b: Spec, *, hermitian: bool) -> Spec:
    return broadcast_columns(factors, b)


@public("function", name="linalg.ldl_solve", out=True)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A @ X = B from the factors that `linalg.ldl_factor(A)` gives."""
    name = "torch.linalg.ldl_solve"
    check_square(LD, name, "LD")
    check_floating(LD, name)
    wrap_dim(-2, B.dim())
    _check_equation(LD, B, True, name)
    if pivots.dim() < 1 or pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.spec.dtype.category != 1:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {LEGACY_NAMES[pivots.spec.dtype]}")
    check_same_dtype(LD, B, name, "LD", "B")
    check_supported(LD, "ldl_solve_kernel_cpu")
    _check_ldl_pivots(pivots, LD.shape[-2])
    return _ldl_solve(LD, pivots, B, hermitian=hermitian)
