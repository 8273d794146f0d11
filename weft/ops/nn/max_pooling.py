"""Finds the largest element of each window.

For backward, a window of few elements saves one byte, the place of its maximum in the window. Two linear maps, each
the derivative of the other, go between windows and input:

taken   input -> windows    the element at the window's place
routed  windows -> input    added to the element at the window's place
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from ...core.dtype import uint8
from ...core.layout import channels_last_3d
from ...core.public import public
from ...core.recording import needs_recording
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...engine.expr import const
from ...families.array_op import on_device
from ...families.custom_vjp import custom_vjp
from ...families.map import Map, Types, same_dtype
from ..assembly.copying import is_contiguous
from ..creation.creation import zeros
from ..reductions.extrema import lowest
from ..reductions.reduction import AMAX, MAX
from ..tensor.node_names import with_node_name
from .pooling import (
    PoolGeometry,
    check_input,
    check_padding_of_empty,
    elements_at,
    elements_of_windows,
    geometry_of,
    padded,
)
from .window_views import FEW, like_format, windows


def _place_of_largest(*values: Any) -> Any:
    """The first place of the largest value; the last NaN, if there is one."""
    best, place = values[0], const(0, values[0].dtype)
    for k, value in enumerate(values[1:], 1):
        larger = best < value
        if value.dtype.kind == "f":
            larger = larger | s.isnan(value)
        best, place = s.where(larger, value, best), s.where(larger, const(k, best.dtype), place)
    return place


def _value_at(*operands: Any) -> Any:
    *values, place = operands
    chosen = values[0]
    for k, value in enumerate(values[1:], 1):
        chosen = s.where(s.eq(place, k), value, chosen)
    return chosen


LARGEST = Map("max_pool", same_dtype, lambda *values: reduce(s.maximum, values))
PLACES = Map("max_pool_places", lambda common: Types(common, uint8), _place_of_largest)
TAKEN = Map("max_pool_taken", same_dtype, _value_at, deciding=1)
ROUTED = Map("max_pool_backward", same_dtype, lambda ct, place, k: s.where(s.eq(place, k), ct, 0), deciding=1)
ADDED = Map(
    "max_pool_backward",
    same_dtype,
    lambda sum, ct, place, k: s.where(s.eq(place, k), sum + ct, sum),
    deciding=1,
)


def _elements(source: Tensor, geometry: PoolGeometry) -> list[Tensor]:
    return elements_of_windows(source, *geometry.looking, geometry.counts)


def _taken_rule(ct, out, input, places, geometry):
    return routed(ct, places, geometry)


@custom_vjp(_taken_rule)
def taken(input: Tensor, places: Tensor, geometry: PoolGeometry) -> Tensor:
    """Return the element of each window at its place."""
    return TAKEN(*_elements(padded(input, geometry, 0), geometry), places)


@custom_vjp(lambda ct, out, windows, places, geometry: taken(ct, places, geometry))
def routed(windows: Tensor, places: Tensor, geometry: PoolGeometry) -> Tensor:
    """What each window has, added to the element at its place."""
    n, spec = len(geometry.sizes), windows.spec
    border = geometry.border
    sizes = [size + border[-2 * dim - 2] + border[-2 * dim - 1] for dim, size in enumerate(geometry.sizes)]
    result = zeros((*spec.shape[:-n], *sizes), dtype=spec.dtype, device=spec.device)
    for k, target in enumerate(_elements(result, geometry)):
        if geometry.disjoint:
            ROUTED.write(target, windows, places, k)
        else:
            ADDED.write(target, target, windows, places, k)
    if any(border):
        for dim, size in enumerate(geometry.sizes):
            result = result.narrow(dim - n, border[-2 * dim - 2], size)
    return result


_NODE_NAMES = {1: "SqueezeBackward1", 2: "MaxPool2DWithIndicesBackward0", 3: "MaxPool3DWithIndicesBackward0"}


@custom_vjp(
    lambda cts, outs, input, geometry: None if cts[0] is None else routed(cts[0], outs[1], geometry),
    results=(1,),
    node_name=lambda inputs, static: _NODE_NAMES[len(inputs[1].sizes)],
)
def _largest(input: Tensor, geometry: PoolGeometry) -> tuple[Tensor, Tensor]:
    elements = _elements(_edged(input, geometry), geometry)
    return LARGEST(*elements), PLACES(*elements)


def window_max(
    name: str, n: int, input, kernel_size, stride, padding, dilation, ceil_mode, with_indices: bool
) -> Any:
    """The largest element of each window and, if asked for, where it lies in the flattened last n dims."""
    if n > 1:
        check_padding_of_empty(name, input, n, kernel_size, padding, dilation)
    _check_max_input(name, input, n)
    geometry = geometry_of(name, input.spec.shape[-n:], kernel_size, stride, padding, dilation, ceil_mode)
    few = math.prod(geometry.kernel) <= FEW
    if not with_indices and not needs_recording((input,)):
        return _in_format((_few_maxima if few else _many_maxima)(input, geometry), input, n)
    if few:
        values, places = _largest(input, geometry)
        indices = _flat_positions(places, geometry) if with_indices else None
    else:
        values, places = MAX(_windows(input.detach(), geometry), dims=_places(input, geometry))
        indices = _flat_positions(places, geometry)
        values = elements_at(input, indices, n) if needs_recording((input,)) else values
    values = with_node_name(_in_format(values, input, n), _NODE_NAMES[n])
    return values if indices is None or not with_indices else (values, _in_format(indices, input, n))


def _in_format(result: Tensor, input: Tensor, n: int) -> Tensor:
    """`like_format`. As in PyTorch, three dims without a batch may be in channels_last_3d."""
    if n == 3 and input.spec.ndim == 4 and not input.spec.is_contiguous:
        if is_contiguous(input.unsqueeze(0), memory_format=channels_last_3d):
            return result.unsqueeze(0).contiguous(memory_format=channels_last_3d).squeeze(0)
    return like_format(result, input)


def _check_max_input(name: str, input: Tensor, n: int) -> None:
    if n > 1 and isinstance(input, Tensor) and len(input.spec.shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input\n"
            f"{name}: the input has the shape {list(input.spec.shape)}"
        )
    check_input(name, input, n)


def _few_maxima(input: Tensor, geometry: PoolGeometry) -> Tensor:
    return LARGEST(*_elements(_edged(input, geometry), geometry))


def _many_maxima(input: Tensor, geometry: PoolGeometry) -> Tensor:
    return AMAX(_windows(input.detach(), geometry), dims=_places(input, geometry))


def _edged(input: Tensor, geometry: PoolGeometry) -> Tensor:
    """The input padded so that padding is never larger than an element."""
    return padded(input, geometry, lowest(input.spec.dtype))


def _windows(input: Tensor, geometry: PoolGeometry) -> Tensor:
    """Return a view [..., *counts, *kernel] of the elements of all windows."""
    view = windows(_edged(input, geometry), *geometry.looking)
    n = len(geometry.kernel)
    return view[(..., *(slice(count) for count in geometry.counts), *[slice(None)] * n)]


def _places(input: Tensor, geometry: PoolGeometry) -> tuple[int, ...]:
    """The dims of `_windows` that are within a window."""
    return tuple(range(input.spec.ndim, input.spec.ndim + len(geometry.kernel)))


def _flat_positions(places: Tensor, geometry: PoolGeometry) -> Tensor:
    """Places in windows [..., *counts] as positions in the flattened input."""
    n = len(geometry.kernel)
    flat: Any = 0
    for dim in range(n):
        inner = math.prod(geometry.kernel[dim + 1 :])
        place = places.div(inner, rounding_mode="floor") if inner > 1 else places
        place = place.remainder(geometry.kernel[dim]) if dim else place
        size, step, pad, gap = (
            each[dim] for each in (geometry.sizes, geometry.stride, geometry.padding, geometry.dilation)
        )
        shape = [-1] + [1] * (n - 1 - dim)
        starts = np.arange(geometry.counts[dim]) * step - pad
        position = place * gap + on_device(starts.reshape(shape), places.spec.device)
        if pad:
            # Padding is chosen only if no element is larger. PyTorch then returns the index of the window's first element.
            first = np.where(starts < 0, starts + -(starts // gap) * gap, starts)
            begin = on_device(np.minimum(first, size - 1).reshape(shape), places.spec.device)
            position = begin.where(position < 0, position)
        flat = flat * size + position
    return flat


def _define_max(n: int, with_indices: bool) -> None:
    name, suffix = f"max_pool{n}d", "_with_indices" if with_indices else ""

    @public(name=f"nn.functional.{name}{suffix}", autocast=_cast(n), words={"n": n})
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Return the largest element of each window over the last {n} dims.

        Shapes: [N, C, *sizes] or [C, *sizes]. return_indices: also give where in the flattened {n} dims it lies; the
        function `max_pool{n}d_with_indices` always does.
        """
        both = with_indices or return_indices
        return window_max(name, n, input, kernel_size, stride, padding, dilation, ceil_mode, both)


def _define_plain_max(n: int) -> None:
    name = f"max_pool{n}d"

    @public("function", name=name, autocast=_cast(n), words={"n": n})
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        """Return the largest element of each window over the last {n} dims. Shapes: [N, C, *sizes] or [C, *sizes]."""
        return window_max(name, n, input, kernel_size, stride, padding, dilation, ceil_mode, False)


def _cast(n: int) -> str | None:
    return "raise on cpu" if n == 3 else None


for _n in (1, 2, 3):
    _define_max(_n, False)
    _define_max(_n, True)
    _define_plain_max(_n)


@public("function")
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the values and the indices of `max_pool1d`.

    >>> import weft as torch
    >>> torch.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 7.0, 5.0]]), 2)
    (tensor([[3., 7.]]), tensor([[1, 2]]))
    """
    return window_max("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, True)
