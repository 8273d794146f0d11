"""Linear layers whose weight is of small integers: a number is read as one byte or half a byte, and computed with as float32.

The integers are converted in the registers (`engine/weight_gemm.py`), and on devices without this kernel beforehand.

    int8     weight[n, k] = integers[n, k] * scales[n]
    int4     weight[n, k] = (integers[n, k] - 8) * scale + zero, with a scale and a zero for each group of terms of each column
"""

from __future__ import annotations

from ...core.dtype import DType, bfloat16, float16, float32, int8, int32, uint8
from ...core.op import Op
from ...core.public import public
from ...core.tensor import Tensor
from ...engine.weight_gemm import BLOCK
from ..assembly.joining import cat, stack
from ..creation.creation import zeros
from ..linalg.matmul import matmul

GROUPS = (32, 64, 128, 256)

# The steps that autograd records. They have no derivative, as in PyTorch, so that backward raises an error.
_INT8_STEP, _INT4_STEP = Op("_weight_int8pack_mm"), Op("_weight_int4pack_mm_for_cpu")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def _check_rows(name: str, input: Tensor, dtypes: tuple[DType, ...] = (float32, bfloat16, float16)) -> None:
    _check(input.dtype in dtypes, f"{name}: expect A to be float32, bfloat16 or float16, got {input.dtype}")
    _check(input.dim() == 2, f"{name}: expect A to be a matrix, got {input.dim()} dims")
    _check(
        input.stride(1) == 1,
        f"{name}: A must be contiguous on the last dimension, got strides {input.stride()}",
    )


def _by_kernel(kernel: str, result: Tensor, *operands: Tensor, sizes: tuple[int, ...]) -> Tensor:
    given = [result, *(each.contiguous().resolve_neg() for each in operands)]
    addresses = [each._storage.ptr + each._byte_offset for each in given]
    result.device.backend.extras[kernel](sizes, *addresses)
    return result


def _suits(kernel: str, input: Tensor, weight: Tensor) -> bool:
    return kernel in input.device.backend.extras and len(input) > 0 and weight.numel() > 0


# ---- Bytes -----------------------------------------------------------------------------------------------------------


@public("function")
def _weight_int8pack_mm(input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """input @ (mat2 * scales[:, None]).T, computed in float32.

    Shapes: [M, K], [N, K] of int8, [N] -> [M, N] of the dtype of the input.
    """
    _check_rows("_weight_int8pack_mm", input)
    _check(mat2.dtype is int8, f"_weight_int8pack_mm: expect B to be int8, got {mat2.dtype}")
    _check(mat2.is_contiguous(), "_weight_int8pack_mm: expect B to be contiguous.")
    _check(
        mat2.dim() == 2 and mat2.size(1) == input.size(1),
        f"_weight_int8pack_mm: expect B [N, {input.size(1)}], got {list(mat2.shape)}",
    )
    _check(
        scales.dim() == 1 and len(scales) == len(mat2),
        f"_weight_int8pack_mm: expect {len(mat2)} scales, got {list(scales.shape)}",
    )
    rows, single = input.detach().to(float32), scales.detach().to(float32)
    if _suits("times_bytes", input, mat2):
        sizes = (len(input), input.size(1), len(mat2))
        found = _by_kernel(
            "times_bytes", rows.new_empty(len(input), len(mat2)), rows, mat2, single, sizes=sizes
        )
    else:
        found = matmul(rows, mat2.to(float32).t()) * single
    return _INT8_STEP.recorded(found.to(input.dtype), (input, scales))


# ---- Nibbles ---------------------------------------------------------------------------------------------------------


@public("function")
def _convert_weight_to_int4pack_for_cpu(self: Tensor, innerKTiles: int) -> Tensor:  # noqa: N803 (PyTorch's name)
    """Integers from 0 to 15, two in each byte, as `_weight_int4pack_mm_for_cpu` reads them. `innerKTiles` has no meaning here.

    Of each block of 64 columns and each term, byte i of the first 16 holds columns i and i + 32, and byte i of the others columns i + 16
    and i + 48. A last block of fewer columns holds neighbours in its bytes. This is PyTorch's format for AVX-512.

    Shapes: [N, K] of int32 -> [N, K / 2] of uint8.
    """
    name = "_convert_weight_to_int4pack_for_cpu"
    _check(
        self.dtype is int32 and self.dim() == 2,
        f"{name}: expect a matrix of int32, got {self.dtype} of shape {list(self.shape)}",
    )
    columns, terms = self.shape
    _check(columns % 16 == 0, f"{name}: expect N to be dividable by 16, got {columns}")
    _check(terms % 2 == 0, f"{name}: expect K to be dividable by 2, got {terms}")
    whole = columns // BLOCK * BLOCK
    blocks = self[:whole].to(uint8).reshape(-1, 2, 2, BLOCK // 4, terms).permute(0, 4, 1, 2, 3)
    pairs = self[whole:].to(uint8).t().reshape(terms, (columns - whole) // 2, 2)
    parts = (blocks[:, :, 0] | blocks[:, :, 1] << 4, pairs[..., 0] | pairs[..., 1] << 4)
    return cat([part.reshape(-1) for part in parts]).reshape(columns, terms // 2)


def _unpacked(packed: Tensor) -> Tensor:
    """Return the integers of a packed weight, uint8 [N, K]."""
    columns, terms = packed.shape[0], 2 * packed.shape[1]
    whole = columns // BLOCK * BLOCK
    nibbles = stack((packed & 15, packed >> 4), -1)
    blocks = nibbles[:whole].reshape(-1, terms, 2, BLOCK // 4, 2).permute(0, 4, 2, 3, 1)
    pairs = nibbles[whole:].reshape(terms, columns - whole).t()
    return cat((blocks.reshape(whole, terms), pairs))


@public("function")
def _weight_int4pack_mm_for_cpu(
    self: Tensor,
    mat2: Tensor,
    qGroupSize: int,  # noqa: N803 (PyTorch's name)
    qScaleAndZeros: Tensor,  # noqa: N803 (PyTorch's name)
) -> Tensor:
    """self @ weight.T, computed in float32, where mat2 is a weight that `_convert_weight_to_int4pack_for_cpu` packed.

    Shapes: [M, K], [N, K / 2] of uint8, [K / qGroupSize, N, 2] -> [M, N] of the dtype of self.
    """
    name = "_weight_int4pack_mm_for_cpu"
    _check_rows(name, self)
    _check(mat2.dtype is uint8 and mat2.is_contiguous(), f"{name}: expect B to be uint8 and contiguous.")
    _check(
        mat2.dim() == 2 and 2 * mat2.size(1) == self.size(1),
        f"{name}: expect B [N, {self.size(1) // 2}], got {list(mat2.shape)}",
    )
    _check(qGroupSize in GROUPS, f"{name}: expect qGroupSize to be 32, 64, 128 or 256, got {qGroupSize}")
    (rows, terms), columns = self.shape, len(mat2)
    groups = terms // qGroupSize
    _check(
        terms % qGroupSize == 0 and tuple(qScaleAndZeros.shape) == (groups, columns, 2),
        f"{name}: expect qScaleAndZeros [{terms} / {qGroupSize}, {columns}, 2], got {list(qScaleAndZeros.shape)}",
    )
    values, both = self.detach().to(float32), qScaleAndZeros.detach().to(float32)
    whole = columns // BLOCK * BLOCK if _suits("times_nibbles", self, mat2) else 0
    parts = []
    if whole:
        sums = values.reshape(rows, groups, qGroupSize).sum(2)
        sizes = (rows, terms, whole, qGroupSize)
        made = zeros(rows, whole, device=self.device, dtype=float32)
        parts.append(_by_kernel("times_nibbles", made, values, mat2, both[:, :whole], sums, sizes=sizes))
    if whole < columns:
        parts.append(matmul(values, _floats(mat2, whole, qGroupSize, both)))
    return _INT4_STEP.recorded(cat(parts, 1).to(self.dtype), (self, qScaleAndZeros))


def _floats(packed: Tensor, start: int, group: int, both: Tensor) -> Tensor:
    """The weight from column `start` on, float32 [K, N - start]."""
    integers = (_unpacked(packed)[start:].to(float32) - 8).t()
    scales, shifts = both[:, start:].repeat_interleave(group, 0).unbind(2)
    return integers * scales + shifts
