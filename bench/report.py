"""Rows and sections as Markdown and as JSON."""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.cases import Section
from bench.rounds import Row

TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
SIZE_UNITS = ((2**20, "MiB"), (2**10, "KiB"), (1, "B"))
TITLES = {"torch": "PyTorch", "compiled": "torch.compile", "numpy": "NumPy", "jax": "JAX", "limit": "limit"}
MEAN_OF_ALL = 2.0  # the geometric mean wanted over all rows of counted sections


@dataclass
class Result:
    """A section that was measured."""

    key: str
    title: str
    mean: float | None
    floor: float | None
    counted: bool
    rows: list[Row] = field(default_factory=list)
    measured: str = ""  # when and where, if not with the other sections (`publish.py`)

    @classmethod
    def of(cls, section: Section) -> "Result":
        return cls(section.key, section.title, section.mean, section.floor, section.counted)

    @property
    def ratios(self) -> list[float]:
        return [row.ratio for row in self.rows if row.ratio is not None]

    @property
    def worst(self) -> Row | None:
        known = [row for row in self.rows if row.ratio is not None]
        return min(known, key=lambda row: row.ratio or 0.0, default=None)


def quantity(value: float, unit: str) -> str:
    """Three figures and a unit: `1.25 ms`."""
    if unit == "s":
        value = float(f"{value:.3g}")  # first, so that 999.9 us are 1 ms
    units = TIME_UNITS if unit == "s" else SIZE_UNITS
    scale, name = next((u for u in units if abs(value) >= u[0]), units[-1])
    return f"{value / scale:.3g} {name}" if abs(value) < 1000 * scale else f"{value / scale:.0f} {name}"


def geometric_mean(ratios: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None


def header(implementations: Iterable[str]) -> str:
    """The head of a table of rows."""
    titles = ["", *(TITLES.get(name, name) for name in implementations), "PyTorch / weft"]
    return head(titles)


def head(titles: list[str]) -> str:
    return "\n".join(line(cells) for cells in (titles, [":--", *["--:"] * (len(titles) - 1)]))


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown(row: Row, implementations: Iterable[str]) -> str:
    """One line of a table; the ratio is bold where it, or weft's value, is not what is wanted."""
    return line([row.name, *(cell(row, name) for name in implementations), mark(number(row.ratio), row.met)])


def cell(row: Row, implementation: str) -> str:
    if implementation in row.values:
        return quantity(row.values[implementation], row.unit)
    return "error" if implementation in row.errors else ""


def number(value: float | None) -> str:
    if value is None:
        return ""
    if value < 0.01:
        return f"{value:.1g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def mark(text: str, met: bool | None) -> str:
    return f"**{text or 'no'}**" if met is False else text


def reached(value: float | None, wanted: float | None) -> bool | None:
    return None if value is None or wanted is None else value >= wanted


def verdict(result: Result) -> str:
    """One line on a section, below its rows."""
    mean, worst = geometric_mean(result.ratios), result.worst
    if mean is None or worst is None:
        return ""
    wanted = [f" (wanted: {number(target)})" if target else "" for target in (result.mean, result.floor)]
    return (
        f"Geometric mean {number(mean)}{wanted[0]}; worst row {number(worst.ratio)}{wanted[1]}, {worst.name}."
    )


def summary(results: Sequence[Result]) -> str:
    """One line for each section, and one for all rows."""
    lines = [head(["section", "rows", "geometric mean", "wanted", "worst row", "wanted", ""])]
    for result in results:
        if worst := result.worst:
            mean = geometric_mean(result.ratios)
            cells = [result.title, str(len(result.ratios)), mark(number(mean), reached(mean, result.mean))]
            cells += [number(result.mean), mark(number(worst.ratio), reached(worst.ratio, result.floor))]
            lines.append(line([*cells, number(result.floor), worst.name]))
    ratios = [ratio for result in results if result.counted for ratio in result.ratios]
    if mean := geometric_mean(ratios):
        cells = ["all rows of time", str(len(ratios)), mark(number(mean), mean >= MEAN_OF_ALL)]
        lines.append(line([*cells, number(MEAN_OF_ALL), "", "", ""]))
    return "\n".join(lines)


def errors(results: Iterable[Result]) -> str:
    found = ((row, *error) for result in results for row in result.rows for error in row.errors.items())
    return "\n".join(f"- {row.id}: {name}: {error}" for row, name, error in found)


def heading(machine: dict[str, Any]) -> str:
    """One line that names the processor and what else the numbers depend on."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    level = f", of which all libraries use {machine['level']} only" if machine.get("level") else ""
    return (
        f"{machine['processor']} ({machine['model']}), {machine['cores']} cores, {machine['cache']} cache, "
        f"{' '.join(machine['vectors'])}{level}; {versions}; {machine['system']}; commit {machine['commit']}, {machine['date']}"
    )


def to_json(machine: dict[str, Any], results: Iterable[Result]) -> str:
    """All rows and the machine, for tools and for `pages.py`."""
    return (
        json.dumps({"machine": machine, "sections": [asdict(result) for result in results]}, indent=1) + "\n"
    )


def from_json(text: str) -> tuple[dict[str, Any], list[Result]]:
    data = json.loads(text)
    return data["machine"], [
        Result(**{**section, "rows": [Row(**row) for row in section["rows"]]}) for section in data["sections"]
    ]
