"""`kernels`: what a call launches: the formula of each kernel, which operations it fuses, and the bytes that it moves."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.explain import Line, Observer, Run, observe, run_until_compiled
from ..engine.work import touched_by
from ..families.kernel_graph import KernelGraph
from ..families.map import Map
from ..families.product import Product
from ..families.reduce import Reduce
from ..families.view import View
from .calls import Call, observed
from .drawing import MARGIN, WIDTH, Drawing
from .formulas import Chain, Formula, infix, letter, of_number, steps_of
from .picture import Picture
from .words import clip, of_bytes, of_shape, plural

_MOST_KERNELS = 16
_MOST_LINES = 3  # of a formula
_CHARACTERS = 78  # of a line of a formula
_FUSED, _SINGLE, _GRAPH, _PRODUCT = 1, 7, 5, 3  # hues


class _Kernel(NamedTuple):
    """One entry of the picture. `label` says what kind it is; `moved` and `least` are bytes."""

    label: str
    hue: int
    formula: str
    shapes: str
    moved: int
    least: int
    seconds: float
    line: Line | None


class _FormulaObserver(Observer):
    """An Observer that also keeps the formula of each run, while the operands of the chain are known."""

    def __init__(self, tell: Callable[[Run], None] = lambda run: None) -> None:
        super().__init__()
        self.formulas: list[tuple[str, str]] = []  # with the shapes
        self._tell = tell

    def ran(
        self, chain: Sequence[Any], stored: Sequence[bool], end: Any, kernels: int, seconds: float
    ) -> None:
        formulas = Chain()
        texts = [formulas.add(each).text for each in chain]
        kept = [text for text, is_kept in zip(texts, stored) if is_kept]
        if end:
            kept.append(f"{end}({texts[-1]})")
        operands = [f"{name} {of_shape(spec.shape)}" for name, spec in formulas.operands.values()]
        results = [each.plan.spec for each, is_kept in zip(chain, stored) if is_kept]
        self.formulas.append((";  ".join(kept), _arrow(operands, results)))
        super().ran(chain, stored, end, kernels, seconds)
        self._tell(self.runs[-1])


def _arrow(operands: Sequence[str], results: Sequence[Spec]) -> str:
    found = ", ".join(f"{of_shape(each.shape)} {each.dtype.name}" for each in results)
    return ", ".join(operands) + (f" → {found}" if found else "")


def kernels(function: Callable, *args: Any, **kwargs: Any) -> Picture:
    """Draw the kernels that `function(*args, **kwargs)` launches, in their order.

    For each kernel: its formula, the operations that it fuses, the bytes that it moves beside the least number for what it
    computes, its time and the line of the program. The function runs a few times before, so that its kernels are compiled.
    Views launch nothing.

    Args:
        function: is called several times with these arguments.

    Returns: a `Picture`.

    >>> import weft as torch
    >>> torch.viz.kernels(lambda x: (2 - x).exp() * 0.5, torch.ones(4, 3))
    <Picture of 3 kernels: save(path) writes it, str() is its SVG>
    """
    if not callable(function):
        raise TypeError(
            f"kernels(): argument 'function' (position 1) must be callable, not {type(function).__name__}"
        )
    run_until_compiled(function, args, kwargs)
    fused = _FormulaObserver()
    observe(fused, function, args, kwargs)
    found, views = _launched(function, args, kwargs, fused)
    name = getattr(function, "__name__", type(function).__name__)
    moved = sum(each.moved for each in found)
    note = f"{plural(len(found), 'kernel')}, {of_bytes(moved)} moved"
    if views:
        note += f", {plural(views, 'view')}"
    title = f"Kernels of {'a function' if name == '<lambda>' else clip(name, 40)}"
    drawing = Drawing(plural(len(found), "kernel"), title, note)
    most = max((each.moved for each in found), default=0)
    for number, kernel in enumerate(found[:_MOST_KERNELS], 1):
        _draw_kernel(drawing, number, kernel, most)
    if len(found) > _MOST_KERNELS:
        drawing.text(MARGIN, drawing.y + 16, f"… {plural(len(found) - _MOST_KERNELS, 'more kernel')}", "dim")
        drawing.y += 22
    return drawing.picture(drawing.y + 14)


def _launched(
    function: Callable, args: tuple, kwargs: dict[str, Any], fused: _FormulaObserver
) -> tuple[list[_Kernel], int]:
    """All kernels of one more run of the function, in their order, and the number of views.

    While calls are observed, a reduction reads the result of a chain. In `fused`, the run before, it is a part of the
    chain's kernel. So such a kernel takes the place of both.
    """
    # The name of a reduction (of other operations "") with its kernel, or the number of a run of deferred work.
    events: list[tuple[str, _Kernel] | int] = []
    views = 0

    def tell(call: Call) -> None:
        # Only what is drawn is kept, because a reference to a result would keep it from being fused.
        nonlocal views
        if isinstance(call.op, View):
            views += 1
        elif not call.is_deferred:
            events.append((call.op.name if isinstance(call.op, Reduce) else "", _of_call(call)))

    observer = _FormulaObserver(lambda run: events.append(len(observer.runs) - 1))
    with observed(tell):
        observe(observer, function, args, kwargs)
    merged: list[_Kernel] = []
    reduced = [(run, formula) for run, formula in zip(fused.runs, fused.formulas) if run.end]
    dropped: list[str] = []  # reductions whose kernel is known from the run before
    for event in events:
        if isinstance(event, int):
            found = observer.runs[event], observer.formulas[event]
            for known in reduced:
                if (known[0].names, known[0].lines) == (found[0].names, found[0].lines):
                    reduced.remove(known)
                    dropped.append(str(known[0].end))
                    found = known
                    break
            merged.append(_of_run(*found))
        elif event[0] in dropped:
            dropped.remove(event[0])
        else:
            merged.append(event[1])
    return merged, views


def _of_run(run: Run, formula: tuple[str, str]) -> _Kernel:
    count = len(run.names) + (run.end is not None)
    if run.kernels == 1 and count > 1:
        label, hue = f"{count} fused", _FUSED
    else:
        label, hue = plural(run.kernels, "kernel"), _SINGLE
    return _Kernel(label, hue, *formula, run.moved, run.least, run.seconds, run.lines[-1])


def _of_call(call: Call) -> _Kernel:
    inputs, results = call.inputs, call.results
    distinct = {id(each): each for each in (*inputs, *results)}.values()
    moved = sum(touched_by(each.spec) for each in distinct if type(each.spec) is Spec)
    letters = [letter(k) for k in range(len(inputs))]
    label, hue, formula = "kernel", _SINGLE, f"{call.op.name}({', '.join(letters)})"
    if isinstance(call.op, KernelGraph):
        steps = steps_of(call.op, *call.args)
        if len(steps) > 1:
            label, hue = f"{len(steps)} kernels", _GRAPH
            formula += f" = {' → '.join(steps)}"
    elif isinstance(call.op, Product):
        label, hue, formula = "product", _PRODUCT, "a @ b"
    elif isinstance(call.op, Map):
        formula = _of_map(call).text
    operands = [f"{name} {of_shape(each.shape)}" for name, each in zip(letters, inputs)]
    shapes = _arrow(operands, [each.spec for each in results])
    return _Kernel(label, hue, formula, shapes, moved, moved, call.seconds, call.line)


def _of_map(call: Call) -> Formula:
    count = 0
    operands = []
    for each in call.args:
        if isinstance(each, Tensor):
            operands.append(Formula(letter(count)))
            count += 1
        elif isinstance(each, (bool, int, float, complex)):
            operands.append(of_number(each))
    return infix(call.op.name, operands)


def _draw_kernel(drawing: Drawing, number: int, kernel: _Kernel, most: int) -> None:
    top = drawing.y + 8
    lines = textwrap.wrap(kernel.formula, _CHARACTERS, break_long_words=True) or [""]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], clip(lines[_MOST_LINES - 1], _CHARACTERS - 2) + " …"]
    drawing.box(MARGIN, top, 92, 22, f"b{kernel.hue} pale", 11)
    drawing.text(MARGIN + 46, top + 15, kernel.label, "small ink", "middle")
    left = MARGIN + 108
    for count, line in enumerate(lines):
        drawing.text(left, top + 15 + 17 * count, line, "mono ink")
    y = top + 15 + 17 * len(lines)
    drawing.text(left, y, clip(kernel.shapes, 92), "small mono dim")
    y += 16
    if kernel.line is not None:
        drawing.text(left, y, clip(str(kernel.line), 60), "small dim")
    time = f"{kernel.seconds * 1e3:.3g} ms" if kernel.seconds >= 1e-4 else f"{kernel.seconds * 1e6:.3g} µs"
    words = of_bytes(kernel.moved)
    if kernel.least < kernel.moved:
        words += f" (least {of_bytes(kernel.least)})"
    drawing.text(WIDTH - MARGIN, y, f"{words}, {time}", "small dim", "end")
    y += 6
    width = WIDTH - MARGIN - left
    drawing.box(left, y, width, 5, "b7 paler", 2)
    if most:
        drawing.box(left, y, width * kernel.moved / most, 5, "b2 pale", 2)
        drawing.box(left, y, width * kernel.least / most, 5, f"b{kernel.hue} bar", 2)
    drawing.text(MARGIN + 46, y + 4, str(number), "small dim", "middle")
    drawing.y = y + 10
