"""`storage`: the row of memory under tensors, and how sizes, strides and offsets find elements in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.tensor import Tensor
from .drawing import COLUMN, MARGIN, MONO, SHARED, SMALL_MONO, UNUSED, WIDTH, Drawing, hue
from .grid import draw_grid
from .picture import Picture
from .tensors import Named, named, stored
from .words import of_bytes, of_shape, of_value, plural

_LEAST_CELL, _MOST_CELL = 26.0, 64.0  # pixels
_MOST_TENSORS = 8
_STRIP = 9  # pixels; the height of the row of marks of one tensor
_END = 60  # pixels at either end of the row, for "… 112 more"


class _Row(NamedTuple):
    """The part of a storage that is drawn: cells of `unit` bytes, numbered from `first` to `last`."""

    unit: int
    first: int
    last: int
    total: int
    left: float  # pixels
    cell: float
    labels: list[str]
    users: list[list[int]]  # for each cell the numbers of the tensors that read it

    def x(self, byte: float) -> float:
        return self.left + (byte / self.unit - self.first) * self.cell

    def hue(self, cell: int) -> int:
        users = self.users[cell - self.first]
        return UNUSED if not users else hue(users[0]) if len(users) == 1 else SHARED


def storage(*tensors: Tensor, **named_tensors: Tensor) -> Picture:
    """Draw the storages of tensors, and how the tensors read them.

    The upper row is the memory. Below it stands each tensor: its elements in the row, an arrow for the offset, one for each
    stride, and its values. An element of one tensor has the colour of the tensor. Elements that several of the tensors
    read have one colour of their own.

    Args:
        tensors: are called a, b, c in the picture.
        named_tensors: have the names of their keywords.

    Returns: a `Picture`. Of long storages and large tensors it shows the beginning, and says how much more there is.

    Raises:
        TypeError: if something is no tensor.
        NotImplementedError: for a tensor with a layout, such as a sparse one, which consists of other tensors.

    >>> import weft as torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> torch.viz.storage(x=x, transposed=x.t(), column=x[:, 1])
    <Picture of a storage: save(path) writes it, str() is its SVG>
    """
    found = named("storage", tensors, named_tensors)
    shown, more = found[:_MOST_TENSORS], len(found) - _MOST_TENSORS
    groups: dict[int, list[Named]] = {}
    for each in shown:
        groups.setdefault(id(each.tensor._storage), []).append(each)
    title = _title(shown[0]) if len(groups) == 1 else f"{len(groups)} storages"
    drawing = Drawing("a storage" if len(groups) == 1 else title, title, plural(len(found), "tensor"))
    shared = [_draw_group(drawing, group, len(groups) > 1) for group in groups.values()]
    if more > 0:
        drawing.text(MARGIN, drawing.y + 14, f"… {plural(more, 'more tensor')}", "dim")
        drawing.y += 24
    if any(shared):
        drawing.box(MARGIN, drawing.y, 12, 12, f"b{SHARED} pale")
        drawing.text(MARGIN + 18, drawing.y + 10, "elements that several of these tensors read", "dim small")
        drawing.y += 16
    return drawing.picture(drawing.y + 16)


def _title(first: Named) -> str:
    tensor = first.tensor
    nbytes = tensor._storage.nbytes_
    return f"One storage of {of_bytes(nbytes)} on {tensor.device}"


def _draw_group(drawing: Drawing, group: Sequence[Named], with_title: bool) -> bool:
    """Draw the tensors of one storage. Returns whether they share elements."""
    row = _row(group)
    if with_title:
        drawing.text(MARGIN, drawing.y + 14, _title(group[0]).replace("One storage", "Storage"), "dim")
        drawing.y += 20
    if row.total:
        _draw_row(drawing, row)
    for each in group:
        _draw_tensor(drawing, each, row)
    drawing.y += 6
    return any(len(users) > 1 for users in row.users)


def _row(group: Sequence[Named]) -> _Row:
    """Choose the part of the storage to draw: its beginning, or what lies around the first element that is read."""
    thinnest = min(group, key=lambda each: each.tensor.itemsize).tensor
    unit = thinnest.itemsize
    total = thinnest._storage.nbytes_ // unit
    begins = min(each.start for each in group) // unit
    most = int((COLUMN - _END) / _LEAST_CELL)
    first = 0 if begins < most // 2 or total <= most else begins - 1
    # Labels decide how wide the cells are, and so how many there is room for.
    labels = _labels(thinnest, first, min(total - first, most))
    cell = _cell_width([*labels, str(first + most)])
    room = COLUMN - (_END if first else 0)
    if (total - first) * cell > room:
        room -= _END
    count = min(total - first, int(room / cell))
    cell = max(cell, min(40.0, room / max(count, 1)))
    last = first + count
    users: list[list[int]] = [[] for _ in range(count)]
    for each in group:
        cells = {
            byte // unit + k
            for byte in each.bytes_before(last * unit)
            for k in range(each.tensor.itemsize // unit)
        }
        for place in cells:
            if first <= place < last:
                users[place - first].append(each.number)
    return _Row(unit, first, last, total, MARGIN + (_END if first else 0), cell, labels[:count], users)


def _labels(tensor: Tensor, first: int, count: int) -> list[str]:
    found = stored(tensor, first, count) if count else []
    return [""] * count if found is None else [of_value(each) for each in found]


def _cell_width(labels: Sequence[str]) -> float:
    longest = max((len(each) for each in labels), default=1)
    return min(_MOST_CELL, max(_LEAST_CELL, longest * MONO + 8))


def _draw_row(drawing: Drawing, row: _Row) -> None:
    top = drawing.y + 16
    for place in range(row.first, row.last):
        x, colour = row.x(place * row.unit), row.hue(place)
        drawing.text(x + row.cell / 2, top - 4, place, "dim small mono", "middle")
        style = f"b{colour} {'paler' if colour == UNUSED else 'pale'}"
        drawing.box(x, top, row.cell, 26, style, 2, hint=f"position {place}, byte {place * row.unit}")
        label = row.labels[place - row.first]
        ink = "dim" if colour == UNUSED else "ink"
        drawing.text(x + row.cell / 2, top + 17, label, f"mono {ink}", "middle")
    if row.first:
        drawing.text(row.left - 8, top + 17, f"{row.first:,} …", "dim small", "end")
    if row.last < row.total:
        end = row.x(row.last * row.unit)
        drawing.text(end + 8, top + 17, f"… {row.total - row.last:,} more", "dim small")
    drawing.y = top + 26


def _draw_tensor(drawing: Drawing, each: Named, row: _Row) -> None:
    """The name and the metadata, the arrows over a strip that repeats the row, and the values."""
    tensor, colour = each.tensor, hue(each.number)
    y = drawing.y + 30
    drawing.text(MARGIN, y, each.name, f"bold t{colour}")
    # Em spaces between the words, because SVG joins other spaces.
    words = [f"size {of_shape(tensor.shape)}", f"stride {of_shape(tensor.stride())}"]
    words += [f"offset {tensor.storage_offset()}", tensor.dtype.name]
    drawing.text(WIDTH - MARGIN, y, " \u2003".join(words), "mono dim", "end")
    drawing.y = y + 8
    if tensor.numel():
        _draw_arrows(drawing, each, row)
    draw_grid(drawing, each, lambda byte: _hue_of_element(row, byte, colour))


def _hue_of_element(row: _Row, byte: int, own: int) -> int:
    """Of an element of a tensor: that of its cell, if the cell is drawn."""
    cell = byte // row.unit
    return row.hue(cell) if row.first <= cell < row.last else own


def _draw_arrows(drawing: Drawing, each: Named, row: _Row) -> None:
    """The marks of the tensor's elements, the arrow of the offset, and an arc for each stride from the first element on."""
    colour, itemsize = hue(each.number), each.tensor.itemsize
    steps = [
        (dim, stride)
        for dim, (size, stride) in enumerate(zip(each.shape, each.byte_strides, strict=True))
        if size > 1 and stride
    ]
    heights = _arc_heights([stride for _, stride in steps])
    middle = row.x(each.start) + itemsize / row.unit * row.cell / 2
    end = row.x(row.last * row.unit)
    if middle > end:
        words = "its elements lie behind the part of the storage that is drawn"
        drawing.text(MARGIN, drawing.y + 14, words, "dim small")
        drawing.y += 24
        return
    strip = drawing.y + max([16.0, *(height + 17 for height in heights)])
    drawing.box(row.left, strip, (row.last - row.first) * row.cell, _STRIP, f"b{UNUSED} paler", 1)
    for byte in sorted(each.bytes_before(row.last * row.unit)):
        if byte >= row.first * row.unit:
            width = min(itemsize / row.unit * row.cell, row.x(row.last * row.unit) - row.x(byte))
            drawing.box(row.x(byte) + 1, strip, width - 2, _STRIP, f"b{colour} bar", 2)
    for (dim, stride), height in zip(steps, heights, strict=True):
        target = middle + stride / row.unit * row.cell
        label = f"stride[{dim}] = {each.tensor.stride(dim)}"
        _draw_arc(drawing, middle, target, strip - 2, height, label, colour, end)
    if each.start and not row.first:
        y = strip + _STRIP + 9
        drawing.arrow([(row.left, y), (row.x(each.start), y)], str(colour))
        drawing.path(f"M{row.left:.1f},{y - 4}v8", f"l{colour}")
        label = f"offset = {each.tensor.storage_offset()}"
        drawing.text(row.x(each.start) + 6, y + 4, label, f"small mono t{colour}")
        strip = y
    drawing.y = strip + _STRIP + 8


def _arc_heights(strides: Sequence[int]) -> list[float]:
    """Longer strides get higher arcs, so that their labels stand above each other."""
    order = sorted(set(strides))
    return [13.0 + 17 * order.index(stride) for stride in strides]


def _draw_arc(
    drawing: Drawing, x: float, target: float, y: float, height: float, label: str, colour: int, end: float
) -> None:
    """An arc from one element to the next along a dimension; one that leaves the row ends at its edge without a head."""
    top = y - height
    inside = target <= end
    bend = min(12.0, (target - x) / 2)
    across = target - bend if inside else end
    drawing.path(f"M{x:.1f},{y}Q{x:.1f},{top:.1f} {x + bend:.1f},{top:.1f}H{across:.1f}", f"l{colour}")
    if inside:
        drawing.arrow([(across, top), (target - 2, top), (target, top + 3), (target, y)], str(colour))
    else:
        label += " …"
    # Not over the beginning of the arc, where longer arcs rise.
    left = max(x + 5, (x + across - len(label) * SMALL_MONO) / 2)
    drawing.text(min(left, WIDTH - MARGIN - len(label) * SMALL_MONO), top - 4, label, f"small mono t{colour}")
