"""Places for the nodes of a directed graph: layers from the top down, few crossings, straight chains."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

_SWEEPS = 6  # over all layers, for the order in the layers and again for the coordinates
_GAP = 18.0  # pixels between two nodes
_BEND = 10.0  # pixels; the width of the place where an edge passes a layer


class _Bend(NamedTuple):
    """The place where the edge from `start` to `end` passes a layer."""

    start: Hashable
    end: Hashable
    layer: int


class Layout(NamedTuple):
    """`x` is the middle of each node; `bends` has for each edge the middles of the places between its ends, from the top down."""

    x: dict[Hashable, float]
    bends: dict[tuple[Hashable, Hashable], list[float]]


def layers_of(edges: Mapping[Hashable, Sequence[Hashable]], order: Sequence[Hashable]) -> dict[Hashable, int]:
    """The layer of each node: below all nodes that have an edge to it. In `order`, edges point from earlier to later nodes."""
    layers = dict.fromkeys(order, 0)
    for node in order:
        for other in edges[node]:
            layers[other] = max(layers[other], layers[node] + 1)
    return layers


def layout(
    edges: Mapping[Hashable, Sequence[Hashable]],
    layers: Mapping[Hashable, int],
    widths: Mapping[Hashable, float],
    room: float,
) -> Layout:
    """Places in a picture that is `room` pixels wide, by the method of Sugiyama, Tagawa and Toda (1981)."""
    rows: list[list[Hashable]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for node, layer in layers.items():
        rows[layer].append(node)
    above: dict[Hashable, list[Hashable]] = {}
    below: dict[Hashable, list[Hashable]] = {}
    for node in layers:
        for other in edges[node]:
            chain: list[Hashable] = [node]
            chain += [_Bend(node, other, layer) for layer in range(layers[node] + 1, layers[other])]
            for bend in chain[1:]:
                rows[bend.layer].append(bend)  # type: ignore[attr-defined]
            chain.append(other)
            for upper, lower in zip(chain, chain[1:]):
                below.setdefault(upper, []).append(lower)
                above.setdefault(lower, []).append(upper)
    for sweep in range(_SWEEPS):
        neighbours, ordered = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        position = {node: k for row in rows for k, node in enumerate(row)}
        for row in ordered:
            row.sort(
                key=lambda node: _mean([position[each] for each in neighbours.get(node, ())], position[node])
            )
            position.update((node, k) for k, node in enumerate(row))
    x = _coordinates(rows, above, below, widths, room)
    bends: dict[tuple[Hashable, Hashable], list[float]] = {}
    for row in rows:
        for node in row:
            if type(node) is _Bend:
                bends.setdefault((node.start, node.end), []).append(x[node])
    return Layout(x, bends)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _coordinates(
    rows: list[list[Hashable]],
    above: Mapping[Hashable, Sequence[Hashable]],
    below: Mapping[Hashable, Sequence[Hashable]],
    widths: Mapping[Hashable, float],
    room: float,
) -> dict[Hashable, float]:
    x = {node: room / 2 for row in rows for node in row}
    for sweep in range(_SWEEPS):
        neighbours, ordered = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in ordered:
            wanted = [_mean([x[each] for each in neighbours.get(node, ())], x[node]) for node in row]
            found = spread(wanted, [widths.get(node, _BEND) for node in row], room)
            x.update(zip(row, found))
    return x


def spread(wanted: Sequence[float], widths: Sequence[float], room: float) -> list[float]:
    """Middles of boxes in this order that do not overlap, with the least sum of squared distances from the wanted ones.

    Neighbours that would overlap form a block, which stands at the mean of what its boxes want. Blocks that would overlap
    become one block: the pool adjacent violators algorithm (Ayer and others, 1955).

    >>> spread([50, 50, 200], [20, 20, 20], 400)
    [31.0, 69.0, 200.0]
    """
    shifts, left = [], 0.0  # of each box from the first one, if all stand side by side
    for before, width in zip([0.0, *widths], widths):
        left += (before + width) / 2 + _GAP if before else width / 2
        shifts.append(left)
    blocks: list[tuple[float, int]] = []  # (sum of what its boxes want for the first box, number of boxes)
    for want, shift in zip(wanted, shifts):
        total, count = want - shift, 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            before_total, before_count = blocks.pop()
            total, count = total + before_total, count + before_count
        blocks.append((total, count))
    starts = [total / count for total, count in blocks for _ in range(count)]
    most = room - (shifts[-1] + widths[-1] / 2) if widths else 0.0
    return [min(max(start, 0.0), max(most, 0.0)) + shift for start, shift in zip(starts, shifts)]
