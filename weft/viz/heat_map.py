"""`heat_map`: the values of a matrix as colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from .drawing import COLUMN, MARGIN, Drawing
from .picture import Picture
from .tensors import check, values
from .words import of_shape, of_value

_MOST = 64  # cells in a row and in a column
_LEAST_SIDE, _MOST_SIDE = 6.0, 34.0  # pixels of a cell
_HEIGHT = 420  # pixels of the map, at most
_STEPS = 48  # of the scale of colours

# Colours between which values are interpolated: of one sign from pale to dark, of both signs from blue over white to red.
_ONE_SIGN = ((240, 244, 250), (122, 176, 214), (33, 102, 172), (8, 29, 88))
_BOTH_SIGNS = ((33, 102, 172), (146, 197, 222), (247, 247, 247), (244, 165, 130), (178, 24, 43))
_NOT_A_NUMBER = "#7f7f7f"


def heat_map(tensor: Tensor) -> Picture:
    """Draw a tensor of one or two dimensions: a cell for each element, whose colour is its value.

    If values have both signs, white is 0, blue is negative and red is positive. Else dark is large. NaN is grey; infinities have the
    colours of the largest and the smallest finite value. Cells of small tensors also have their values as text.

    Args:
        tensor: of at most two dimensions, of numbers that are not complex. Of more than 64 rows or columns a cell is the
            mean of a block.

    Returns: a `Picture`.

    Raises: ValueError for more than two dimensions, or without elements; TypeError for complex numbers.

    >>> import weft as torch
    >>> torch.viz.heat_map(torch.eye(3))
    <Picture of a heat map: save(path) writes it, str() is its SVG>
    """
    check("heat_map", tensor)
    if tensor.ndim > 2:
        raise ValueError(
            f"heat_map() draws at most two dimensions, but the tensor has {tensor.ndim}, of sizes {of_shape(tensor.shape)}: "
            "select one matrix, such as x[0]"
        )
    if tensor.is_complex():
        raise TypeError("heat_map() draws real numbers: use x.abs(), x.angle(), x.real or x.imag")
    if not tensor.numel():
        raise ValueError(f"heat_map(): the tensor of sizes {of_shape(tensor.shape)} has no elements")
    if not tensor.device.backend.has_memory:
        raise ValueError(f"heat_map(): a tensor on {tensor.device} has no values")
    rows, block = _cells(tensor)
    note = f"{of_shape(tensor.shape)} {tensor.dtype.name}"
    if block != (1, 1):
        note += f", a cell is the mean of {block[0]} × {block[1]}"
    drawing = Drawing("a heat map", "Values", note)
    finite = [value for row in rows for value in row if math.isfinite(value)]
    least, most = (min(finite), max(finite)) if finite else (0.0, 0.0)
    if least < 0 < most:
        most = max(most, -least)
        least = -most
    _draw_cells(drawing, rows, (least, most), exact=block == (1, 1))
    _draw_scale(drawing, least, most)
    return drawing.picture(drawing.y + 16)


def _cells(tensor: Tensor) -> tuple[list[list[float]], tuple[int, int]]:
    """The values of the cells in rows, and how many elements of each dimension a cell is the mean of."""
    with no_grad():
        matrix = tensor.detach().double().reshape(1, -1) if tensor.ndim < 2 else tensor.detach().double()
        block = math.ceil(matrix.shape[0] / _MOST), math.ceil(matrix.shape[1] / _MOST)
        if block == (1, 1):
            return values(matrix), block
        strips = [
            [part.mean() for part in strip.split(block[1], dim=1)] for strip in matrix.split(block[0], dim=0)
        ]
        return [[mean.item() for mean in strip] for strip in strips], block


def _draw_cells(drawing: Drawing, rows: list[list[float]], span: tuple[float, float], exact: bool) -> None:
    room = min(COLUMN / len(rows[0]), _HEIGHT / len(rows))
    side = max(_LEAST_SIDE, min(_MOST_SIDE, room))
    labels = [[of_value(value) for value in row] for row in rows]
    longest = max(len(each) for row in labels for each in row)
    width = max(side, longest * 7.0 + 8)
    with_labels = exact and side >= 20 and width * len(rows[0]) <= COLUMN
    width = width if with_labels else side
    top = drawing.y + 4
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            x, y = MARGIN + j * width, top + i * side
            colour = colour_of(value, span)
            drawing.fill(x, y, width, side, colour)
            if with_labels:
                style = "mono light" if _is_dark(colour) else "mono dark"
                drawing.text(x + width / 2, y + side / 2 + 4, labels[i][j], style, "middle")
    drawing.y = top + len(rows) * side


def _draw_scale(drawing: Drawing, least: float, most: float) -> None:
    top, width = drawing.y + 16, 240.0
    for step in range(_STEPS):
        value = least + (most - least) * step / (_STEPS - 1)
        drawing.fill(
            MARGIN + width * step / _STEPS, top, width / _STEPS + 0.5, 9, colour_of(value, (least, most))
        )
    for share in (0, 0.5, 1):
        anchor = "start" if not share else "middle" if share < 1 else "end"
        label = of_value(float(least + (most - least) * share))
        drawing.text(MARGIN + width * share, top + 24, label, "small mono dim", anchor)
    drawing.y = top + 24


def colour_of(value: float, span: tuple[float, float]) -> str:
    """The colour of a value between the ends of `span`; ends of both signs are as far from 0.

    >>> colour_of(0.0, (-1.0, 1.0)), colour_of(float("nan"), (0.0, 1.0))
    ('#f7f7f7', '#7f7f7f')
    """
    if math.isnan(value):
        return _NOT_A_NUMBER
    least, most = span
    stops: Sequence[tuple[int, int, int]] = _BOTH_SIGNS if least < 0 < most else _ONE_SIGN
    share = (min(max(value, least), most) - least) / (most - least) if most > least else 0.5
    place = share * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    mixed = (round(a + (b - a) * (place - first)) for a, b in zip(stops[first], stops[first + 1]))
    return "#" + "".join(f"{each:02x}" for each in mixed)


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140  # luma, ITU-R BT.601
