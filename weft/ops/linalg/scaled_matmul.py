"""Products of float8 matrices with scales: `scaled_mm` and `torch._scaled_mm`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ...core.dtype import DType, bfloat16, float32
from ...core.public import public
from ...core.spec import Spec
from ...core.tensor import Tensor
from .byte_product import byte_product, takes_bytes
from .matmul import matmul


class ScalingType(enum.Enum):
    """What one scale belongs to: the tensor, a row, or a block."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """In which order scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


@public("function", name="_scaled_mm")
def _scaled_mm(
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: DType | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Compute (self * scale_a) @ (mat2 * scale_b) + bias of float8 matrices, in `out_dtype` (None: that of self).

    Shapes: self [M, K], mat2 [K, N], both scales one element, or scale_a [M, 1] and scale_b [1, N]; bias [N].
    scale_result and use_fast_accum have no effect, as in PyTorch on a CPU. On NVIDIA's GPUs of compute capability 8.9 and above, tensor cores
    multiply float8_e4m3fn and float8_e5m2.

    >>> import weft as torch
    >>> a = torch.ones(2, 16).to(torch.float8_e4m3fn)
    >>> scale = torch.tensor(0.5)
    >>> torch._scaled_mm(a, a.t(), scale, scale, out_dtype=torch.bfloat16)
    tensor([[4., 4.],
            [4., 4.]], dtype=torch.bfloat16)
    """
    _check(self.spec, mat2.spec, scale_a, scale_b)
    if bias is not None and bias.numel() != mat2.shape[1]:
        raise RuntimeError(f"Bias must be size {mat2.shape[1]} but got {bias.numel()}")
    dtype = self.dtype if out_dtype is None else out_dtype
    if takes_bytes(self, mat2, scale_a, scale_b, bias):
        return byte_product(self, mat2, dtype, scale_a, scale_b, bias)
    product = matmul(self.to(float32) * scale_a, mat2.to(float32) * scale_b)
    if bias is not None:
        product = product + bias.to(float32)
    return product.to(dtype)


def _check(a: Spec, b: Spec, scale_a: Tensor, scale_b: Tensor) -> None:
    for matrix, name in ((a, "mat1"), (b, "mat2")):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat_a and mat_b shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    rows, columns = (a.shape[0], 1), (1, b.shape[1])
    is_float8 = all(matrix.dtype.is_floating_point and matrix.dtype.itemsize == 1 for matrix in (a, b))
    are_floats = scale_a.dtype is scale_b.dtype is float32
    are_single = scale_a.numel() == scale_b.numel() == 1
    are_rows = tuple(scale_a.shape) == rows and tuple(scale_b.shape) == columns
    are_rows = are_rows and scale_a.is_contiguous() and scale_b.is_contiguous()
    if is_float8 and are_floats and (are_single or are_rows):
        return
    raise ValueError(
        "Invalid scaling configuration: both matrices should be float8 and both scales float32, either of one element each or, "
        f"for rows, contiguous of shape {rows} and {columns}.\n"
        f"mat_a: {list(a.shape)} {a.dtype}, mat_b: {list(b.shape)} {b.dtype}, scale_a: {list(scale_a.shape)} {scale_a.dtype}, "
        f"scale_b: {list(scale_b.shape)} {scale_b.dtype}"
    )


@public(name="nn.functional.scaled_mm")
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: DType | None = bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """(mat_a * scale_a) @ (mat_b * scale_b) + bias of float8 matrices; the recipes say what a scale belongs to.

    Scales of a tensor or of rows work; blocks and swizzled scales raise ValueError, as PyTorch does on a CPU.
    """
    scales = [_only(name, scale) for name, scale in (("scale_a", scale_a), ("scale_b", scale_b))]
    for name, recipe in (("scale_recipe_a", scale_recipe_a), ("scale_recipe_b", scale_recipe_b)):
        kind = _only(name, recipe)
        if kind not in (ScalingType.TensorWise, ScalingType.RowWise):
            raise ValueError(
                f"Invalid scaling configuration: {name} is {kind.name}; a CPU has TensorWise and RowWise"
            )
    options: dict[str, Any] = {"bias": bias, "out_dtype": output_dtype, "use_fast_accum": use_fast_accum}
    return _scaled_mm(mat_a, mat_b, *scales, **options)


@public("function", name="_scaled_mm_v2")
def _scaled_mm_v2(
    self: Tensor,
    mat2: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: Tensor | None,
    out_dtype: DType | None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """`scaled_mm` with the numbers of recipes and swizzles, and lists of scales."""
    recipes = [[ScalingType(each) for each in recipe] for recipe in (recipe_a, recipe_b)]
    return scaled_mm(
        *(self, mat2, list(scale_a), recipes[0], list(scale_b), recipes[1]),
        bias=bias,
        output_dtype=out_dtype,
        use_fast_accum=use_fast_accum,
    )


def _only(name: str, value: Any) -> Any:
    if not isinstance(value, Sequence):
        return value
    if len(value) != 1:
        raise ValueError(f"{name}: one is expected on a CPU, not {len(value)}")
    return value[0]
