"""Rows as Markdown and as JSON."""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict

from bench.rounds import Row

TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
SIZE_UNITS = ((2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def quantity(value: float, unit: str) -> str:
    """Three figures and a unit: `1.25 ms`."""
    units = TIME_UNITS if unit == "s" else SIZE_UNITS
    scale, name = next((u for u in units if abs(value) >= u[0]), units[-1])
    return f"{value / scale:.3g} {name}" if abs(value) < 1000 * scale else f"{value / scale:.0f} {name}"


def header(implementations: list[str]) -> str:
    """The head of the table."""
    titles = ["", *implementations, "torch / weft", "target", "met"]
    return "\n".join(line(cells) for cells in (titles, [":--", *["--:"] * (len(titles) - 2), ":-:"]))


def markdown(row: Row, implementations: list[str]) -> str:
    """One line of the table."""
    cells = [row.id]
    for name in implementations:
        cells.append(
            quantity(row.values[name], row.unit)
            if name in row.values
            else "error"
            if name in row.errors
            else ""
        )
    cells.append("" if row.ratio is None else f"{row.ratio:.2f}")
    cells.append("" if row.target is None else f"{row.target:.2f}")
    cells.append({None: "", True: "yes", False: "**no**"}[row.met])
    return line(cells)


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def footer(rows: list[Row]) -> str:
    """How many targets are met, and what went wrong."""
    known = [row for row in rows if row.met is not None]
    lines = [f"{sum(bool(row.met) for row in known)} of {len(known)} targets met.", ""]
    lines += [f"- {row.id}: {name}: {error}" for row in rows for name, error in row.errors.items()]
    return "\n".join(lines)


def to_json(rows: list[Row]) -> str:
    """All rows and the machine, for tools."""
    machine = {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()}
    lines = [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows]
    return json.dumps({"machine": machine, "rows": lines}, indent=1)
