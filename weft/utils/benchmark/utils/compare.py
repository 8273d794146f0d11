"""`Compare` writes many measurements as one table, in PyTorch's layout."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from operator import attrgetter

import numpy as np

from .common import Measurement, log10, ordered_unique, select_unit, trim_sigfig, unit_to_english

BOLD = "\033[1m"
RESET = "\033[0m" * 2
BEST = "\033[92m" + BOLD  # bright green
NEAR_BEST = "\033[34m" + BOLD  # blue
TWICE_BEST = "\033[2m\033[91m"  # dim bright red
FIVE_TIMES_BEST = "\033[31m" + BOLD  # red

SEPARATOR = "  |  "
SPREAD_WIDTH = 7  # of a mark such as " (! 9%)"; longer ones shift the rest of their line, as in PyTorch


class Colorize(Enum):
    """Which cells of a table compete for the colour of the best."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements for each label: a row per sub_label, a column per description.

    Measurements of equal `TaskSpec`s are merged; the cells are medians. Rows are grouped by
    num_threads, and carry their env where it differs.

    >>> from weft.utils.benchmark import TaskSpec
    >>> specs = [TaskSpec("x + y", "pass", label="add", description=f"n={n}") for n in (10, 1000)]
    >>> results = [Measurement(1, [1e-6], specs[0]), Measurement(1, [2e-6], specs[1])]
    >>> Compare(results).print()  # doctest: +NORMALIZE_WHITESPACE
    [------------ add ------------]
                 |  n=10  |  n=1000
    1 threads: --------------------
          x + y  |  1.0   |   2.0
    <BLANKLINE>
    Times are in microseconds (us).
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._style = Style()
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements to the table; ValueError if anything else is among them."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Show only the figures that the spread of the times supports."""
        self._style.trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the cells by their distance from the best of their column, or of their row."""
        self._style.colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark the cells whose times spread suspiciously much."""
        self._style.mark_spread = True

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        by_label: dict[str | None, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            by_label.setdefault(result.label, []).append(result)
        return "\n".join(render(label, results, self._style) for label, results in by_label.items())


@dataclass
class Style:
    """What the user asked of a `Compare`."""

    trim: bool = False
    mark_spread: bool = False
    colorize: Colorize = Colorize.NONE


@dataclass
class Row:
    """One line of a table: a measurement or None for each column."""

    num_threads: int
    env: str | None
    name: str
    cells: list[Measurement | None]


Column = list[Measurement | None]


def render(label: str | None, results: Sequence[Measurement], style: Style) -> str:
    """Return the table of all measurements that share a label."""
    headings = ordered_unique(m.description for m in results)
    rows = to_rows(results, headings)
    unit, scale = select_unit(min(m.median for m in results))

    columns = [list(column) for column in zip(*(row.cells for row in rows), strict=True)]
    texts = [row_names(rows)] + [cell_texts(column, scale, style) for column in columns]
    for heading, column in zip(["", *headings], texts, strict=True):
        column.insert(0, heading or "")
    widths = [max(map(len, column)) for column in texts]

    lines = [SEPARATOR.join(column[0].center(width) for column, width in zip(texts, widths, strict=True))]
    total_width = len(lines[0])
    row_texts = iter(list(zip(*texts, strict=True))[1:])
    for num_threads, group in groupby(rows, attrgetter("num_threads")):
        lines.append(f"{num_threads} threads: ".ljust(total_width, "-"))
        group_rows = list(group)
        for row in group_rows:
            name, *cells = next(row_texts)
            cells = [text.center(width) for text, width in zip(cells, widths[1:], strict=True)]
            lines.append(
                SEPARATOR.join([name.ljust(widths[0]), *colored(cells, row, group_rows, style.colorize)])
            )

    title = f" {label or ''} ".center(total_width - 2, "-")
    footer = f"Times are in {unit_to_english(unit)}s ({unit}).\n"
    if style.mark_spread and any(m.has_warnings for m in results):
        footer += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
    return "\n".join([f"[{title}]", *lines, "", footer])


def to_rows(results: Sequence[Measurement], headings: Sequence[str | None]) -> list[Row]:
    """Return the measurements in rows, ordered by number of threads and env; the last one wins a cell."""
    rows: dict[tuple[int, str | None, str], Row] = {}
    for m in results:
        key = (m.num_threads, m.env, m.as_row_name)
        row = rows.setdefault(key, Row(*key, cells=[None] * len(headings)))
        row.cells[headings.index(m.description)] = m
    return sorted(rows.values(), key=lambda row: (row.num_threads, row.env or ""))


def row_names(rows: Sequence[Row]) -> list[str]:
    """Return the first column: the env, if there are several, where it changes within a group; then the name."""
    envs = {row.env for row in rows}
    several = len(envs) > 1
    width = 4 + (max(len(str(env)) for env in envs) if several else 0)
    names, previous = [], None
    for row in rows:
        group = (row.num_threads, row.env)
        env = f"({row.env})" if several and group != previous else ""
        names.append(f"  {env.ljust(width)}{row.name}")
        previous = group
    return names


def cell_texts(column: Column, scale: float, style: Style) -> list[str]:
    """Return the medians of one column, aligned at the decimal point."""
    measured = [m for m in column if m is not None]
    digits = [int(np.ceil(log10(m.median / scale))) for m in measured]
    decimals = 1
    if style.trim:
        decimals = min(max(m.significant_figures - d, 0) for m, d in zip(measured, digits, strict=True))
    width = max(digits) + decimals + (1 if decimals else 0)
    mark_width = SPREAD_WIDTH if style.mark_spread and any(m.has_warnings for m in measured) else 0

    def text(value: float, mark: str = "") -> str:
        return f"{value:>{max(width, 0)}.{decimals}f}{mark:>{mark_width}}"

    texts = []
    for m in column:
        if m is None:
            texts.append(" " * len(text(1)))
            continue
        value = m.median / scale
        mark = f" (! {m.iqr / m.median * 100:.0f}%)" if mark_width and m.has_warnings else ""
        texts.append(text(trim_sigfig(value, m.significant_figures) if style.trim else value, mark))
    return texts


def colored(cells: list[str], row: Row, group: Sequence[Row], colorize: Colorize) -> list[str]:
    """Return the cells of a row, coloured against the best of the row, or of the column within the row's group."""
    if colorize is Colorize.NONE:
        return cells
    if colorize is Colorize.ROWWISE:
        rivals = [row.cells] * len(cells)
    else:
        rivals = [list(column) for column in zip(*(r.cells for r in group), strict=True)]
    return [
        text if m is None else colored_text(text, m.median, min(r.median for r in column if r is not None))
        for text, m, column in zip(cells, row.cells, rivals, strict=True)
    ]


def colored_text(text: str, value: float, best: float) -> str:
    """`text`, coloured for a time of `value` seconds where the best is `best`."""
    if value <= best * 1.01 or value <= best + 100e-9:
        code = BEST
    elif value <= best * 1.1:
        code = NEAR_BEST
    elif value >= best * 5:
        code = FIVE_TIMES_BEST
    elif value >= best * 2:
        code = TWICE_BEST
    else:
        return text
    return code + text + RESET
