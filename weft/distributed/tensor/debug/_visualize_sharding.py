"""Tables of the processes that have each part of a DTensor."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product

from .._api import DTensor
from .._storage import own_piece

__all__ = ["visualize_sharding"]

Range = tuple[int, int]  # the first index and the last one


def visualize_sharding(dtensor: DTensor, header: str = "", use_rich: bool = False) -> None:
    """Print which processes have which rows and columns of a DTensor, on the first process of its mesh.

    use_rich: in colours, if the packages rich and matplotlib are installed. header: not used, as in PyTorch. Nothing is printed for
    a tensor without elements.

    Raises: RuntimeError for a tensor of more than two dims.

    >>> import weft as torch
    >>> from weft.distributed.tensor import Shard, distribute_tensor
    >>> from weft.distributed.tensor.debug import visualize_sharding
    >>> torch.distributed.init_process_group("fake", rank=0, world_size=4)
    >>> mesh = torch.distributed.init_device_mesh("cpu", (2, 2))
    >>> visualize_sharding(distribute_tensor(torch.ones(4, 6), mesh, [Shard(0), Shard(1)]))
             Col 0-2    Col 3-5
    -------  ---------  ---------
    Row 0-1  cpu:0      cpu:1
    Row 2-3  cpu:2      cpu:3
    >>> torch.distributed.destroy_process_group()
    """
    if dtensor.numel() == 0:
        return
    if dtensor.dim() >= 3:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = dtensor.device_mesh
    coordinate = mesh.get_coordinate()
    if coordinate is None or any(coordinate):
        return
    rows, columns, owners = _table(dtensor)
    cells = [
        [f"{mesh.device_type}:{owners[row, column]}" if (row, column) in owners else "" for column in columns]
        for row in rows
    ]
    if use_rich and find_spec("rich") and find_spec("matplotlib"):
        _print_rich(dtensor.shape, rows, columns, cells)
        return
    print(_as_text(rows, columns, cells))


def _table(dtensor: DTensor) -> tuple[list[Range], list[Range], dict[tuple[Range, Range], str]]:
    """The ranges of rows and of columns, and the processes that have each pair of these. A vector has one column."""
    mesh = dtensor.device_mesh
    owners: dict[tuple[Range, Range], list[str]] = {}
    for coordinate in product(*map(range, mesh.shape)):
        pieces = [_range(dtensor, dim, coordinate) for dim in range(dtensor.dim())]
        row, column = (*pieces, (0, 0))[:2]
        owners.setdefault((row, column), []).append(str(int(mesh.mesh[coordinate])))
    rows, columns = (sorted({place[way] for place in owners}) for way in (0, 1))
    return rows, columns, {place: ",".join(ranks) for place, ranks in owners.items()}


def _range(dtensor: DTensor, dim: int, coordinate: Sequence[int]) -> Range:
    """What a process has of a dim. A part without elements is at the end."""
    size = dtensor.shape[dim]
    count, start = own_piece(size, dim, dtensor.device_mesh, dtensor.placements, coordinate)
    return (start, start + count - 1) if count else (size, size - 1)


def _as_text(rows: Sequence[Range], columns: Sequence[Range], cells: Sequence[Sequence[str]]) -> str:
    """The table in the format of the package tabulate, whose columns are wider than their headers."""
    names = [f"Col {first}-{last}" for first, last in columns]
    body = [[f"Row {first}-{last}", *row] for (first, last), row in zip(rows, cells)]
    widths = [max(map(len, column)) for column in zip(*body)]
    widths[1:] = [max(width, len(name) + 2) for width, name in zip(widths[1:], names)]
    lines = [["", *names], ["-" * width for width in widths], *body]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


# The size of the table of a square tensor, in lines and in characters. A line is 2.5 times as high as a character is wide.
_HEIGHT, _WIDTH = 10, 25


def _print_rich(
    shape: Sequence[int], rows: Sequence[Range], columns: Sequence[Range], cells: Sequence[Sequence[str]]
) -> None:
    """Print cells whose sizes are in proportion to those of the parts, with a colour for each."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from rich.align import Align
    from rich.box import SQUARE
    from rich.console import Console
    from rich.padding import Padding
    from rich.style import Style
    from rich.table import Table

    console = Console(width=80)
    is_coloured = console.color_system is not None
    table = Table(
        show_header=False,
        show_lines=not is_coloured,
        padding=0,
        highlight=not is_coloured,
        pad_edge=False,
        box=None if is_coloured else SQUARE,
    )
    total = int(_HEIGHT * (shape[1] if len(shape) == 2 else 1) / shape[0]) * _WIDTH / _HEIGHT
    for place, (row, texts) in enumerate(zip(rows, cells)):
        height = int((row[1] - row[0]) / shape[0] * _HEIGHT)
        line = []
        for number, (column, text) in enumerate(zip(columns, texts)):
            width = int((column[1] - column[0]) / (shape[1] if len(shape) == 2 else 1) * total)
            left, right = _halves(width - len(text) - 2, is_coloured)
            above, below = _halves(height - 2, is_coloured)
            colour = to_hex(colormaps["tab20b"](place * len(columns) + number)) if is_coloured else None
            style = Style(bgcolor=colour, color=_readable_on(colour) if colour else None)
            centred = Align(text, "center", vertical="middle")
            line.append(Padding(centred, (above, right, below, left), style=style))
        table.add_row(*line)
    console.print(table, end="\n\n")


def _halves(count: int, with_margin: bool) -> tuple[int, int]:
    """The padding before and behind a text."""
    before, rest = divmod(count, 2)
    return max(before + with_margin, 0), max(before + rest + with_margin, 0)


def _readable_on(colour: str) -> str:
    """Black on light colours, white on dark ones: by their brightness as of television (ITU-R BT.601)."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 186 else "#ffffff"
