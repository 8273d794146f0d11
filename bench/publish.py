"""Replacing some sections in a file of `results/`, which otherwise has all sections of one run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import report
from bench.report import Result


def update(path: Path, here: dict[str, Any], results: Sequence[Result], order: Sequence[str]) -> None:
    """Replace the sections that were measured now, or add them at their place in `order`, a list of keys."""
    machine, old = report.from_json(path.read_text())
    sections = {result.key: result for result in old}
    sections |= {result.key: replace(result, measured=provenance(here)) for result in results}
    path.write_text(
        report.to_json(machine, sorted(sections.values(), key=lambda each: order.index(each.key)))
    )


def provenance(here: dict[str, Any]) -> str:
    """The end of a sentence on sections."""
    cores = "1 core" if here["cores"] == 1 else f"{here['cores']} cores"
    return (
        f"measured apart from the other sections, on {cores}: commit {here['commit']}, {here['date']}; "
        f"the load average was {here['load']:.1f} when the run began."
    )
