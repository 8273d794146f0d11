"""`memory`: the memory of tensors while a function runs, and who holds what at the peak."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.graph import Node, endpoint
from ..core.promised import Promised
from ..core.storage import Storage
from ..core.tensor import Tensor
from ..engine.explain import Line
from .calls import Call, observed
from .drawing import COLUMN, MARGIN, WIDTH, Drawing
from .holders import (
    GRADIENT,
    KINDS,
    PARAMETER,
    SAVED,
    STATE,
    TEMPORARY,
    VARIABLE,
    Holder,
    held,
    variables_here,
    variables_of,
)
from .picture import Picture
from .words import clip, of_bytes, of_shape, plural

_HUES = {PARAMETER: 3, GRADIENT: 2, STATE: 6, SAVED: 1, VARIABLE: 5, TEMPORARY: 7}
_LEFT, _HEIGHT = 66, 220  # pixels: the room for numbers left of the chart, and its height
_MOST_ROWS = 12
# Calls after each of which holders are asked for, which takes 0.2 to 20 ms. Later only if there is 1 % more memory than ever before, or
# after the 16th call.
_EACH_CALL = 100
_MOST_POINTS = 700  # one a pixel


class _Block:
    """A storage while it is alive: what it was made for, who has held it, and its bytes after each call."""

    __slots__ = ("storage", "shape", "dtype", "maker", "line", "kind", "holders", "sizes", "first")

    def __init__(self, tensor: Tensor, maker: str, line: Line | None, first: int) -> None:
        self.storage = weakref.ref(tensor._storage)
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype.name
        self.maker, self.line, self.first = maker, line, first
        self.kind = TEMPORARY
        self.holders: list[Holder] = []  # at the peak
        self.sizes: list[int] = []  # from call number `first` on

    def measure(self) -> int:
        storage: Storage | None = self.storage()
        self.sizes.append(0 if storage is None or type(storage) is Promised else storage.nbytes_)
        return self.sizes[-1]

    def at(self, call: int) -> int:
        """The bytes after a call."""
        place = call - self.first
        return self.sizes[place] if 0 <= place < len(self.sizes) else 0


class _Timeline:
    """Follows the storages of all tensors that calls read or make."""

    def __init__(self, function: Callable, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.blocks: list[_Block] = []
        self._alive: dict[int, _Block] = {}
        self.calls: list[tuple[str, Line | None]] = []
        self.peak, self.peak_call = 0, 0
        self._asked_peak = 0  # the largest number of bytes for which `_ask` was called
        self._graph: Callable[[], Any] = lambda: None  # the node that was recorded last, while it is alive
        for tensor in held([*arguments.items(), *variables_of(function)]).tensors.values():
            self._follow(tensor, "made before", None, 0)

    def note(self, call: Call) -> None:
        """Measure all storages after a call."""
        number = len(self.calls)
        self.calls.append((call.op.name, call.line))
        for tensor in call.inputs:
            self._follow(tensor, "not by an operation", None, number)
        for tensor in call.results:
            self._follow(tensor, call.op.name, call.line, number)
            if isinstance(node := endpoint(tensor._autograd)[0], Node):
                self._graph = weakref.ref(node)
        self.measure()

    def _follow(self, tensor: Tensor, maker: str, line: Line | None, first: int) -> None:
        known = self._alive.get(id(tensor._storage))
        if known is None or known.storage() is not tensor._storage:
            block = self._alive[id(tensor._storage)] = _Block(tensor, maker, line, first)
            self.blocks.append(block)

    def measure(self) -> None:
        total = sum(block.measure() for block in self._alive.values())
        self._alive = {
            key: block for key, block in self._alive.items() if block.sizes[-1] or block.storage() is not None
        }
        if total > self.peak:
            self.peak, self.peak_call = total, len(self.calls) - 1
        few = len(self.calls) <= _EACH_CALL
        if few or total > 1.01 * self._asked_peak or len(self.calls) % 16 == 0:
            self._ask(total)

    def _ask(self, total: int) -> None:
        """Ask who holds the storages now."""
        found = held([*self.arguments.items(), *variables_here()], self._graph()).holders
        is_peak = total > self._asked_peak
        self._asked_peak = max(total, self._asked_peak)
        for key, block in self._alive.items():
            holders = found.get(key, [])
            if is_peak:
                block.holders = holders
            kinds = [block.kind, *(each.kind for each in holders)]
            block.kind = min(kinds, key=KINDS.index)


def memory(function: Callable, *args: Any, **kwargs: Any) -> Picture:
    """Draw the memory of tensors during `function(*args, **kwargs)`, and who holds what when it is largest.

    The chart has the bytes of storages after each call of an operation, coloured by what holds them: parameters, gradients, steps of the graph
    that save them for backward, variables of the program. Below it stand the largest storages at the peak. Memory that an operation needs
    only while it runs is not seen. Deferred results have no memory until they are computed.

    Args:
        function: is called once with these arguments.

    Returns: a `Picture`.

    >>> import weft as torch
    >>> weight = torch.ones(100, 50, requires_grad=True)
    >>> torch.viz.memory(lambda x: (x @ weight).relu().sum().backward(), torch.ones(20, 100))
    <Picture of memory in 7 calls: save(path) writes it, str() is its SVG>
    """
    if not callable(function):
        raise TypeError(
            f"memory(): argument 'function' (position 1) must be callable, not {type(function).__name__}"
        )
    try:
        named = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except ValueError:  # a function that is not written in Python
        named = {"arguments": (*args, *kwargs.values())}
    name = getattr(function, "__name__", type(function).__name__)
    timeline = _Timeline(function, named)
    with observed(timeline.note):
        function(*args, **kwargs)
    return _drawn(timeline, "a function" if name == "<lambda>" else name)


def _drawn(timeline: _Timeline, name: str) -> Picture:
    count = len(timeline.calls)
    note = f"peak {of_bytes(timeline.peak)}, {plural(count, 'call')}"
    drawing = Drawing(f"memory in {plural(count, 'call')}", f"Memory of tensors in {clip(name, 40)}", note)
    if not timeline.peak:
        drawing.text(MARGIN, drawing.y + 20, "no operation made or read a tensor with memory", "dim")
        return drawing.picture(drawing.y + 44)
    _draw_legend(drawing, timeline)
    _draw_chart(drawing, timeline)
    _draw_table(drawing, timeline)
    return drawing.picture(drawing.y + 16)


def _draw_legend(drawing: Drawing, timeline: _Timeline) -> None:
    x = float(MARGIN)
    for kind in KINDS:
        if any(block.kind == kind for block in timeline.blocks):
            drawing.box(x, drawing.y, 11, 11, f"b{_HUES[kind]} bar", 2)
            drawing.text(x + 16, drawing.y + 10, kind, "small dim")
            x += 38 + 6 * len(kind)
    drawing.y += 38


def _draw_chart(drawing: Drawing, timeline: _Timeline) -> None:
    """Bytes over calls: an area for each kind, and in it a line for each large storage."""
    count = len(timeline.calls)
    left, top, width = MARGIN + _LEFT, drawing.y, COLUMN - _LEFT
    bottom = top + _HEIGHT
    stride = max(1, count // _MOST_POINTS)
    calls = range(0, count, stride)
    scale = _HEIGHT / timeline.peak

    def x(call: int) -> float:
        return left + width * call / count

    for part in range(5):
        y = bottom - _HEIGHT * part / 4
        drawing.path(f"M{left},{y:.1f}h{width}", "rule")
        drawing.text(left - 8, y + 4, of_bytes(timeline.peak * part / 4), "small dim", "end")
    heights = [0.0] * len(calls)
    order = sorted(timeline.blocks, key=lambda block: (KINDS.index(block.kind), block.first))
    for kind in KINDS:
        below = list(heights)
        for block in (each for each in order if each.kind == kind):
            heights = [height + block.at(call) * scale for height, call in zip(heights, calls)]
        if heights != below:
            _draw_area(drawing, [x(call) for call in calls], x(count), bottom, below, heights, _HUES[kind])
    peak = x(timeline.peak_call) + width / count / 2
    drawing.path(f"M{peak:.1f},{top - 4}V{bottom}", "l0")
    after, line = timeline.calls[timeline.peak_call]
    at_left = peak < (left + WIDTH) / 2
    room = WIDTH - MARGIN - peak if at_left else peak - left
    words = clip(f"peak, after {after}" + (f" in {line}" if line else ""), int(room / 6))
    drawing.text(peak + (6 if at_left else -6), top - 2, words, "small t0", "start" if at_left else "end")
    drawing.text(left, bottom + 16, "first call", "small dim")
    drawing.text(WIDTH - MARGIN, bottom + 16, "last call", "small dim", "end")
    drawing.y = bottom + 24


def _draw_area(
    drawing: Drawing,
    xs: Sequence[float],
    end: float,
    bottom: float,
    below: Sequence[float],
    above: Sequence[float],
    hue: int,
) -> None:
    """The steps between two heights."""
    edges = [*xs[1:], end]
    upper = "".join(f"L{x:.1f},{bottom - y:.1f}H{e:.1f}" for x, e, y in zip(xs, edges, above))
    lower = "".join(f"L{e:.1f},{bottom - y:.1f}H{x:.1f}" for x, e, y in reversed(list(zip(xs, edges, below))))
    drawing.path(f"M{xs[0]:.1f},{bottom - below[0]:.1f}{upper}{lower}Z", f"b{hue} bar")


def _draw_table(drawing: Drawing, timeline: _Timeline) -> None:
    """The largest storages at the peak."""
    at_peak = sorted(
        (block for block in timeline.blocks if block.at(timeline.peak_call)),
        key=lambda block: -block.at(timeline.peak_call),
    )
    drawing.text(MARGIN, drawing.y + 22, f"At the peak: {plural(len(at_peak), 'storage')}", "bold ink")
    drawing.y += 32
    most = at_peak[0].at(timeline.peak_call)
    for block in at_peak[:_MOST_ROWS]:
        nbytes, y = block.at(timeline.peak_call), drawing.y + 14
        drawing.box(MARGIN, y - 10, max(2.0, 64 * nbytes / most), 12, f"b{_HUES[block.kind]} bar", 2)
        drawing.text(MARGIN + 138, y, of_bytes(nbytes), "small mono ink", "end")
        drawing.text(MARGIN + 150, y, clip(f"{of_shape(block.shape)} {block.dtype}", 24), "small mono dim")
        made = f"{block.maker}, {block.line}" if block.line else block.maker
        drawing.text(MARGIN + 326, y, clip(_names(block), 31), "small ink")
        drawing.text(MARGIN + 540, y, clip(made, 34), "small dim")
        drawing.y += 20
    if len(at_peak) > _MOST_ROWS:
        rest = sum(block.at(timeline.peak_call) for block in at_peak[_MOST_ROWS:])
        words = f"… {plural(len(at_peak) - _MOST_ROWS, 'more storage')}, {of_bytes(rest)}"
        drawing.text(MARGIN, drawing.y + 14, words, "small dim")
        drawing.y += 20


def _names(block: _Block) -> str:
    """Of what held the block at the peak; last those that IPython gives to all results: `_`, `_1`, `Out[1]`."""
    names = dict.fromkeys(each.name for each in block.holders)
    return ", ".join(sorted(names, key=lambda name: name.startswith(("_", "Out[")))) or "no variable"
