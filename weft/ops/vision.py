"""Images: resizing, sampling at arbitrary points, grids of points."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.arguments import number
from ..core.dtype import LEGACY_NAMES, float32, float64, int64, uint8
from ..core.op import public
from ..core.spec import contiguous_spec
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..families.library import tensor_of
from ..families.step import step
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .creation import check_storage_size
from .joining import stack
from .ranges import linspace
from .rules import same, shown_as
from .windows import like_format, wide

# What an element of a resized dim is made of: positions [taps, size] and weights [taps, size] (None: 1).
Taps = tuple[np.ndarray, Any]

# fmt: off
_DIMS = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
# fmt: on


# ---- Resizing --------------------------------------------------------------------------------------------------------------


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
    align_corners: the corners' centres stay where they are, instead of their outer edges. antialias: average over all
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
    return shown_as(found, f"Upsample{kind}{n}D{'Aa' * antialias}Backward0")


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
        if not all(isinstance(each, int) or hasattr(each, "__index__") for each in given):
            raise TypeError(
                f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with "
                f"types {[type(each) for each in given]}"
            )
        return [int(each) for each in given], [None] * n
    given = [number(scale, "interpolate", "scale_factor") for scale in given]
    wanted = [float(own) * scale for own, scale in zip(input.spec.shape[2:], given, strict=True)]
    if not all(abs(size) < 2**63 for size in wanted):  # NaN is not, either
        raise RuntimeError(f"value cannot be converted to type int64_t without overflow: sizes {wanted}")
    sizes = list(map(math.floor, wanted))
    return sizes, [None] * n if recompute or mode == "area" else [float(scale) for scale in given]


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
    check_storage_size(
        contiguous_spec((*own[:2], *sizes), input.spec.dtype)
    )  # before tables of such sizes are made


def _resized(input: Tensor, sizes, scales, mode: str, align_corners: bool, antialias: bool) -> Tensor:
    dtype = input.spec.dtype
    rule = _antialias_taps if antialias else _RULES[mode]
    if rule in (_nearest_taps, _nearest_exact_taps):
        found = input
    else:
        found = input.to(float32) if dtype is uint8 else wide(dtype, input)[0]
    # PyTorch copies a dim that keeps its size, even if the scale factor is not 1, in these modes.
    copies = rule is _linear_taps or rule is _nearest_taps and len(sizes) == 2
    # PyTorch computes positions in the precision of the elements.
    real = np.float64 if dtype is float64 and not mode.startswith("nearest") else np.float32
    for dim, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        step = _step(found.spec.shape[dim], size, scale, align_corners, real)
        if size != found.spec.shape[dim] or step != 1 and not (copies or antialias):
            positions, weights = rule(found.spec.shape[dim], size, step, align_corners, mode)
            found = _combined(found, dim, positions, weights)
    if found.spec.dtype is not dtype:
        found = found.round().clamp(0, 255).to(uint8) if dtype is uint8 else found.to(dtype)
    return like_format(found.clone() if found is input else found, input)


def _step(own: int, size: int, scale: float | None, align_corners: bool, real: Any) -> Any:
    """How far apart in the input neighbours of the result are."""
    if align_corners:
        return real(own - 1) / real(size - 1) if size > 1 else real(0)
    return real(1.0 / scale) if scale else real(own) / real(size)


def _combined(input: Tensor, dim: int, positions: np.ndarray, weights: Any) -> Tensor:
    """Weighted sums of elements along a dim."""
    shape = (-1, *[1] * (input.spec.ndim - dim - 1))
    total: Any = None
    for k, chosen in enumerate(positions):
        term = input.index_select(dim, tensor_of(chosen.astype(np.int64)).to(input.spec.device))
        if weights is not None:
            weight = tensor_of(weights[k].reshape(shape), input.spec.dtype).to(input.spec.device)
            term = term * weight
        total = term if total is None else total + term
    return total


def _centers(size: int, step: Any, align_corners: bool) -> np.ndarray:
    """Where the elements of the result lie in the input."""
    steps = np.arange(size).astype(step.dtype)
    half = step.dtype.type(0.5)
    return steps * step if align_corners else (steps + half) * step - half


def _nearest_taps(own: int, size: int, step: Any, align_corners: bool, mode: str) -> Taps:
    steps = np.arange(size).astype(step.dtype)
    return np.minimum(np.floor(steps * step), own - 1)[None], None


def _nearest_exact_taps(own: int, size: int, step: Any, align_corners: bool, mode: str) -> Taps:
    steps = np.arange(size).astype(step.dtype) + step.dtype.type(0.5)
    return np.minimum(np.floor(steps * step), own - 1)[None], None


def _linear_taps(own: int, size: int, step: Any, align_corners: bool, mode: str) -> Taps:
    center = np.maximum(_centers(size, step, align_corners), 0)
    first = np.minimum(np.floor(center), own - 1)
    far = np.clip(center - first, 0, 1)
    return np.stack([first, np.minimum(first + 1, own - 1)]), np.stack([1 - far, far])


def _cubic_taps(own: int, size: int, step: Any, align_corners: bool, mode: str) -> Taps:
    center = _centers(size, step, align_corners)
    first = np.minimum(np.floor(center), own - 1)
    distance = np.clip(center - first, 0, 1)
    positions = np.stack([np.clip(first + k, 0, own - 1) for k in (-1, 0, 1, 2)])
    return positions, np.stack(_cubic_weights(distance))


def _cubic_weights(t: Any, a: float = -0.75) -> list:
    """Of the four neighbours of a point at distance t behind the second. Source: Keys 1981, cubic convolution."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: np.ndarray, a: float = -0.5) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _antialias_taps(own: int, size: int, step: Any, align_corners: bool, mode: str) -> Taps:
    """Filters that are stretched when shrinking, as Pillow does it."""
    kernel, reach = (_triangle, 1) if mode == "bilinear" else (_cubic, 2)
    stretch = max(step, step.dtype.type(1))
    support = reach * stretch
    center = (np.arange(size) + step.dtype.type(0.5)) * step
    first = np.maximum((center - support + 0.5).astype(np.int64), 0)
    counts = np.minimum((center + support + 0.5).astype(np.int64), own) - first
    taps = np.arange(counts.max())[:, None]
    weights = kernel((taps + first - center + 0.5) / stretch)
    weights = np.where(taps < counts, weights, 0)
    return np.minimum(first + taps, own - 1), weights / weights.sum(0)


_RULES: dict[str, Callable[..., Taps]] = {
    "nearest": _nearest_taps,
    "nearest-exact": _nearest_exact_taps,
    "linear": _linear_taps,
    "bilinear": _linear_taps,
    "trilinear": _linear_taps,
    "bicubic": _cubic_taps,
}


@public(name="nn.functional.upsample")
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The older name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=user_level(),
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


@public(name="nn.functional.upsample_nearest")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by the nearest element."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=user_level(),
    )
    return interpolate(input, size, scale_factor, mode="nearest")


@public(name="nn.functional.upsample_bilinear")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` bilinearly with aligned corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=user_level(),
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- Sampling at points ------------------------------------------------------------------------------------------------------

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@public(name="nn.functional.grid_sample")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of an image at the points of a grid.

    Shapes: input [N, C, H, W], grid [N, h, w, 2] -> [N, C, h, w]; or [N, C, D, H, W], [N, d, h, w, 3]. Points are (x, y)
    or (x, y, z); -1 and 1 are the image's edges, or the centres of its corner elements with `align_corners`.
    mode: "bilinear", "nearest" or "bicubic" (two dims only). padding_mode, beyond the edges: "zeros", "border" or
    "reflection".
    """
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=user_level(),
        )
    return _sampled(input, grid, mode, padding_mode, bool(align_corners))


def _grid_sampler(name: str, allowed: tuple[int, ...]) -> None:
    def function(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        if input.spec.ndim not in allowed:
            raise RuntimeError(
                f"{name}(): expected input of {allowed} dims, but got {list(input.spec.shape)}"
            )
        for value, known, what in (
            (interpolation_mode, _MODES, "mode"),
            (padding_mode, _PADDINGS, "padding_mode"),
        ):
            if not 0 <= value < len(known):
                raise RuntimeError(f"{name}(): expected {what} from 0 to {len(known) - 1}, but got {value}")
        return _sampled(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "`nn.functional.grid_sample` with modes as numbers, in the order in which it lists them."
    )
    public("function")(function)


_grid_sampler("grid_sampler", (4, 5))
_grid_sampler("grid_sampler_2d", (4,))
_grid_sampler("grid_sampler_3d", (5,))


def _check_grid(input: Tensor, grid: Tensor, mode: str) -> None:
    own, points = input.spec.shape, grid.spec.shape
    if input.spec.device is not grid.spec.device:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to be on same device, but input is on {input.spec.device} and grid is on "
            f"{grid.spec.device}"
        )
    if len(own) not in (4, 5) or len(own) != len(points):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(own)} and grid with sizes {list(points)}"
        )
    if own[0] != points[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(own)} and grid with sizes {list(points)}"
        )
    if points[-1] != len(own) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(own) - 2} in last dimension, but got grid with sizes {list(points)}"
        )
    if 0 in own[2:]:
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(own)}"
        )
    if len(own) == 5 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.spec.dtype.kind != "f":
        raise NotImplementedError(f"\"grid_sampler\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    if input.spec.dtype is not grid.spec.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {input.spec.dtype} and grid has "
            f"{grid.spec.dtype}"
        )


def _sampled(input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    _check_grid(input, grid, mode)
    dtype = input.spec.dtype
    image, points = wide(dtype, input, grid)
    batch, channels, *sizes = input.spec.shape
    places = tuple(grid.spec.shape[1:-1])
    flat = image.flatten(2)
    # Coordinates in elements, for H and W (or D, H and W), each [N, points].
    coordinates = [
        _unnormalized(points[..., -1 - k].flatten(1), size, align_corners) for k, size in enumerate(sizes)
    ]
    fold = functools.partial(_brought_inside, padding_mode=padding_mode, align_corners=align_corners)
    if mode != "bicubic":
        coordinates = [fold(each, size) for each, size in zip(coordinates, sizes, strict=True)]
    total: Any = None
    for corner in itertools.product(*(_point_taps(each, mode) for each in coordinates)):
        index: Any = 0
        weight: Any = None
        inside: Any = None
        for (position, share), size in zip(corner, sizes, strict=True):
            if mode == "bicubic":
                position = fold(position, size)
            here = (position >= 0) & (position <= size - 1)
            inside = here if inside is None else inside & here
            index = index * size + position.detach().clamp(0, size - 1).nan_to_num().to(int64)
            if share is not None:
                weight = share if weight is None else weight * share
        found = flat.gather(2, index.unsqueeze(1).expand(batch, channels, -1)).masked_fill(
            ~inside.unsqueeze(1), 0
        )
        if weight is not None:
            found = found * weight.unsqueeze(1)
        total = found if total is None else total + found
    found = total.to(dtype).view(batch, channels, *places)
    if mode == "nearest":
        found = _constant_in(found, grid)
    return shown_as(found, f"GridSampler{len(sizes)}DBackward0")


@step(same, lambda ct, out, values, grid, *, specs: ct.new_zeros(specs[1].shape))
def _constant_in(values: Tensor, grid: Tensor) -> Tensor:
    """Values that stay the same when the grid moves a little: its gradient is zero, not missing."""
    return values.detach()


def _unnormalized(points: Tensor, size: int, align_corners: bool) -> Tensor:
    return (points + 1) * ((size - 1) / 2) if align_corners else ((points + 1) * size - 1) / 2


def _brought_inside(position: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Positions beyond the edges as `padding_mode` has them."""
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        if span == 0:
            return position * 0
        distance = (position - low).abs()
        beyond = distance.fmod(span)
        odd = (distance / span).floor().remainder(2) == 1
        position = (span - beyond).where(odd, beyond) + low
    inside = position.clamp(0, size - 1)
    return inside.masked_fill(inside.isnan(), 0)


def _point_taps(position: Tensor, mode: str) -> list[tuple[Tensor, Tensor | None]]:
    """The elements that a point is made of along one dim, with their shares."""
    if mode == "nearest":
        return [(position.detach().round(), None)]
    first = position.detach().floor()
    t = position - first
    if mode == "bilinear":
        return [(first, 1 - t), (first + 1, t)]
    return [(first + k - 1, share) for k, share in enumerate(_cubic_weights(t))]


# ---- Grids of points ---------------------------------------------------------------------------------------------------------


@public(name="nn.functional.affine_grid")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The points that affine maps take a regular grid to, for `grid_sample`.

    Shapes: theta [N, 2, 3], size (N, C, H, W) -> [N, H, W, 2]; or [N, 3, 4], (N, C, D, H, W) -> [N, D, H, W, 3].
    """
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=user_level(),
        )
    if theta.spec.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.spec.dtype}")
    sizes = tuple(size)
    n = len(sizes) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {list(sizes)}."
        )
    if theta.spec.ndim != 3 or theta.spec.shape[-2:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {list(sizes)}. Got {theta.spec.shape}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(sizes)}")
    return affine_grid_generator(theta, sizes, bool(align_corners))


@public("function")
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid` without its checks."""
    batch, _, *places = size
    (matrix,) = wide(theta.spec.dtype, theta)
    axes = [_regular_points(count, matrix, align_corners) for count in places]
    coordinates = [
        axis.view(-1, *[1] * (len(places) - 1 - dim)).expand(places) for dim, axis in enumerate(axes)
    ][::-1]
    base = stack([*coordinates, (coordinates[0] * 0 + 1)], -1).reshape(1, math.prod(places), -1)
    points = base.expand(batch, -1, -1).bmm(matrix.transpose(1, 2))
    return points.view(batch, *places, len(places)).to(theta.spec.dtype)


def _regular_points(count: int, like: Tensor, align_corners: bool) -> Tensor:
    """From -1 to 1: the centres of elements, or the ends."""
    points = linspace(-1, 1, count, dtype=like.spec.dtype, device=like.spec.device)
    if count <= 1:
        return points * 0
    return points if align_corners else points * ((count - 1) / count)
