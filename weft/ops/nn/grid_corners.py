"""The elements around the points of a grid, and their shares in the value at a point: what bilinear `grid_sample` blends.

A point at distance t behind one element and 1 - t before the next one gets 1 - t of the first and t of the second, in each dim.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.derivative import Derivative, nondifferentiable
from ...core.dtype import DType, int32, int64
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.array_op import on_device
from ...families.map import Map, Types, same_dtype

MOST = 2**24  # elements of a dim: float32 holds every place up to here


def _to_int64(common: DType) -> Types:
    return Types(common, int64)


def _position(*operands: Any) -> Any:
    """The offset of a corner into the image, -1 if it lies outside. operands: coordinates, steps and sizes, one of each per dim."""
    n = len(operands) // 3
    index: Any = s.const(0, int64)
    inside: Any = None
    for coordinate, step, size in zip(operands[:n], operands[n : 2 * n], operands[2 * n :], strict=True):
        place = s.floor(coordinate) + step
        here = (place >= 0) & (place <= size - 1)
        inside = here if inside is None else inside & here
        whole = s.cast(s.cast(s.where(here, place, 0), int32), int64)
        index = index * s.cast(s.cast(size, int32), int64) + whole
    return s.where(inside, index, s.const(-1, int64))


def _share(coordinate: Any, step: Any) -> Any:
    t = coordinate - s.floor(coordinate)
    return s.where(s.eq(step, 0), 1 - t, t)


def _weight(*operands: Any) -> Any:
    """The share of a corner: the product of its shares in each dim. operands: coordinates and steps, one of each per dim."""
    n = len(operands) // 2
    shares = [_share(coordinate, step) for coordinate, step in zip(operands[:n], operands[n:], strict=True)]
    return functools.reduce(lambda x, y: x * y, shares)


def _weight_rule(ct, out, *operands):
    n = len(operands) // 2
    coordinates, steps = operands[:n], operands[n:]
    shares = []
    for coordinate, step in zip(coordinates, steps, strict=True):
        t = coordinate - coordinate.detach().floor()
        shares.append((1 - t).where(step == 0, t))
    found = []
    for k, step in enumerate(steps):
        others = [share for j, share in enumerate(shares) if j != k]
        found.append(functools.reduce(lambda x, y: x * y, others, ct * (2 * step - 1)))
    return *found, *[None] * n


POSITION = Map("grid_position", _to_int64, _position, derivative=nondifferentiable)
WEIGHT = Map("grid_weight", same_dtype, _weight, derivative=Derivative(joint=_weight_rule))


@functools.cache
def _steps(dims: int) -> list[np.ndarray]:
    """Return for each dim the steps from the first element around a point to each corner, [corners, 1]: 0 or 1."""
    steps = np.array(list(itertools.product((0.0, 1.0), repeat=dims)))
    return [np.ascontiguousarray(column)[:, None] for column in steps.T]


def corners(coordinates: Sequence[Tensor], sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the positions of elements around points, -1 outside of the image, and weights, both [N, 2**dims, points].

    coordinates: in elements, [N, points] for each dim of an image of these sizes, which are at most `MOST`.
    """
    spec = coordinates[0].spec
    # Tensors are made in each call: those of a call in inference mode could not be saved for a backward pass.
    steps = [on_device(each, spec.device, spec.dtype) for each in _steps(len(sizes))]
    given = [each.unsqueeze(1) for each in coordinates]
    positions = POSITION(*[each.detach() for each in given], *steps, *map(float, sizes))
    return positions, WEIGHT(*given, *steps)
