"""Products of several matrices of different sizes that lie side by side: `grouped_mm`."""

from __future__ import annotations

from typing import Any

from ...core.dtype import LEGACY_NAMES, DType, bfloat16, cpp_name, float16, float32, int32
from ...core.public import public
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ..assembly.joining import cat, stack
from ..creation.creation import zeros
from .matmul import matmul


@public("function", name="_grouped_mm")
def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """Compute the same as `torch.nn.functional.grouped_mm`."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


@public(name="nn.functional.grouped_mm")
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """A product for each group, as layers with several experts need it.

    `offs[g]` is where group g ends along the dim that the groups share; rows and columns beyond the last are zeros.

    Shapes: [M, K] with groups of rows @ [G, K, N] -> [M, N]; [M, K] @ [K, N], with groups of K, -> [G, M, N];
    [G, M, K] @ [K, N] with groups of columns -> [M, N]; [G, M, K] @ [G, K, N] -> [G, M, N], without offs.

    Raises: RuntimeError for shapes that do not fit, for other dtypes than float32, bfloat16 and float16, and for matrices
    whose rows (or columns) do not begin at multiples of 16 bytes, as PyTorch does.
    """
    _check(mat_a.spec, mat_b.spec, None if offs is None else offs.spec)
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    return GROUPED(mat_a, mat_b, offs)


def _check(a: Spec, b: Spec, offs: Spec | None) -> None:
    for matrix, name in ((a, "mat_a"), (b, "mat_b")):
        if matrix.dtype not in (float32, bfloat16, float16):
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {LEGACY_NAMES[matrix.dtype]}"
            )
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    shapes = f"\ngrouped_mm: {list(a.shape)} {a.dtype} @ {list(b.shape)} {b.dtype}"
    both_flat = a.ndim == b.ndim == 2
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"contraction dimension of mat_a and mat_b must match{shapes}")
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {cpp_name(a.dtype)} != {cpp_name(b.dtype)}"
        )
    _check_layout(a)
    _check_layout(b)
    if (offs is None) != (a.ndim == b.ndim == 3):
        raise RuntimeError(
            f"Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d{shapes}"
        )
    if offs is None:
        if a.shape[0] != b.shape[0]:
            raise RuntimeError(f"batched dimension has to match{shapes}")
        return
    if offs.ndim != 1:
        raise RuntimeError("offs has to be 1D")
    if offs.dtype is not int32:
        raise RuntimeError("Offsets have to be int32")
    if not both_flat and offs.shape[0] != (a if a.ndim == 3 else b).shape[0]:
        raise RuntimeError(f"matrix batch sizes have to match: offs has {offs.shape[0]} groups{shapes}")


def _check_layout(x: Spec) -> None:
    """PyTorch's kernels want rows or columns without gaps that begin at multiples of 16 bytes."""
    for along, across in ((-1, -2), (-2, -1)):
        if x.stride[along] == 1 and x.stride[across] >= max(1, x.shape[along]):
            if x.stride[across] * x.dtype.itemsize % 16:
                raise RuntimeError(
                    f"strides should be multiple of 16 bytes: shape {list(x.shape)}, strides {list(x.stride)} elements"
                )
            return
    raise RuntimeError(
        f"Invalid strides/sizes, got {list(x.stride)} for strides and {list(x.shape)} for sizes"
    )


def _segments(offs: Tensor, size: int) -> list[tuple[int, int]]:
    """(start, length) of each group, within 0 to `size`."""
    ends = [min(max(end, 0), size) for end in offs.tolist()]
    return [(start, max(end - start, 0)) for start, end in zip([0, *ends], ends, strict=False)]


def _product(a: Tensor, b: Tensor, offs: Tensor | None) -> Tensor:
    if offs is None:
        return matmul(a, b)
    if a.dim() == b.dim() == 2:
        parts = _segments(offs, a.shape[1])
        return stack([matmul(a.narrow(1, *part), b.narrow(0, *part)) for part in parts])
    if a.dim() == 2:
        parts = _segments(offs, a.shape[0])
        products = [matmul(a.narrow(0, *part), b[g]) for g, part in enumerate(parts)]
        return _joined(products, 0, a.shape[0], b.shape[2], a)
    parts = _segments(offs, b.shape[1])
    products = [matmul(a[g], b.narrow(1, *part)) for g, part in enumerate(parts)]
    return _joined(products, 1, b.shape[1], a.shape[1], a)


def _joined(parts: list[Tensor], dim: int, size: int, across: int, like: Tensor) -> Tensor:
    """Return the groups one after the other, then zeros up to `size`."""
    missing = size - sum(part.shape[dim] for part in parts)
    if missing > 0:
        shape = (missing, across) if dim == 0 else (across, missing)
        parts = [*parts, zeros(*shape, dtype=like.dtype, device=like.device)]
    return cat(parts, dim).narrow(dim, 0, size)


def _rule_a(ct: Tensor, out: Any, a: Tensor, b: Tensor, offs: Tensor | None) -> Tensor:
    return GROUPED(ct, b.mT, offs)


def _rule_b(ct: Tensor, out: Any, a: Tensor, b: Tensor, offs: Tensor | None) -> Tensor:
    return GROUPED(a.mT, ct, offs)


@custom_vjp(_rule_a, _rule_b, None, name="grouped_mm")
def GROUPED(a: Tensor, b: Tensor, offs: Tensor | None) -> Tensor:
    """The groups' products; the derivatives are grouped products too, with the same groups."""
    return _product(a, b, offs)
