"""`summary`: a model as a tree, with parameters, the shapes of results, and floating-point operations."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.grad_mode import no_grad
from ..nn.module import Module
from ..utils.flop_counter import FlopCounterMode
from .calls import tensors_in
from .drawing import MARGIN, WIDTH, Drawing, hue
from .picture import Picture
from .words import clip, of_bytes, of_shape, plural, with_suffix

_MOST_ROWS = 40
_LINE = 21  # pixels
_NAME, _SHAPE, _PARAMETERS, _FLOP = MARGIN, 372, 590, 690  # pixels from the left; numbers end at the last two
_BAR = 76  # pixels; the width of the bar of operations


class _Row(NamedTuple):
    """A module: its path in the model, how deep it is, and what a call with the example inputs told about it."""

    path: str
    depth: int
    module: Module
    parameters: int
    shape: str
    flop: int

    @property
    def words(self) -> str:
        name = self.path.rpartition(".")[2]
        extra = self.module.extra_repr().replace("\n", " ")
        described = f"{type(self.module).__name__}({extra})"
        return f"{name}: {described}" if name else described


def summary(model: Module, *inputs: Any, **keywords: Any) -> Picture:
    """Draw the tree of a model's modules: parameters, shapes of results, and operations of one call.

    Args:
        model: is called once with the inputs, without recording a graph. Layers such as batch norm and dropout work as
            `model.training` says.
        inputs, keywords: example inputs. Without any, there are no shapes and no operations.

    Returns: a `Picture`. Of a large model it shows as many levels as there is room for. FLOP are those of products,
        convolutions and attention; a multiplication and an addition are two, as in `torch.utils.flop_counter`.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> torch.viz.summary(model, torch.ones(3, 4))
    <Picture of a model with 58 parameters: save(path) writes it, str() is its SVG>
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary() draws a module of torch.nn, but was given {type(model).__name__}")
    for each in inputs:
        if isinstance(each, (tuple, list)) and each and all(isinstance(size, int) for size in each):
            raise TypeError(
                f"summary() calls the model with example tensors: for sizes, give torch.ones({list(each)})"
            )
    rows = _rows(model, inputs, keywords)
    parameters = rows[0].parameters
    note = (
        f"{with_suffix(parameters)} parameters, {of_bytes(sum(each.nbytes for each in model.parameters()))}"
    )
    if rows[0].flop:
        note += f", {with_suffix(rows[0].flop)} FLOP"
    drawing = Drawing(f"a model with {parameters:,} parameters", type(model).__name__, note)
    drawing.y += 6
    for x, words, anchor in (
        (_SHAPE, "result", "start"),
        (_PARAMETERS, "parameters", "end"),
        (_FLOP, "FLOP", "end"),
    ):
        drawing.text(x, drawing.y + 8, words, "small dim", anchor)
    drawing.path(f"M{MARGIN},{drawing.y + 15}H{WIDTH - MARGIN}", "rule")
    drawing.y += 20
    level = _level(rows)
    shown = [each for each in rows if each.depth <= level]
    for row in shown[:_MOST_ROWS]:
        _draw_row(drawing, row, rows[0].flop, _hidden(rows, row, level))
    if len(shown) > _MOST_ROWS:
        words = f"… {plural(len(shown) - _MOST_ROWS, 'more module')}"
        drawing.text(MARGIN, drawing.y + 14, words, "small dim")
        drawing.y += _LINE
    return drawing.picture(drawing.y + 14)


def _rows(model: Module, inputs: tuple, keywords: dict[str, Any]) -> list[_Row]:
    """One row for each module, those inside of a module after it. A module with several names has one."""
    shapes: dict[Module, str] = {}

    def note(module: Module, given: Any, result: Any) -> None:
        found = [
            of_shape(each.shape)
            for each in tensors_in(list(result.values()) if isinstance(result, dict) else result)
        ]
        if found:
            shapes[module] = found[0] + (f" + {len(found) - 1}" if len(found) > 1 else "")

    flop: dict[str, int] = {}
    if inputs or keywords:
        handles = [each.register_forward_hook(note) for each in model.modules()]
        try:
            with no_grad(), FlopCounterMode(display=False) as counter:
                model(*inputs, **keywords)
        finally:
            for handle in handles:
                handle.remove()
        flop = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    root = type(model).__name__
    return [
        _Row(
            path,
            path.count(".") + 1 if path else 0,
            module,
            sum(each.numel() for each in module.parameters()),
            shapes.get(module, ""),
            flop.get(f"{root}.{path}" if path else root, 0),
        )
        for path, module in model.named_modules()
    ]


def _level(rows: list[_Row]) -> int:
    """How deep the tree can be drawn."""
    depths = sorted(each.depth for each in rows)
    return depths[-1] if len(rows) <= _MOST_ROWS else max(1, depths[_MOST_ROWS] - 1)


def _hidden(rows: list[_Row], row: _Row, level: int) -> int:
    """How many modules inside of this one are too deep to be drawn."""
    return sum(each.path.startswith(f"{row.path}.") for each in rows) if row.depth == level else 0


def _draw_row(drawing: Drawing, row: _Row, most: int, hidden: int) -> None:
    y, left = drawing.y + 14, _NAME + 16 * row.depth
    for depth in range(row.depth):
        drawing.path(f"M{_NAME + 16 * depth + 4},{drawing.y}v{_LINE}", "rule")
    has_own = bool(row.module._parameters)
    drawing.box(left, y - 9, 9, 9, f"b{hue(row.depth)} {'bar' if has_own else 'pale'}", 2)
    words = row.words + (f" … {hidden} inside" if hidden else "")
    drawing.text(
        left + 15,
        y,
        clip(words, int((_SHAPE - left - 24) / 6.6)),
        "ink small bold" if hidden or not row.depth else "ink small",
    )
    drawing.text(_SHAPE, y, clip(row.shape, 22), "small mono dim")
    drawing.text(_PARAMETERS, y, f"{row.parameters:,}" if row.parameters else "", "small mono ink", "end")
    if row.flop:
        drawing.text(_FLOP, y, with_suffix(row.flop), "small mono ink", "end")
        drawing.box(_FLOP + 10, y - 9, _BAR, 9, "b7 paler", 2)
        drawing.box(_FLOP + 10, y - 9, max(1.0, _BAR * row.flop / most), 9, f"b{hue(row.depth)} bar", 2)
    drawing.y += _LINE
