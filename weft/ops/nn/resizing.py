"""Resizes images: `interpolate` and its older names."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.arguments import number
from ...core.dtype import LEGACY_NAMES, DType, float32, float64, uint8
from ...core.layout import contiguous_format, suggested_format
from ...core.public import public
from ...core.recording import needs_recording
from ...core.registry import FUNCTIONS
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, address, empty
from ...core.warn import user_level
from ...families.array_op import on_device
from ...families.custom_vjp import custom_vjp
from ..creation.creation import check_storage_size
from ..tensor.node_names import with_node_name
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .resampling import Table, resample
from .window_views import like_format, wide

# fmt: off
_DIMS = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
# fmt: on

_WEIGHT_BITS = 22  # the most fractional bits of a weight for images of bytes


@public(name="nn.functional.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the dims behind batch and channels to `size`, or by `scale_factor`.

    mode: "nearest", "nearest-exact", "linear" (one dim), "bilinear", "bicubic" (two), "trilinear" (three) or "area".
    align_corners: the centres of the corner elements keep their place; else their outer edges do. antialias: average over all
    elements that fall into one when shrinking.

    >>> import weft as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    align_corners = bool(align_corners)
    n = input.spec.ndim - 2
    sizes, scales = _target(input, n, size, scale_factor, mode, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if not 1 <= n <= 3 or mode not in _DIMS:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported"
            f" (got {input.spec.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
            f" (got {mode})"
        )
    if n not in _DIMS[mode]:
        raise NotImplementedError(f"Got {n + 2}D input, but {mode} mode needs {_DIMS[mode][0] + 2}D input")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, sizes)
    _check_sizes(input, sizes)
    found = _resized(input, sizes, scales, mode, align_corners, antialias)
    kind = "".join(word.capitalize() for word in mode.split("-"))
    return with_node_name(found, f"Upsample{kind}{n}D{'Aa' * antialias}Backward0")


def _target(
    input: Tensor, n: int, size, scale_factor, mode: str, recompute: bool | None
) -> tuple[list, list]:
    """The sizes of the result, and the scale factors that positions are computed with (None: the ratio of sizes)."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given, what = (size, "size") if size is not None else (scale_factor, "scale_factor")
    if isinstance(given, (tuple, list)):
        if len(given) != n:
            words = "output size" if size is not None else "scale_factor"
            raise ValueError(
                f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(input.spec.shape[2:])} and {words} of {list(given)}. Please provide input tensor in (N, C, d1, d2, "
                f"...,dK) format and {words} in (o1, o2, ...,oK) format."
            )
        given = list(given)
    else:
        given = [given] * n
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if not all(map(_is_size, given)):
            raise TypeError(
                f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with "
                f"types {[type(each) for each in given]}"
            )
        return [int(each) for each in given], [None] * n
    given = [number(scale, "interpolate", "scale_factor") for scale in given]
    wanted = [float(own) * scale for own, scale in zip(input.spec.shape[2:], given, strict=True)]
    if not all(abs(size) < 2**63 for size in wanted):  # the comparison is written so that NaN fails, too
        raise RuntimeError(f"value cannot be converted to type int64_t without overflow: sizes {wanted}")
    sizes = list(map(math.floor, wanted))
    return sizes, [None] * n if recompute or mode == "area" else [float(scale) for scale in given]


def _is_size(value: Any) -> bool:
    """Whether a value is an int, or a tensor of one."""
    if isinstance(value, Tensor):
        return value.spec.dtype.is_integral
    return isinstance(value, int) or hasattr(value, "__index__")


def _check_sizes(input: Tensor, sizes: Sequence[int]) -> None:
    own = input.spec.shape
    if any(size <= 0 for size in (*own[2:], *sizes)):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(own[2:])} and output {list(sizes)}"
        )
    if own[1] == 0:
        raise RuntimeError(
            f"Non-empty tensor with possibly 0 batch size expected, but got input of size {list(own)}"
        )
    if input.spec.dtype.is_complex or input.spec.dtype.kind in "biu" and input.spec.dtype is not uint8:
        raise NotImplementedError(f"\"upsample\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    # This check comes first, because the tables of positions have these sizes.
    check_storage_size(contiguous_spec((*own[:2], *sizes), input.spec.dtype))


def _resized(input: Tensor, sizes, scales, mode: str, align_corners: bool, antialias: bool) -> Tensor:
    found = _as_bytes if input.spec.dtype is uint8 else _as_floats
    last = suggested_format(input.spec) is not contiguous_format
    # Channels last are resized as they lie in memory: [N, H, W, C].
    image = input.movedim(1, -1) if last else input
    image = found(image, 1 if last else 2, sizes, scales, mode, align_corners, antialias)
    image = image.movedim(-1, 1) if last else image
    if image._storage is input._storage:
        return image.clone(memory_format=suggested_format(input.spec))
    return like_format(image, input)


def _as_floats(image: Tensor, first: int, sizes, scales, mode: str, align_corners: bool, antialias: bool):
    dtype, nearest = image.spec.dtype, mode in _NEAREST
    # The gradient of an element that is chosen often is a long sum, which narrow floats would round at each step.
    found = image if nearest and not needs_recording((image,)) else wide(dtype, image)[0]
    if mode == "bilinear" and not antialias:
        return _bilinear_of(found, first, sizes, scales, align_corners).to(dtype)
    # PyTorch copies a dim that keeps its size, even if the scale factor is not 1, in these modes.
    copies = antialias or mode in ("linear", "bilinear", "trilinear") or mode == "nearest" and len(sizes) == 2
    # PyTorch computes positions in the precision of the elements.
    real = np.float64 if dtype is float64 and not nearest else np.float32
    dims = list(enumerate(zip(sizes, scales, strict=True), first))
    if nearest and (factors := _factors(image, first, sizes, scales, mode)):
        return _repeated(image, first, factors)
    if nearest:
        # Choosing whole rows is cheaper than choosing elements. So dims that shrink come first and dims that grow last.
        grown = [entry for entry in dims if entry[1][0] > image.spec.shape[entry[0]]]
        dims = [entry for entry in dims if entry not in grown] + grown[::-1]
    else:
        dims.reverse()
    for dim, (size, scale) in dims:
        own = found.spec.shape[dim]
        spacing = _spacing(own, size, scale, align_corners, real)
        if own == size and (copies or spacing == 1):
            continue
        if nearest:
            if mode == "nearest" and len(sizes) == 2 and size == 2 * own:
                spacing = real(0.5)  # in this case PyTorch does not read the scale factor
            chosen = on_device(_NEAREST[mode](own, size, spacing), found.spec.device)
            found = found.index_select(dim, chosen)
        else:
            table = _table(own, size, spacing, align_corners, mode, antialias, found.spec.dtype)
            found = resample(found, dim, table)
    return found.to(dtype)


def _as_bytes(image: Tensor, first: int, sizes, scales, mode: str, align_corners: bool, antialias: bool):
    """Each dim, the last one first, is computed in integers and rounded to bytes. A dim that keeps its size is copied."""
    if mode in _NEAREST:
        return _as_floats(image, first, sizes, scales, mode, align_corners, antialias)
    if mode not in ("bilinear", "bicubic"):
        return _as_floats(image.to(float32), first, sizes, scales, mode, align_corners, antialias).to(uint8)
    for dim, (size, scale) in reversed(list(enumerate(zip(sizes, scales, strict=True), first))):
        own = image.spec.shape[dim]
        if own != size:
            spacing = _spacing(own, size, scale, align_corners, np.float64)
            image = resample(image, dim, _table(own, size, spacing, align_corners, mode, antialias, uint8))
    return image


def _spacing(own: int, size: int, scale: float | None, align_corners: bool, real: Any) -> Any:
    """How far apart in the input neighbours of the result are."""
    if align_corners:
        return real(own - 1) / real(size - 1) if size > 1 else real(0)
    return real(1.0 / scale) if scale else real(own) / real(size)


# ---- The nearest element ---------------------------------------------------------------------------------------------------


def _nearest(own: int, size: int, spacing: Any) -> np.ndarray:
    steps = np.arange(size).astype(spacing.dtype)
    return np.minimum(np.floor(steps * spacing), own - 1).astype(np.int64)


def _nearest_exact(own: int, size: int, spacing: Any) -> np.ndarray:
    steps = np.arange(size).astype(spacing.dtype) + spacing.dtype.type(0.5)
    return np.minimum(np.floor(steps * spacing), own - 1).astype(np.int64)


_NEAREST: dict[str, Callable[..., np.ndarray]] = {"nearest": _nearest, "nearest-exact": _nearest_exact}


def _factors(image: Tensor, first: int, sizes, scales, mode: str) -> list[int] | None:
    """How often each dim is repeated, if each grows by a power of two, whose steps are exact in every precision."""
    factors = []
    for own, size, scale in zip(image.spec.shape[first:], sizes, scales):
        factor = size // own
        exact = scale is None or scale == factor or mode == "nearest" and len(sizes) == 2 and factor == 2
        if size % own or factor & (factor - 1) or not exact:
            return None
        factors.append(factor)
    return factors


def _repeated(image: Tensor, first: int, factors: Sequence[int]) -> Tensor:
    """Repeat each element of the dims from `first` on, by one copy."""
    own = image.spec.shape
    apart, sizes, view = list(own[:first]), list(own[:first]), image
    for dim, factor in enumerate(factors, first):
        view = view.unsqueeze(2 * dim - first + 1)  # each dim before has got one behind it
        apart += [own[dim], factor]
        sizes.append(own[dim] * factor)
    return view.expand(*apart, *own[first + len(factors) :]).reshape(*sizes, *own[first + len(factors) :])


# ---- Weighted sums of neighbours -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64, typed=True)
def _table(
    own: int, size: int, spacing: Any, align_corners: bool, mode: str, antialias: bool, dtype: DType
) -> Table:
    if antialias:
        positions, weights = _antialias_taps(own, size, spacing, mode)
    elif mode == "bicubic":
        positions, weights = _cubic_taps(own, size, spacing, align_corners)
    else:
        positions, weights = _linear_taps(own, size, spacing, align_corners)
    table = _summed(own, positions, weights)
    if dtype is uint8:
        table.bits = _weight_bits(table.weights.max())
        scaled = table.weights * (1 << table.bits)
        table.weights = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int16)
    else:
        table.weights = table.weights.astype(np.float64 if dtype is float64 else np.float32)
    return table


def _summed(own: int, positions: np.ndarray, weights: np.ndarray) -> Table:
    """The table of neighbours [taps, size]. Those beyond an edge are the element at the edge, whose weights add up."""
    size = positions.shape[1]
    first, last = positions.min(0), positions.max(0)
    count = last - first + 1
    summed = np.zeros((size, count.max()), weights.dtype)
    for position, weight in zip(positions, weights, strict=True):
        summed[np.arange(size), position - first] += weight
    return Table(own, first, count, summed)


def _weight_bits(greatest: float) -> int:
    """The number of fractional bits of the weights, so that the greatest weight fits 16 bits with its sign.

    Source: Pillow-SIMD, whose resampling of bytes PyTorch's follows.
    """
    bits = 0
    while bits < _WEIGHT_BITS - 1 and int(0.5 + greatest * (1 << bits + 1)) < 1 << 15:
        bits += 1
    return bits


# ---- Four pixels at once ---------------------------------------------------------------------------------------------------


def _bilinear_of(image: Tensor, first: int, sizes, scales, align_corners: bool) -> Tensor:
    real = np.float64 if image.spec.dtype is float64 else np.float32
    tables = []
    for own, size, scale in zip(image.spec.shape[first:], sizes, scales, strict=False):
        spacing = real(1) if own == size else _spacing(own, size, scale, align_corners, real)
        tables.append(_pairs(own, size, spacing, align_corners or own == size))
    if all(table.own == table.size for table in tables):
        return image
    return _bilinear(image, first, *tables)


class _Pairs:
    """Holds the two neighbours of each position of a resized dim [size, 2], and their weights [size, 2]."""

    __slots__ = ("own", "size", "places", "weights", "_table")

    def __init__(self, own: int, places: np.ndarray, weights: np.ndarray):
        assert ((places >= 0) & (places < own)).all()
        self.own, self.size = own, len(places)
        self.places, self.weights = np.ascontiguousarray(places), np.ascontiguousarray(weights)
        self._table: Table | None = None

    @property
    def table(self) -> Table:
        if self._table is None:
            self._table = _summed(self.own, self.places.T, self.weights.T)
        return self._table

    @property
    def transposed(self) -> Table:
        return self.table.transposed


# The type of `spacing` is that of the weights, and 0.5 in float32 equals 0.5 in float64.
@functools.lru_cache(maxsize=64, typed=True)
def _pairs(own: int, size: int, spacing: Any, align_corners: bool) -> _Pairs:
    positions, weights = _linear_taps(own, size, spacing, align_corners)
    if own == size:
        positions[1] = positions[0]
    return _Pairs(own, positions.T, weights.T)


def _bilinear_rule(ct: Tensor, out: Any, image: Tensor, first: int, rows: _Pairs, columns: _Pairs) -> Tensor:
    return resample(resample(ct, first, rows.transposed), first + 1, columns.transposed)


@custom_vjp(_bilinear_rule)
def _bilinear(image: Tensor, first: int, rows: _Pairs, columns: _Pairs) -> Tensor:
    """Resize [N, C, H, W] for `first` 2, or [N, H, W, C] for `first` 1."""
    spec, last = image.spec, first == 1
    shape = (*spec.shape[:first], rows.size, columns.size, *spec.shape[first + 2 :])
    result = empty(contiguous_spec(shape, spec.dtype, spec.device))
    if not result.spec.numel or not spec.device.backend.has_memory:
        return result
    bilinear = spec.device.backend.extras.get("bilinear")
    if bilinear is None:
        return resample(resample(image, first + 1, columns.table), first, rows.table)
    image = image.contiguous().resolve_neg()
    channels = spec.shape[3 if last else 1]
    tables = [(each.own, each.places, each.weights) for each in (rows, columns)]
    bilinear(address(result), address(image), spec.dtype, spec.shape[0], channels, last, *tables)
    return result


def _centers(size: int, spacing: Any, align_corners: bool) -> np.ndarray:
    """Where the elements of the result lie in the input."""
    steps = np.arange(size).astype(spacing.dtype)
    half = spacing.dtype.type(0.5)
    return steps * spacing if align_corners else _fused(steps + half, spacing, -half)


def _fused(a: Any, b: Any, c: Any) -> np.ndarray:
    """a * b + c rounded once, as compiled code for processors with AVX2 computes it."""
    real = np.result_type(a, b)
    if real == np.float32:
        return (np.float64(1) * a * b + c).astype(real)
    # The rounding errors of the product and the sum, by Dekker's and Knuth's algorithms.
    product = a * b
    (high_a, low_a), (high_b, low_b) = _halves(a), _halves(b)
    lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    part = total - product
    return total + ((product - (total - part)) + (c - part) + lost)


def _halves(x: Any) -> tuple[Any, Any]:
    """Split a float64 into a sum of two numbers of 26 bits."""
    scaled = x * np.float64(2**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


# Neighbours of each position: their places [taps, size] and weights [taps, size].
Taps = tuple[np.ndarray, np.ndarray]


def _linear_taps(own: int, size: int, spacing: Any, align_corners: bool) -> Taps:
    center = np.maximum(_centers(size, spacing, align_corners), 0)
    first = np.minimum(np.floor(center), own - 1)
    far = np.clip(center - first, 0, 1)
    return np.stack([first, np.minimum(first + 1, own - 1)]).astype(np.int64), np.stack([1 - far, far])


def _cubic_taps(own: int, size: int, spacing: Any, align_corners: bool) -> Taps:
    center = _centers(size, spacing, align_corners)
    first = np.minimum(np.floor(center), own - 1)
    distance = np.clip(center - first, 0, 1)
    positions = np.stack([np.clip(first + k, 0, own - 1) for k in (-1, 0, 1, 2)])
    one = spacing.dtype.type(1)
    weights = [
        _cubic_far(distance + one),
        _cubic_near(distance),
        _cubic_near(one - distance),
        _cubic_far(one - distance + one),
    ]
    return positions.astype(np.int64), np.stack(weights)


def _cubic_near(x: np.ndarray, a: float = -0.75) -> np.ndarray:
    """Return the weight of a neighbour at a distance below 1. Source: Keys 1981, cubic convolution."""
    real = x.dtype.type
    return _fused(_fused(x, real(a + 2), real(-a - 3)) * x, x, real(1))


def _cubic_far(x: np.ndarray, a: float = -0.75) -> np.ndarray:
    """Return the weight of a neighbour at a distance from 1 to 2."""
    real = x.dtype.type
    return _fused(_fused(_fused(x, real(a), real(-5 * a)), x, real(8 * a)), x, real(-4 * a))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    return np.where(x < 1, _cubic_near(x, -0.5), np.where(x < 2, _cubic_far(x, -0.5), x.dtype.type(0)))


def _antialias_taps(own: int, size: int, spacing: Any, mode: str) -> Taps:
    """Filters that are stretched when shrinking, as Pillow does it."""
    kernel, reach = (_triangle, 1) if mode == "bilinear" else (_cubic, 2)
    real = spacing.dtype.type
    one, half = real(1), real(0.5)
    support = reach * max(spacing, one)
    center = (np.arange(size).astype(real) + half) * spacing
    first = np.maximum((center - support + half).astype(np.int64), 0)
    counts = np.minimum((center + support + half).astype(np.int64), own) - first
    taps = np.arange(counts.max())[:, None]
    shrink = one / spacing if spacing >= 1 else one
    weights = kernel(((taps + first).astype(real) - center + half) * shrink)
    weights = np.where(taps < counts, weights, real(0))
    total = functools.reduce(np.add, weights)  # in this order, as PyTorch adds them up
    return np.minimum(first + taps, own - 1), weights / total


# ---- Older names -----------------------------------------------------------------------------------------------------------


def _interpolate() -> Callable:
    return FUNCTIONS["nn.functional.interpolate"]  # the public one, which asks for rules of layouts


@public(name="nn.functional.upsample")
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Compute the same as `interpolate`, whose older name this is."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=user_level(),
    )
    return _interpolate()(input, size, scale_factor, mode, align_corners)


@public(name="nn.functional.upsample_nearest")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize as `interpolate` by the nearest element."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=user_level(),
    )
    return _interpolate()(input, size, scale_factor, mode="nearest")


@public(name="nn.functional.upsample_bilinear")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize as `interpolate` bilinearly with aligned corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=user_level(),
    )
    return _interpolate()(input, size, scale_factor, mode="bilinear", align_corners=True)
