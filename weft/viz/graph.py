"""`graph`: the steps that autograd has recorded, from a result down to its leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..autograd.graph import Leaf, endpoint
from ..autograd.saved import short_name
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..nn.module import Module
from .drawing import COLUMN, MARGIN, MONO, SHARED, Drawing
from .layers import layers_of, layout
from .picture import Picture
from .saved import is_released, saved_by
from .words import clip, clip_start, of_bytes, of_shape, plural

_MOST_LAYERS = 22
_HEIGHT, _LAYER = 38, 66  # pixels: of a box, and from one layer to the next
_RESULT, _STEP, _LEAF = 4, 1, 3  # hues


class _Box(NamedTuple):
    key: int
    name: str
    detail: str
    hue: int

    @property
    def width(self) -> float:
        return max(len(self.name) * 8.1, len(self.detail) * MONO) + 18


def graph(result: Tensor, names: Module | Mapping[str, Tensor] | None = None) -> Picture:
    """Draw the graph that autograd has recorded for a result. Backward goes through it from the top down.

    A box is a recorded step, with the shape of its result and the bytes that it saves for backward. Boxes at the end of all
    paths are leaves, whose `.grad` backward adds to. An arrow is the way of a gradient.

    Args:
        result: a tensor that an operation has computed while grad mode was on.
        names: a module, whose parameters get their names, or a dictionary from names to leaves.

    Returns: a `Picture`. Of graphs with many layers it shows those that are next to the result.

    Raises: ValueError if no graph was recorded for the tensor.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    >>> torch.viz.graph(model(torch.ones(2, 4)).sum(), model)
    <Picture of a graph of 5 nodes: save(path) writes it, str() is its SVG>
    """
    if not isinstance(result, Tensor):
        raise TypeError(f"graph() draws the graph of a tensor, but was given {type(result).__name__}")
    if result._autograd is None:
        raise ValueError(
            "graph(): no graph was recorded for this tensor. It has one if it was computed outside of torch.no_grad() "
            "from a tensor with requires_grad=True"
        )
    start = endpoint(result._autograd)[0]
    order, edges = _collected(start)
    levels = layers_of(edges, order)  # type: ignore[arg-type]
    saved = _all_saved(order.values())
    shown = _Shown(order, edges, levels, _names_of(names))
    drawing = Drawing(
        f"a graph of {plural(len(order), 'node')}",
        f"The graph of {clip(_title(start), 40)}",
        f"{plural(len(order), 'node')}, {of_bytes(saved)} saved for backward",
    )
    _draw(drawing, *shown.cut())
    return drawing.picture(drawing.y + 10)


def _title(start: Any) -> str:
    return "a leaf" if type(start) is Leaf else f"the result of {short_name(start)}"


def _names_of(names: Module | Mapping[str, Tensor] | None) -> dict[int, str]:
    if not isinstance(names, (Module, Mapping, type(None))):
        raise TypeError(
            "graph(): argument 'names' (position 2) must be a module, or a dictionary from names to tensors, "
            f"not {type(names).__name__}"
        )
    pairs = names.named_parameters() if isinstance(names, Module) else (names or {}).items()
    return {id(tensor): name for name, tensor in pairs}


def _collected(start: Any) -> tuple[dict[int, Any], dict[int, list[int]]]:
    """The nodes by their ids, each before those that it has edges to, and these edges."""
    edges: dict[int, list[int]] = {}
    nodes: dict[int, Any] = {}
    finished: list[int] = []
    stack: list[tuple[Any, bool]] = [(start, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            finished.append(id(node))
            continue
        if id(node) in nodes:
            continue
        nodes[id(node)] = node
        others = [other for other, _ in node.next_functions if other is not None]
        edges[id(node)] = list(dict.fromkeys(id(other) for other in others))
        stack.append((node, True))
        stack += [(other, False) for other in reversed(others) if id(other) not in nodes]
    return {key: nodes[key] for key in reversed(finished)}, edges


def _all_saved(nodes: Any) -> int:
    """Bytes; a storage that several nodes keep counts once."""
    kept: dict[Any, int] = {}
    for node in nodes:
        for storage, nbytes in saved_by(node).items():
            kept[storage] = max(nbytes, kept.get(storage, 0))
    return sum(kept.values())


def _box(node: Any, names: Mapping[int, str]) -> _Box:
    if type(node) is Leaf:
        tensor = node.tensor()
        name = names.get(id(tensor), "leaf")
        detail = "deleted" if tensor is None else of_shape(tensor.shape)
        return _Box(id(node), clip_start(name, 24), detail, _LEAF)
    nbytes = sum(saved_by(node).values())
    saved = "freed" if is_released(node) else f"saves {of_bytes(nbytes)}" if nbytes else ""
    detail = "  ".join(filter(None, [_shape_of(node), saved]))
    return _Box(id(node), clip(short_name(node), 26), detail, _STEP)


def _shape_of(node: Any) -> str:
    """Of the result of a step; of the first one if there are several."""
    result = getattr(getattr(node, "_spec", None), "result", None)
    first = result[0] if type(result) is tuple and result else result
    return of_shape(first.shape) if type(first) is Spec else ""


class _Shown(NamedTuple):
    nodes: Mapping[int, Any]
    edges: Mapping[int, Sequence[int]]
    layers: Mapping[Any, int]
    names: Mapping[int, str]  # by the ids of leaves

    def cut(self) -> tuple[dict[int, list[int]], dict[int, int], dict[int, _Box]]:
        """Edges, layers and boxes of what there is room for; a box with "… 112 more" stands for the others of a layer."""
        stand_in: dict[int, int] = {}
        boxes: dict[int, _Box] = {}
        layers: dict[int, int] = {}
        rows: dict[int, list[int]] = {}
        for key in self.nodes:
            rows.setdefault(min(self.layers[key], _MOST_LAYERS), []).append(key)
        for layer, row in rows.items():
            kept: list[int] = []
            room = float(COLUMN)
            for key in row if layer < _MOST_LAYERS else ():
                box = _box(self.nodes[key], self.names)
                room -= box.width + 40
                if room < 130 and len(row) > len(kept) + 1:
                    break
                kept.append(key)
                boxes[key], layers[key], stand_in[key] = box, layer, key
            others = row[len(kept) :]
            if others:
                more = self._more(others)
                boxes[more.key], layers[more.key] = more, layer
                stand_in.update(dict.fromkeys(others, more.key))
        edges: dict[int, list[int]] = {key: [] for key in boxes}
        for key, targets in self.edges.items():
            for target in targets:
                start, end = stand_in[key], stand_in[target]
                if start != end and end not in edges[start]:
                    edges[start].append(end)
        return edges, layers, boxes

    def _more(self, keys: Sequence[int]) -> _Box:
        nbytes = _all_saved([self.nodes[key] for key in keys])
        detail = f"saves {of_bytes(nbytes)}" if nbytes else ""
        return _Box(-1 - keys[0], f"… {plural(len(keys), 'more node')}", detail, SHARED)


def _draw(
    drawing: Drawing, edges: Mapping[int, Sequence[int]], layers: Mapping[int, int], boxes: Mapping[int, _Box]
) -> None:
    widths = {key: box.width for key, box in boxes.items()}
    places = layout(edges, layers, widths, COLUMN)  # type: ignore[arg-type]
    top = drawing.y + 6
    for start, targets in edges.items():
        for end in targets:
            xs = [places.x[start], *places.bends.get((start, end), ()), places.x[end]]
            _draw_edge(drawing, [MARGIN + x for x in xs], top + layers[start] * _LAYER, boxes[end].hue)
    for key, box in boxes.items():
        x, y = MARGIN + places.x[key], top + layers[key] * _LAYER
        hue = _RESULT if layers[key] == 0 and box.hue == _STEP else box.hue
        radius = _HEIGHT / 2 if box.hue == _LEAF else 6
        drawing.box(x - box.width / 2, y, box.width, _HEIGHT, "card", radius)
        drawing.box(x - box.width / 2, y, box.width, _HEIGHT, f"b{hue} pale", radius)
        drawing.text(x, y + (16 if box.detail else 23), box.name, "bold ink", "middle")
        if box.detail:
            drawing.text(x, y + 31, box.detail, "small mono dim", "middle")
    drawing.y = top + max(layers.values()) * _LAYER + _HEIGHT


def _draw_edge(drawing: Drawing, xs: Sequence[float], top: float, hue: int) -> None:
    """A smooth line from the lower side of a box through the layers between to the upper side of another."""
    y = top + _HEIGHT
    for count, (x, below) in enumerate(zip(xs, xs[1:])):
        end = top + (count + 1) * _LAYER
        bend = (end - y) / 2
        points = [(x, y), (x, y + bend), (below, end - bend), (below, end)]
        if count == len(xs) - 2:
            drawing.arrow(points, str(hue))
        else:  # and straight down behind the boxes of the layer
            (a, b), (c, d), (e, f), (g, h) = points
            drawing.path(
                f"M{a:.1f},{b:.1f}C{c:.1f},{d:.1f} {e:.1f},{f:.1f} {g:.1f},{h:.1f}v{_HEIGHT}", f"l{hue}"
            )
        y = end + _HEIGHT
