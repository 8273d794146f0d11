"""Plans of linear algebra by kernels of a device that has them ("triangles", "pivoting" and "reflections" among its extras).

Each `..._plan` takes the specs of the tensors and the static arguments of a MatrixOp, and returns a function of the tensors. It is None where
there are no kernels: then the op computes on arrays of the host. All work stays on the device, and no value is read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import complex64, complex128, float32, float64, from_numpy_dtype
from ...core.iteration import merge_dims
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty
from ...engine.matrices import Matrices
from ...families.indexed import bare
from ...families.map import COPY, FILL
from ..creation.ranges import arange
from ..indexing.masking import where
from .lapack import broadcast_columns, columns_like, identities, infos_spec


def has_kernels(*specs: Spec) -> bool:
    """Whether the device has kernels for matrices of these specs."""
    return (
        specs[0].dtype in (float32, float64, complex64, complex128)
        and all(spec.numel for spec in specs)
        and "triangles" in specs[0].device.backend.extras
    )


def kernels(name: str, tensor: Tensor) -> Any:
    return tensor.spec.device.backend.extras[name]


def new(spec: Spec, like: Tensor) -> Tensor:
    return empty(spec.like(device=like.spec.device))


def by_columns(values: Tensor) -> Tensor:
    """Return a copy of matrices, stored column by column."""
    return COPY.write(new(columns_like(values.spec.shape, values.spec), values), values)


def _no_infos(a: Tensor) -> Tensor:
    return FILL.write(new(infos_spec(a.spec.shape[:-2]), a), 0)


def matrices_of(dense: Tensor) -> Matrices:
    """Return where a dense stack of matrices is."""
    spec = dense.spec
    step = math.prod(spec.shape[-2:]) * spec.dtype.itemsize
    return Matrices(dense._storage.ptr + dense._byte_offset, step, *spec.byte_stride[-2:])


# ---- Cholesky and triangular systems -------------------------------------------------------------------------------------


def cholesky_plan(a: Spec, upper: bool) -> Callable | None:
    """Return the plan of (factor, infos)."""
    return functools.partial(_cholesky, upper=upper) if has_kernels(a) else None


def _cholesky(a: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    own = bare(a)
    factor, infos = by_columns(own.triu() if upper else own.tril()), _no_infos(a)
    *batch, n, _ = factor.spec.shape
    # The upper triangle of a Hermitian matrix is the conjugate of the lower one, transposed. So is its factor.
    matrices = matrices_of(factor.mT if upper else factor)
    kernels("triangles", a).factorize(matrices, infos._storage.ptr, math.prod(batch), n, a.spec.dtype)
    return factor, infos


def triangular_plan(a: Spec, b: Spec, upper: bool, left: bool, unitriangular: bool) -> Callable | None:
    """Return the plan of the solution."""
    if not has_kernels(a, b):
        return None
    return functools.partial(_triangular, upper=upper, left=left, unitriangular=unitriangular)


def _triangular(a: Tensor, b: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    result, triangles = _right_sides(a, b), bare(a)
    if left:
        solve_triangles(triangles, result, upper, unitriangular)
    else:  # X A = B is A.mT X.mT = B.mT
        solve_triangles(triangles.mT, result.mT, not upper, unitriangular)
    return result


def _right_sides(a: Tensor, b: Tensor) -> Tensor:
    """Return a copy of the right sides, for each matrix of the stacks broadcast."""
    spec = broadcast_columns(a.spec, b.spec)
    return COPY.write(new(spec, b), bare(b).expand(spec.shape))


def solve_triangles(
    a: Tensor, result: Tensor, upper: bool, unitriangular: bool = False, conjugated: bool = False
) -> None:
    """Replace right sides by the solutions."""
    *batch, n, columns = result.spec.shape
    a = a.expand((*batch, n, n))
    outer = [each.spec.byte_stride[:-2] for each in (a, result)]
    sizes, steps = merge_dims(batch, outer)
    if len(sizes) > 1:
        a = COPY.write(empty(contiguous_spec(a.spec.shape, a.spec.dtype, a.spec.device)), a)
        sizes, steps = merge_dims(batch, [a.spec.byte_stride[:-2], outer[1]])
    given = []
    for tensor, (step,) in zip((a, result), steps, strict=True):
        address, (down, across) = tensor._storage.ptr + tensor._byte_offset, tensor.spec.byte_stride[-2:]
        if upper:  # from the last row on
            address, down = address + (n - 1) * down, -down
            if tensor is a:
                address, across = address + (n - 1) * across, -across
        given.append(Matrices(address, step, down, across))
    count, dtype = math.prod(sizes), result.spec.dtype
    kernels("triangles", result).solve(*given, count, n, columns, dtype, unitriangular, conjugated)


def cholesky_solve_plan(b: Spec, factor: Spec, upper: bool) -> Callable | None:
    """Return the plan of the solution."""
    return functools.partial(_cholesky_solve, upper=upper) if has_kernels(factor, b) else None


def _cholesky_solve(b: Tensor, factor: Tensor, upper: bool) -> Tensor:
    result, own = _right_sides(factor, b), bare(factor)
    _solve_factors(own, result, upper)
    return result


def _solve_factors(factor: Tensor, result: Tensor, upper: bool) -> None:
    lower = factor.mT if upper else factor  # of an upper factor, whose adjoint is wanted, the conjugate
    solve_triangles(lower, result, False, conjugated=upper)
    solve_triangles(lower.mT, result, True, conjugated=not upper)


def cholesky_inverse_plan(factor: Spec, upper: bool) -> Callable | None:
    """Return the plan of the inverses."""
    return functools.partial(_cholesky_inverse, upper=upper) if has_kernels(factor) else None


def _cholesky_inverse(factor: Tensor, upper: bool) -> Tensor:
    result = identities(columns_like(factor.spec.shape, factor.spec).like(device=factor.spec.device))
    _solve_factors(bare(factor), result, upper)
    return result


# ---- LU ------------------------------------------------------------------------------------------------------------------


def lu_plan(a: Spec) -> Callable | None:
    """Return the plan of (factors, pivots, infos)."""
    return _lu if has_kernels(a) else None


def _lu(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    factors, infos = by_columns(bare(a)), _no_infos(a)
    *batch, m, n = a.spec.shape
    pivots = new(infos_spec((*batch, min(m, n))), a)
    kernels("pivoting", a).factorize(
        matrices_of(factors), pivots._storage.ptr, infos._storage.ptr, math.prod(batch), (m, n), a.spec.dtype
    )
    return factors, pivots, infos


def permutations_plan(pivots: Spec, size: int, dtype: np.dtype) -> Callable | None:
    """Return the plan of the matrices that undo the swaps of rows."""
    if "pivoting" not in pivots.device.backend.extras or not pivots.numel:
        return None
    return functools.partial(_permutations, size=size, dtype=from_numpy_dtype(dtype))


def _permutations(pivots: Tensor, size: int, dtype: Any) -> Tensor:
    """The swaps of the identity's rows, as the transposes of the results."""
    own = bare(pivots).contiguous()
    result = identities(contiguous_spec((*own.spec.shape[:-1], size, size), dtype, own.spec.device))
    _swap(result.mT, own, range(own.spec.shape[-1]))
    return result


def _swap(dense: Tensor, pivots: Tensor, swapped: range) -> None:
    """Swap rows of a dense stack of matrices by contiguous pivots."""
    *batch, rows, columns = dense.spec.shape
    kept = pivots.expand((*batch, pivots.spec.shape[-1])).contiguous()
    kernels("pivoting", dense).swap(
        matrices_of(dense),
        kept._storage.ptr + kept._byte_offset,
        (math.prod(batch), rows, columns),
        swapped,
        pivots.spec.shape[-1],
        dense.spec.dtype,
    )


def solve_plan(a: Spec, b: Spec) -> Callable | None:
    """Return the plan of (solution, infos). Where a matrix is singular, the solution has infinities and NaN."""
    return solve if has_kernels(a, b) else None


def solve(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The solution and the infos, see `solve_plan`."""
    factors, pivots, infos = _lu(a)
    result = _right_sides(a, b)
    _substitute(factors, pivots, result)
    return result, infos


def _substitute(factors: Tensor, pivots: Tensor, result: Tensor) -> None:
    """Replace right sides by solutions, from factors and contiguous pivots."""
    _swap(result, pivots, range(pivots.spec.shape[-1]))
    solve_triangles(factors, result, False, unitriangular=True)
    solve_triangles(factors, result, True)


def inverse_plan(a: Spec) -> Callable | None:
    """Return the plan of (inverse, infos)."""
    return _inverse if has_kernels(a) else None


def _inverse(a: Tensor) -> tuple[Tensor, Tensor]:
    factors, pivots, infos = _lu(a)
    result = identities(factors.spec)
    _substitute(factors, pivots, result)
    return result, infos


def lu_solve_plan(factors: Spec, pivots: Spec, b: Spec, adjoint: bool) -> Callable | None:
    """Return the plan of the solution."""
    return functools.partial(_lu_solve, adjoint=adjoint) if has_kernels(factors, b) else None


def _lu_solve(factors: Tensor, pivots: Tensor, b: Tensor, adjoint: bool) -> Tensor:
    own, swaps, result = bare(factors), bare(pivots).contiguous(), _right_sides(factors, b)
    if adjoint:
        solve_triangles(own.mT, result, False, conjugated=True)
        solve_triangles(own.mT, result, True, unitriangular=True, conjugated=True)
        _swap(result, swaps, range(swaps.spec.shape[-1])[::-1])
    else:
        _substitute(own, swaps, result)
    return result


# ---- QR ------------------------------------------------------------------------------------------------------------------


def qr_plan(a: Spec, mode: str) -> Callable | None:
    """Return the plan of (Q, R), or of (R,) for the mode "r"."""
    return functools.partial(_qr, mode=mode) if has_kernels(a) else None


def _qr(a: Tensor, mode: str) -> tuple[Tensor, ...]:
    vectors, factors = geqrf(a)
    *batch, m, n = a.spec.shape
    width = m if mode == "complete" else min(m, n)
    upper = by_columns(vectors.narrow(-2, 0, width).triu())
    if mode == "r":
        return (upper,)
    return first_columns(vectors, factors, columns_like((*batch, m, width), a.spec)), upper


def geqrf_plan(a: Spec) -> Callable | None:
    """Return the plan of (R and the vectors of reflections, their factors)."""
    return geqrf if has_kernels(a) else None


def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    vectors = by_columns(bare(a))
    *batch, m, n = a.spec.shape
    factors = new(contiguous_spec((*batch, min(m, n)), a.spec.dtype), a)
    kernels("reflections", a).factorize(
        matrices_of(vectors), factors._storage.ptr, math.prod(batch), (m, n), a.spec.dtype
    )
    return vectors, factors


def householder_product_plan(a: Spec, factors: Spec) -> Callable | None:
    """Return the plan of the first columns of Q."""
    return _householder_product if has_kernels(a, factors) else None


def _householder_product(a: Tensor, factors: Tensor) -> Tensor:
    return first_columns(by_columns(bare(a)), bare(factors).contiguous(), columns_like(a.spec.shape, a.spec))


def first_columns(vectors: Tensor, factors: Tensor, spec: Spec) -> Tensor:
    result = identities(spec.like(device=vectors.spec.device))
    reflect(vectors, factors, result, is_adjoint=False, is_identity=True)
    return result


def reflect(
    vectors: Tensor, factors: Tensor, dense: Tensor, *, is_adjoint: bool, is_identity: bool = False
) -> None:
    """Multiply a dense stack of matrices by Q, or Q.mH, from the left. vectors: dense; factors: contiguous."""
    *batch, rows, columns = dense.spec.shape
    kernels("reflections", dense).multiply(
        matrices_of(vectors),
        factors._storage.ptr + factors._byte_offset,
        factors.spec.shape[-1],
        matrices_of(dense),
        (math.prod(batch), rows, columns),
        dense.spec.dtype,
        is_adjoint=is_adjoint,
        is_identity=is_identity,
    )


def ormqr_plan(a: Spec, factors: Spec, c: Spec, left: bool, transpose: bool) -> Callable | None:
    """Return the plan of the product with the whole Q."""
    return functools.partial(_ormqr, left=left, transpose=transpose) if has_kernels(a, factors, c) else None


def _ormqr(a: Tensor, factors: Tensor, c: Tensor, left: bool, transpose: bool) -> Tensor:
    own, scales = by_columns(bare(a)), bare(factors).contiguous()
    # C Q is the adjoint of Q.mH C.mH.
    result = by_columns(bare(c if left else c.mH))
    reflect(own, scales, result, is_adjoint=transpose == left)
    return result if left else by_columns(result.mH)


# ---- Determinants --------------------------------------------------------------------------------------------------------


def _triangle(a: Tensor) -> tuple[Tensor, Tensor]:
    """The diagonals of U, and -1 where an odd number of rows was swapped, else 1."""
    factors, pivots, _ = _lu(a)
    unswapped = arange(1, a.spec.shape[-1] + 1, device=a.spec.device)
    return factors.diagonal(0, -2, -1), 1 - 2 * ((pivots != unswapped).sum(-1) % 2)


def det_plan(a: Spec) -> Callable | None:
    """Return the plan of the determinants."""
    return _det if has_kernels(a) else None


def _det(a: Tensor) -> Tensor:
    diagonal, swapped = _triangle(a)
    return diagonal.prod(-1) * swapped


def slogdet_plan(a: Spec) -> Callable | None:
    """Return the plan of (sign, logarithm of the absolute value)."""
    return _slogdet if has_kernels(a) else None


def _slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
    diagonal, swapped = _triangle(a)
    logarithm = diagonal.abs().log().sum(-1)
    sign = diagonal.sgn().prod(-1) * swapped
    if not a.spec.dtype.is_complex:
        sign = where(logarithm.isnan(), 0, sign)  # PyTorch's sign of NaN
    return sign, logarithm
