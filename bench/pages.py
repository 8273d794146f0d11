"""`python -m bench.pages`: docs/performance.md, its pictures and the README's table, from the numbers in `results/`."""

import re
import sys
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bench import machine, picture, report
from bench.report import Result, number, quantity
from bench.rounds import ROOT, Row

PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
BUSY = 0.5  # a load average from which on other programs disturbed the numbers
NOISE = 0.95  # of the limit: two measurements of the same work differ by as much
START, END = "<!-- written by python -m bench.pages -->", "<!-- end -->"
# Sections that do not enter the mean of all rows, but that the README shows, and their titles there.
IN_README = {
    "memory": "peak memory",
    "new sizes calls": "calls whose sizes are new",
    "new sizes again": "the same calls, the second to the tenth time",
    "new sizes programs": "programs whose sizes change",
    "new sizes memory": "memory that new sizes take",
    "first use": "import and first use of operations, with filled and empty kernel cache",
    "program": "import, size of the installation, examples",
}

Run = tuple[dict[str, Any], list[Result]]

INTRODUCTION = """# How fast weft is

This page is made by `python -m bench.pages` from the numbers in [bench/results](../bench/results), one file for each
processor; [bench](../bench) says how they are measured and what each row is. `make performance` measures the
processor at hand (twenty minutes, on a machine that does nothing else) and writes this page anew.

Ratios are PyTorch's time, or memory, over weft's: **above 1, weft is better**. PyTorch runs eagerly, in a process of its
own, with its default number of threads, and the two take turns. Bold ratios miss what weft aims at. The *limit*
is the time in which this machine only reads and writes the bytes that the row has to read and write.

With nothing else running, a second thread gains weft as much as PyTorch in loops over elements: on AMD Zen 3, with one thread and with two
(PyTorch in brackets), -x of 10^6 floats takes 122 us and 65 (129 and 67), of 10^5 17 and 8 (13 and 9), of 2 * 10^5 26 and 26 (25 and 28),
the sum of 10^7 floats 2.5 ms and 1.4 (4.0 and 1.9). In products of matrices it gains weft less: 512x512 takes 4.3 ms and 2.4 (4.5 and 2.2).

Three losses had a cause in weft. Two of them looked like those of a second thread. A worker thread falls asleep 100 us after its last job, and loops
of up to 150 us are shared only with a worker that is awake. So in a row of loops of 100 to 150 us each found it asleep and ran on one
thread. Now the end of such a loop wakes it: the product of two 192x192 matrices took 155 us, and takes 76 to 108. The second loss was in
loops of few operations. They took one vector at a time, and then LLVM reads memory in the instruction that computes. On AMD Zen 3 and one
thread max(x, 0) of 10^6 floats took 218 us so. Now two vectors at a time are loaded first, and it takes 141 us.

The third loss was in loops of many operations, most of which need the result of the one before. With one vector at a time the processor
would have to look several hundred instructions ahead to always find one that it can begin, and it cannot look that far. Now such loops
compute four vectors side by side: on AMD Zen 5 and one thread, exp of 10^6 floats takes 95 us instead of 124, mish 0.71 ms instead of 1.21,
and at the level x86-64-v3 0.25 instead of 0.29 and 1.50 instead of 2.44. The tables of the Zen 3 are from before this change; the Zen 3
is in a virtual machine whose speed changes by a factor of two within minutes.

In every process the C library keeps freed blocks, as weft does. By default it gives large ones back to the system, or not,
depending on what the process freed before, and then each run pays for fresh pages: with one thread on AMD Zen 4, gelu written out on
10^6 floats took PyTorch 5.6 ms and 670 page faults by default, and 4.5 ms and none with blocks kept.
"""


def main() -> None:
    runs = read()
    for path, text in pages(runs).items():
        path.write_text(text)
    for row in unexplained(runs):
        print(f"bench/losses.toml has no sentence on {row}", file=sys.stderr)


def read() -> list[Run]:
    """The numbers of every processor, in the order of the files' names; those of levels of x86-64 behind those of the whole processor."""
    paths = sorted((ROOT / "bench" / "results").glob("*.json"), key=lambda path: path.stem)
    return [report.from_json(path.read_text()) for path in paths]


def pages(runs: Sequence[Run]) -> dict[Path, str]:
    """Every file that is made from the numbers, and its text."""
    if not runs:
        return {PAGE: f"{INTRODUCTION}\nNo processor has been measured yet.\n"}
    found = {PAGE: INTRODUCTION + "".join(processor(*run) for run in runs)}
    for here, results in runs:
        if sizes := section(results, "sizes"):
            found[PAGE.with_name(picture_name(here))] = picture.draw(sizes)
    readme = README.read_text()
    before, _, rest = readme.partition(START)
    after = rest.partition(END)[2]
    whole = [run for run in runs if not run[0].get("level")]
    found[README] = f"{before}{START}\n\n{short_table(whole)}\n\n{END}{after}"
    return found


def section(results: Sequence[Result], key: str) -> Result | None:
    return next((result for result in results if result.key == key and result.rows), None)


def picture_name(here: dict[str, Any]) -> str:
    return f"performance-{machine.slug(here)}.svg"


def name_of(here: dict[str, Any]) -> str:
    level = f", only {here['level']}" if here.get("level") else ""
    return f"{here['processor']} ({here['model'].partition(',')[0]}{level})"


def processor(here: dict[str, Any], results: Sequence[Result]) -> str:
    """The part of the page on one processor."""
    parts = [f"\n## {name_of(here)}\n", f"{report.heading(here)}.\n"]
    if here["load"] > BUSY:
        parts.append(
            f"**The load average was {here['load']:.1f} when the run began**: other programs may have disturbed these numbers.\n"
        )
    if remark := here.get("remark"):
        parts.append(f"{remark}\n")
    parts += [f"{sentence}\n" for sentence in measured_apart(results)]
    parts.append(f"{report.summary(results)}\n")
    if section(results, "sizes"):
        parts.append(f"![Time over size for weft, PyTorch, NumPy and the limit]({picture_name(here)})\n")
    parts.append(
        f"### Rows on which weft loses\n\n{losses(results, here.get('level', ''))}\n\n### All rows\n"
    )
    parts += [details(result) for result in results]
    return "\n".join(parts)


def measured_apart(results: Sequence[Result]) -> list[str]:
    """Which sections are of other runs (`publish.py`), and of which."""
    titles: dict[str, list[str]] = {}
    for result in results:
        if result.measured:
            titles.setdefault(result.measured, []).append(f'"{result.title}"')
    return [f"{', '.join(names)}: {sentence}" for sentence, names in titles.items()]


def losses(results: Sequence[Result], level: str = "") -> str:
    """Rows below 1, worst first, and why. A sentence stands once; other rows name the row where it stands."""
    rows = sorted(losing(results), key=lambda row: row.ratio or 0.0)
    if not rows:
        return "None."
    lines = [
        report.line(["row", "PyTorch", "weft", "PyTorch / weft", "why"]),
        "| :-- | --: | --: | --: | :-- |",
    ]
    stands: dict[str, str] = {}  # the row at which a sentence stands
    for row in rows:
        cells = [quantity(row.values[name], row.unit) for name in ("torch", "weft")]
        sentence = reason(row, level) or ""
        first = stands.setdefault(sentence, row.id)
        told = sentence if first == row.id or not sentence else f"See {first}."
        lines.append(report.line([row.id, *cells, number(row.ratio), f"{told} {distance(row)}".strip()]))
    return "\n".join(lines)


def losing(results: Sequence[Result]) -> list[Row]:
    return [row for result in results for row in result.rows if row.ratio is not None and row.ratio < 1]


def distance(row: Row) -> str:
    """How far both are from the limit, where that is known.

    In small rows the limit is mostly the cost of its calls of NumPy, so that PyTorch or weft is faster.
    """
    limit = row.values.get("limit")
    if not limit or NOISE * limit > min(row.values["weft"], row.values["torch"]):
        return ""
    weft, torch = (number(row.values[name] / limit) for name in ("weft", "torch"))
    return f"weft takes {weft} times the limit, PyTorch {torch}."


def reason(row: Row, level: str = "") -> str | None:
    """The sentence of the first pattern in losses.toml that the row matches, or that of the level of x86-64."""
    found = next((why for pattern, why in REASONS.items() if fnmatchcase(row.id, pattern)), None)
    return found or LEVELS.get(level)


REASONS: dict[str, str] = tomllib.loads((ROOT / "bench" / "losses.toml").read_text())
LEVELS: dict[str, str] = REASONS.pop("levels")  # type: ignore[assignment]


def unexplained(runs: Sequence[Run]) -> list[str]:
    return sorted(
        {
            row.id
            for here, results in runs
            for row in losing(results)
            if not (reason(row, here.get("level", "")) or distance(row))
        }
    )


def details(result: Result) -> str:
    """The rows of a section, folded."""
    names = [name for name in ORDER if any(name in {*row.values, *row.errors} for row in result.rows)]
    rows = "\n".join(report.markdown(row, names) for row in result.rows)
    table = f"{report.header(names)}\n{rows}\n\n{report.verdict(result)}".strip()
    return f"<details><summary>{result.title}</summary>\n\n{table}\n\n</details>\n"


ORDER = ("torch", "weft", "compiled", "numpy", "jax", "limit")


def short_table(runs: Sequence[Run]) -> str:
    """The README's table: the mean and the worst row of each section, one number in a cell."""
    columns = [f"{name_of(here)}, {what}" for here, _ in runs for what in ("mean", "worst row")]
    lines = [report.head(["PyTorch / weft", *columns])]
    for key, title in shown(runs).items():
        cells = []
        for _, results in runs:
            result = section(results, key)
            worst = result.worst if result else None
            cells += [
                number(report.geometric_mean(result.ratios)) if result else "",
                number(worst.ratio if worst else None),
            ]
        lines.append(report.line([title, *cells]))
    ratios = [
        [ratio for result in results if result.counted for ratio in result.ratios] for _, results in runs
    ]
    cells = [cell for each in ratios for cell in (number(report.geometric_mean(each)), number(min(each)))]
    lines.append(report.line(["all rows of time", *cells]))
    return "\n".join(lines)


def shown(runs: Sequence[Run]) -> dict[str, str]:
    """The sections of the README's table, in the order of the report."""
    found = {}
    for _, results in runs:
        for result in results:
            if result.ratios and (result.counted or result.key in IN_README):
                found[result.key] = re.sub(r"; forward.*", "", IN_README.get(result.key, result.title))
    return found


if __name__ == "__main__":
    main()
