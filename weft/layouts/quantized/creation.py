"""The functions that make quantized tensors."""

from __future__ import annotations

from typing import Any

from ...core.dtype import LEGACY_NAMES, QUANTIZED, DType, float32, int8, int32, uint8
from ...core.tensor import Tensor
from ...ops.creation.creation import empty as new_empty
from ...ops.elementwise.qparams import QParams
from .numbers import RANGES
from .quantizers import checked_channels, quantized_dtype
from .ranges import dynamic_qparams, optimized_range
from .tensors import BITS, is_quantized, quantize, quantized, quantizer_of

# ---- From numbers --------------------------------------------------------------------------------------------------------


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: DType) -> Any:
    """Return a quantized tensor with one scale and zero point, `(integer - zero_point) * scale`; for a list, a list.

    dtype: quint8, qint8, qint32, quint4x2 or quint2x4.

    >>> import weft as torch
    >>> torch.quantize_per_tensor(torch.tensor([0.5, -1.0]), scale=0.25, zero_point=8, dtype=torch.quint8)
    tensor([ 0.5000, -1.0000], size=(2,), dtype=torch.quint8,
           quantization_scheme=torch.per_tensor_affine, scale=0.25, zero_point=8)
    """
    if isinstance(input, (list, tuple)):
        each = zip(input, scale.tolist(), zero_point.tolist(), strict=True)
        return [quantize_per_tensor(x, own, point, dtype) for x, own, point in each]
    by = QParams(_number(scale, float), _number(zero_point, int))
    _check(input, dtype)
    low, high = _range(dtype)
    if not low <= by.zero_point <= high:
        side = "above upper" if by.zero_point > high else "below lower"
        raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {by.zero_point} is {side} bound.")
    return quantize(input, by, dtype)


def _number(value: Any, kind: type) -> Any:
    return kind(value.item() if isinstance(value, Tensor) else value)


def _range(dtype: DType) -> tuple[int, int]:
    return (0, 2 ** BITS[dtype] - 1) if dtype in BITS else RANGES[QUANTIZED[dtype]]


def _check(input: Tensor, dtype: DType) -> None:
    if dtype not in QUANTIZED:
        raise RuntimeError(f"ScalarType {LEGACY_NAMES.get(dtype, dtype)} is not supported in new_qtensor.")
    if is_quantized(input) or input.dtype is not float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {LEGACY_NAMES[input.dtype]}")


def quantize_per_tensor_dynamic(input: Tensor, dtype: DType, reduce_range: bool) -> Tensor:
    """Return a quantized tensor whose scale and zero point suit the numbers. dtype: quint8 or qint8.

    reduce_range: whether the integers use 7 bits, so that sums of products fit into 16 bits.
    """
    _check(input, dtype)
    if QUANTIZED[dtype] not in (uint8, int8) or dtype in BITS:
        raise RuntimeError(
            f"dtype {LEGACY_NAMES[dtype]} not supported: quantize_per_tensor_dynamic makes quint8 or qint8"
        )
    return quantize(input, dynamic_qparams(input.detach(), QUANTIZED[dtype], reduce_range), dtype)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType
) -> Tensor:
    """Return a quantized tensor with a scale and a zero point for each index of dim `axis`.

    Zero points that are floats make a tensor of the scheme torch.per_channel_affine_float_qparams.

    >>> import weft as torch
    >>> x = torch.quantize_per_channel(torch.ones(2, 1), torch.tensor([0.5, 0.25]), torch.tensor([0, 0]), 0, torch.qint8)
    >>> x.int_repr().flatten()
    tensor([2, 4], dtype=torch.int8)
    """
    _check(input, dtype)
    quantizer = checked_channels(scales, zero_points, axis, input.shape)
    low, high = _range(dtype)
    if not quantizer.has_floats:
        if dtype in BITS:
            raise RuntimeError(
                f"quantize_per_channel: {dtype} needs zero points that are floats: write zero_points.float()"
            )
        if ((zero_points < low) | (zero_points > high)).any():
            raise RuntimeError(
                f"quantize_per_channel: a zero_point is out of the range {low} to {high} of {dtype}"
            )
    return quantize(input, quantizer, dtype)


# ---- From integers -------------------------------------------------------------------------------------------------------


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """Return a quantized tensor of integers (uint8, int8 or int32), in new memory."""
    return quantized(input.clone(), QParams(float(scale), int(zero_point)), _quantized_dtype(input))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """Return a quantized tensor of integers (uint8, int8 or int32), in new memory."""
    quantizer = checked_channels(scale, zero_point, axis, input.shape)
    return quantized(input.clone(), quantizer, _quantized_dtype(input))


def _quantized_dtype(integers: Tensor) -> DType:
    if integers.dtype not in (uint8, int8, int32):
        raise RuntimeError(
            f"Creation of quantized tensor requires quantized dtype like torch.quint8: its integers are uint8, int8 or int32, "
            f"not {LEGACY_NAMES[integers.dtype]}"
        )
    found = quantized_dtype(integers.dtype)
    assert found is not None
    return found


# ---- Without numbers -----------------------------------------------------------------------------------------------------


def _empty(size: Any, quantizer: Any, dtype: DType | None, device: Any, memory_format: Any) -> Tensor:
    if dtype not in QUANTIZED:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    assert dtype is not None
    stored = QUANTIZED[dtype]
    if dtype in BITS:
        numel = 1
        for each in size:
            numel *= each
        return quantized(
            new_empty(-(-numel * BITS[dtype] // 8), dtype=stored, device=device), quantizer, dtype, size
        )
    integers = new_empty(size, dtype=stored, device=device)
    if memory_format is not None:
        integers = integers.contiguous(memory_format=memory_format)
    return quantized(integers, quantizer, dtype)


def _sizes(size: tuple) -> tuple:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _empty_affine_quantized(
    *size: Any,
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A quantized tensor whose integers are not set."""
    quantizer = QParams(_number(scale, float), _number(zero_point, int))
    return _empty(_sizes(size), quantizer, dtype, device, memory_format)


def _empty_per_channel_affine_quantized(
    *size: Any,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A quantized tensor with parameters for each channel, whose integers are not set."""
    sizes = _sizes(size)
    quantizer = checked_channels(scales, zero_points, axis, sizes)
    return _empty(sizes, quantizer, dtype, device or scales.device, memory_format)


def empty_quantized(
    size: Any,
    qtensor: Tensor,
    *,
    dtype: DType | None = None,
    device: Any = None,
    memory_format: Any = None,
    **options: Any,
) -> Tensor:
    """A tensor with the quantizer of `qtensor`, whose integers are not set."""
    return _empty(
        size, quantizer_of(qtensor), dtype or qtensor.dtype, device or qtensor.device, memory_format
    )


# ---- Parameters ----------------------------------------------------------------------------------------------------------


def choose_qparams_optimized(
    input: Tensor, numel: int, n_bins: int, ratio: float, bit_width: int
) -> tuple[Tensor, Tensor]:
    """The most and the least number of the range that integers of `bit_width` bits represent `input` in with the least error."""
    most, least = optimized_range(input.flatten()[:numel], n_bins, ratio, bit_width)
    return input.new_tensor([most]), input.new_tensor([least])
