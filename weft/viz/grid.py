"""The values of a tensor as matrices side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .drawing import COLUMN, MARGIN, MONO, WIDTH, Drawing
from .tensors import Named, values
from .words import of_value, plural

_MOST_ROWS = 8
_MOST_MATRICES = 12
_LEAST_CELL = 26.0  # pixels
_ROW = 22  # pixels
_GAP = 22  # pixels between two matrices
_MORE = 56  # pixels for "… 112" at the right of a row


class _Grid(NamedTuple):
    """What all matrices have in common: the sizes of the last two dimensions, and how much of them is drawn."""

    each: Named
    height: int
    width: int
    rows: int
    columns: int
    cell: float  # pixels
    hue_of: Callable[[int], int]


def draw_grid(drawing: Drawing, each: Named, hue_of: Callable[[int], int]) -> None:
    """Draw the values at `drawing.y`, and move it below them. `hue_of(byte)` is the hue of the element that begins there."""
    if not each.tensor.numel():
        drawing.text(MARGIN, drawing.y + 14, "no elements: one of the sizes is 0", "dim small")
        drawing.y += 22
        return
    *leading, height, width = (1, 1, *each.shape)[-max(2, len(each.shape)) :]
    rows, columns = min(height, _MOST_ROWS), min(width, int(COLUMN / _LEAST_CELL))
    total = math.prod(leading)
    places = [_place(k, leading) for k in range(min(total, _MOST_MATRICES))]
    labels = [_labels(each, place, rows, columns) for place in places]
    longest = max(len(label) for matrix in labels for row in matrix for label in row)
    cell = max(_LEAST_CELL, longest * MONO + 8)
    if width * cell > COLUMN:
        columns = min(columns, int((COLUMN - _MORE) / cell))
    grid = _Grid(each, height, width, rows, columns, cell, hue_of)
    taken = columns * cell + (_MORE if columns < width else 0)
    line = rows * _ROW + (16 if rows < height else 0) + (14 if leading else 0)
    x, y = float(MARGIN), drawing.y
    for place, matrix in zip(places, labels):
        if x > MARGIN and x + taken > WIDTH - MARGIN:
            x, y = float(MARGIN), y + line + 10
        _draw_matrix(drawing, grid, place, matrix, x, y)
        x += taken + _GAP
    if total > len(places):
        drawing.text(MARGIN, y + line + 14, f"… {plural(total - len(places), 'more matrix')}", "dim small")
        y += 18
    drawing.y = y + line + 4


def _place(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The index of matrix `number` in the leading dimensions."""
    found: list[int] = []
    for size in reversed(sizes):
        number, index = divmod(number, size)
        found.insert(0, index)
    return tuple(found)


def _labels(each: Named, place: tuple[int, ...], rows: int, columns: int) -> list[list[str]]:
    """The values of the upper left part of a matrix; "" for those of a tensor without memory."""
    matrix = each.tensor.detach()[place]
    while matrix.ndim < 2:
        matrix = matrix.unsqueeze(0)
    found = values(matrix[:rows, :columns])
    return [[""] * columns] * rows if found is None else [[of_value(value) for value in row] for row in found]


def _draw_matrix(
    drawing: Drawing, grid: _Grid, place: tuple[int, ...], labels: list[list[str]], x: float, y: float
) -> None:
    each, cell = grid.each, grid.cell
    if place:
        drawing.text(x, y + 10, f"[{', '.join(map(str, place))}]", "dim small mono")
        y += 14
    for i, j in itertools.product(range(grid.rows), range(grid.columns)):
        index = (*place, i, j)[len(place) + 2 - len(each.shape) :]
        byte = each.byte_of(index)
        hint = f"{list(index)} is at position {byte // each.tensor.itemsize} of the storage"
        left, top = x + j * cell, y + i * _ROW
        drawing.box(left, top, cell, _ROW, f"b{grid.hue_of(byte)} pale", 2, hint)
        drawing.text(left + cell / 2, top + 15, labels[i][j], "mono ink", "middle")
    if grid.columns < grid.width:
        drawing.text(x + grid.columns * cell + 6, y + 15, f"… {grid.width - grid.columns:,}", "dim small")
    if grid.rows < grid.height:
        more = f"… {plural(grid.height - grid.rows, 'more row')}"
        drawing.text(x, y + grid.rows * _ROW + 13, more, "dim small")
