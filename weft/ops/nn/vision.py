"""Images: sampling at arbitrary points, grids of points. Resizing is in `resizing.py`."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import LEGACY_NAMES, int64
from ...core.public import public
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, address, empty
from ...core.warn import user_level
from ...engine import scalar as s
from ...families.custom_vjp import custom_vjp
from ...families.map import Map, same_dtype
from ..assembly.joining import stack
from ..creation.ranges import linspace
from ..tensor.node_names import with_node_name
from .grid_corners import MOST, corners
from .window_views import wide

# ---- Sampling at points ------------------------------------------------------------------------------------------------------

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@public(name="nn.functional.grid_sample", autocast="raise")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return the values of an image at the points of a grid.

    Shapes: input [N, C, H, W], grid [N, h, w, 2] -> [N, C, h, w]; or [N, C, D, H, W], [N, d, h, w, 3]. Points are (x, y)
    or (x, y, z); -1 and 1 are the edges of the image; with `align_corners` they are the centres of its corner elements.
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
    @public("function", name=name, words={})
    def function(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        """Compute `nn.functional.grid_sample` with modes as numbers, in the order in which it lists them."""
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


_grid_sampler("grid_sampler", (4, 5))
_grid_sampler("grid_sampler_2d", (4,))
_grid_sampler("grid_sampler_3d", (5,))


def _check_grid(input: Tensor, grid: Tensor, mode: str) -> None:
    spec, points = input.spec.shape, grid.spec.shape
    if input.spec.device is not grid.spec.device:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to be on same device, but input is on {input.spec.device} and grid is on "
            f"{grid.spec.device}"
        )
    if spec[0] != points[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(spec)} and grid with sizes {list(points)}"
        )
    if points[-1] != len(spec) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(spec) - 2} in last dimension, but got grid with sizes {list(points)}"
        )
    if len(spec) not in (4, 5) or len(spec) != len(points):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(spec)} and grid with sizes {list(points)}"
        )
    if 0 in spec[2:]:
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(spec)} with "
            f"dimension {spec.index(0, 2)} being empty"
        )
    if len(spec) == 5 and mode == "bicubic":
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
    if mode == "bilinear" and max(sizes) <= MOST:
        total = _blended(flat, *corners(coordinates, sizes), True)
    else:
        total = _taps_blended(flat, coordinates, sizes, mode, fold)
    found = total.to(dtype).view(batch, channels, *places)
    if mode == "nearest":
        found = _constant_in(found, grid)
    return with_node_name(found, f"GridSampler{len(sizes)}DBackward0")


def _taps_blended(
    flat: Tensor, coordinates: Sequence[Tensor], sizes: Sequence[int], mode: str, fold: Callable
) -> Tensor:
    """The values of planes at points, put together from operations; `fold` brings a position of a bicubic tap inside."""
    positions, weights = [], []
    for corner in itertools.product(*(_point_taps(each, mode) for each in coordinates)):
        index: Any = 0
        weight: Any = None
        inside: Any = None
        for (position, share), size in zip(corner, sizes, strict=True):
            if mode == "bicubic":
                position = fold(position, size)
            here = (position >= 0) & (position <= size - 1)
            inside = here if inside is None else inside & here
            place = position.detach().clamp(0, size - 1).nan_to_num().to(int64)
            index = index * size + place.clamp(max=size - 1)  # float32 may round size - 1 up
            if share is not None:
                weight = share if weight is None else weight * share
        positions.append(index.masked_fill(~inside, -1))
        weights.append(weight)
    if mode == "nearest":
        return _elements_at(flat, positions[0])
    # Sums are fused multiply-adds in this order, as in PyTorch's compiled loop. PyTorch's bicubic loop has another order.
    return _blended(flat, stack(positions, 1), stack(weights, 1), mode == "bilinear")


def _elements_at(flat: Tensor, positions: Tensor) -> Tensor:
    """Elements of each plane, [N, C, size] and [N, points] -> [N, C, points]; 0 where a position is negative."""
    index = positions.clamp(min=0).unsqueeze(1).expand(-1, flat.spec.shape[1], -1)
    return flat.gather(2, index).masked_fill((positions < 0).unsqueeze(1), 0)


def _blended_rule(ct, out, flat, positions, weights, fused, *, wanted):
    d_flat: Any = None
    d_weights = []
    for index, weight in zip(positions.unbind(1), weights.unbind(1), strict=True):
        if wanted[0]:
            share = (ct * weight.unsqueeze(1)).masked_fill((index < 0).unsqueeze(1), 0)
            places = index.clamp(min=0).unsqueeze(1).expand(-1, flat.spec.shape[1], -1)
            d_flat = (flat.new_zeros(flat.spec.shape) if d_flat is None else d_flat).scatter_add(
                2, places, share
            )
        if wanted[2]:
            d_weights.append((ct * _elements_at(flat, index)).sum(1))
    return d_flat, None, stack(d_weights, 1) if d_weights else None


@custom_vjp(joint=_blended_rule, inputs=3)
def _blended(flat: Tensor, positions: Tensor, weights: Tensor, fused: bool) -> Tensor:
    """Weighted sums of elements of planes: flat [N, C, size], positions and weights [N, taps, points] -> [N, C, points]."""
    spec = flat.spec
    blend = spec.device.backend.extras.get("blend")
    if blend is None or not spec.device.backend.has_memory:
        total: Any = None
        for index, weight in zip(positions.unbind(1), weights.unsqueeze(2).unbind(1), strict=True):
            found = _elements_at(flat, index)
            if fused and total is not None:
                total = total.addcmul(found, weight)
            else:
                found = found * weight
                total = found if total is None else total + found
        return total
    batch, taps, points = positions.spec.shape
    result = empty(contiguous_spec((batch, spec.shape[1], points), spec.dtype, spec.device))
    if result.spec.numel:
        flat, positions, weights = (each.contiguous().resolve_neg() for each in (flat, positions, weights))
        blend(
            *(address(each) for each in (result, flat, positions, weights)),
            spec.dtype,
            (batch, spec.shape[1], spec.shape[2], taps, points),
            fused,
        )
    return result


def _constant_rule(ct, out, values, *others, specs, wanted):
    # The zeros are part of the graph as well, because programs differentiate the gradient of a grid again.
    return ct, *[
        _constant_in(ct.new_zeros(spec.shape), ct, *others) if needed else None
        for spec, needed in zip(specs[1:], wanted[1:], strict=True)
    ]


@custom_vjp(joint=_constant_rule)
def _constant_in(values: Tensor, *others: Tensor) -> Tensor:
    """`values`, recorded as a function of `others`, so that their gradients are zeros instead of None."""
    return values.detach()


def _unnormalized(points: Tensor, size: int, align_corners: bool) -> Tensor:
    if align_corners:
        return (points + 1) * ((size - 1) / 2)
    return _CENTRED(points, size / 2)


# Rounded once, as in PyTorch's compiled loop.
_CENTRED = Map(
    "grid_coordinate",
    same_dtype,
    lambda point, half: s.fma(point + 1, half, s.const(-0.5, point.dtype)),
    derivative=(lambda ct, out, point, half: ct * half, None),
)


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


def _cubic_weights(t: Any, a: float = -0.75) -> list:
    """Return the weights of the four neighbours of a point, at distance t behind the second. Source: Keys 1981."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


# ---- Grids of points ---------------------------------------------------------------------------------------------------------


@public(name="nn.functional.affine_grid")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the images of a regular grid under affine maps, as points for `grid_sample`.

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
    if align_corners and min(sizes[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
            "intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=user_level(),
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
