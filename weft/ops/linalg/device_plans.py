"""Plans of linear algebra by kernels of a device that has them ("triangles" among its extras), for real matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.dtype import float32, float64
from ...core.iteration import merge_dims
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty, make
from ...families.map import COPY, FILL
from .lapack import broadcast_columns, columns_like, infos_spec


def _kernels(*specs: Spec) -> Any:
    """The kernels of the device for matrices of these specs; None if it has none."""
    if specs[0].dtype not in (float32, float64) or not all(spec.numel for spec in specs):
        return None
    return specs[0].device.backend.extras.get("triangles")


def _bare(tensor: Tensor) -> Tensor:
    """The tensor outside of autograd, with no pending negation."""
    bare = make(tensor._storage, tensor._byte_offset, tensor.spec)
    return bare.resolve_neg()


def cholesky_plan(a: Spec, upper: bool) -> Callable | None:
    """Return the plan of (factor, infos)."""
    kernels = _kernels(a)
    if kernels is None:
        return None
    spec = columns_like(a.shape, a).like(device=a.device)
    infos = infos_spec(a.shape[:-2]).like(device=a.device)
    count, n, (*_, down, across) = math.prod(a.shape[:-2]), a.shape[-1], spec.byte_stride

    def run(a: Tensor) -> tuple[Tensor, Tensor]:
        own = _bare(a)
        factor = COPY.write(empty(spec), own.triu() if upper else own.tril())
        info = FILL.write(empty(infos), 0)
        steps = (across, down) if upper else (down, across)
        matrices = factor._storage.ptr, n * n * spec.dtype.itemsize, *steps
        kernels.factorize(matrices, info._storage.ptr, count, n, spec.dtype)
        return factor, info

    return run


def triangular_plan(a: Spec, b: Spec, upper: bool, left: bool, unitriangular: bool) -> Callable | None:
    """Return the plan of the solution."""
    kernels = _kernels(a, b)
    if kernels is None:
        return None
    spec = broadcast_columns(a, b).like(device=a.device)

    def run(a: Tensor, b: Tensor) -> Tensor:
        result = COPY.write(empty(spec), _bare(b).expand(spec.shape))
        triangles = _bare(a)
        if left:
            _solve(kernels, triangles, result, upper, unitriangular)
        else:  # X A = B is A.mT X.mT = B.mT
            _solve(kernels, triangles.mT, result.mT, not upper, unitriangular)
        return result

    return run


def cholesky_solve_plan(b: Spec, factor: Spec, upper: bool) -> Callable | None:
    """Return the plan of the solution."""
    kernels = _kernels(factor, b)
    if kernels is None:
        return None
    spec = broadcast_columns(factor, b).like(device=b.device)

    def run(b: Tensor, factor: Tensor) -> Tensor:
        result = COPY.write(empty(spec), _bare(b).expand(spec.shape))
        lower = _bare(factor).mT if upper else _bare(factor)
        _solve(kernels, lower, result, False, False)
        _solve(kernels, lower.mT, result, True, False)
        return result

    return run


def _solve(kernels: Any, a: Tensor, result: Tensor, upper: bool, unitriangular: bool) -> None:
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
        given.append((address, step, down, across))
    kernels.solve(*given, math.prod(sizes), n, columns, result.spec.dtype, unitriangular)
