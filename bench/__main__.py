"""`python -m bench`: measure, print a table for each section and a summary."""

import argparse
import importlib.util
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from bench import levels, machine, programs, publish, report
from bench.cases import Section
from bench.new_sizes import rows as new_sizes
from bench.report import Result
from bench.rounds import FULL, QUICK, Effort, Row, Worker, measure
from bench.sections import SECTIONS

IMPLEMENTATIONS = ("torch", "weft", "compiled", "numpy", "jax", "limit")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="weft beside PyTorch, NumPy and JAX")
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter rounds, without torch.compile"
    )
    parser.add_argument(
        "--only",
        metavar="GLOB",
        default="*",
        help='rows to measure, such as "chains/*1e6", or sections, such as "new sizes*"',
    )
    parser.add_argument("--impl", metavar="LIST", help=f"some of {','.join(IMPLEMENTATIONS)}")
    parser.add_argument(
        "--json",
        metavar="PATH",
        type=Path,
        help="write the numbers to a file; in a folder, to one named after the processor",
    )
    options = parser.parse_args()
    implementations = options.impl.split(",") if options.impl else available(options.quick)
    if unknown := set(implementations) - set(IMPLEMENTATIONS):
        parser.error(f"there is no implementation {', '.join(sorted(unknown))}")
    try:
        levels.limit()
    except ValueError as error:
        parser.error(str(error))
    here = machine.describe()
    path = destination(parser, options, here)

    print(report.heading(here), flush=True)
    start = time.monotonic()
    results = run(options.only, implementations, QUICK if options.quick else FULL)
    if not results:
        parser.error(f"--only: no row is named {options.only}; bench/README.md lists the sections")
    print(
        f"\n## Summary: PyTorch's time (or memory) / weft's; above 1, weft is better\n\n{report.summary(results)}"
    )
    if failures := report.errors(results):
        print(f"\n{failures}")
    print(f"\nMeasured in {(time.monotonic() - start) / 60:.1f} minutes.")
    if path and replaces_sections(options):
        publish.update(path, here, results, keys())
    elif path:
        path.write_text(report.to_json(here, results))


def destination(
    parser: argparse.ArgumentParser, options: argparse.Namespace, here: dict[str, Any]
) -> Path | None:
    """The file for the numbers, if they are wanted."""
    path: Path | None = options.json
    if path is None:
        return None
    if not path.is_dir():
        if not path.parent.is_dir():
            parser.error(f"--json: there is no folder {path.parent}")
        return path
    if "/" in options.only or options.impl:
        parser.error(
            "--json: a folder has complete sections, so --impl and rows need a file: --json numbers.json"
        )
    path /= f"{machine.slug(here)}.json"
    if replaces_sections(options) and not path.exists():
        parser.error(f"--only: there is no {path} of which sections could be replaced")
    return path


def replaces_sections(options: argparse.Namespace) -> bool:
    """Whether the run measures some sections for a file that has all."""
    return options.json.is_dir() and options.only != "*"


def keys() -> list[str]:
    """Those of all sections, in the order of the report."""
    others = [*new_sizes.sections(IMPLEMENTATIONS, QUICK), *programs.sections(IMPLEMENTATIONS, QUICK)]
    return [section.key for section in (*SECTIONS, *(section for section, _ in others))]


def available(quick: bool) -> list[str]:
    """What is installed here; compilations take longer than a quick run may."""
    missing = {"jax"} if importlib.util.find_spec("jax") is None else set()
    if quick or not (shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")):
        missing.add("compiled")
    return [name for name in IMPLEMENTATIONS if name not in missing]


def run(only: str, implementations: Sequence[str], effort: Effort) -> list[Result]:
    """Measure all rows of which the id matches `only`, and print them."""
    results = []
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name)) for name in implementations}
        for section in SECTIONS:
            names = [name for name in section.implementations if name in implementations]
            cases = [
                partial(measure, case, section, workers, effort)
                for case in section.cases
                if is_chosen(section, case.name, only)
            ]
            results.append(show(Result.of(section), names, cases))
    for section, rows in (
        *new_sizes.sections(implementations, effort),
        *programs.sections(implementations, effort),
    ):
        names = [name for name in section.implementations if name in implementations]
        chosen = [row for name, row in rows.items() if is_chosen(section, name, only)]
        results.append(show(Result.of(section), names, chosen))
    return [result for result in results if result.rows]


def is_chosen(section: Section, name: str, only: str) -> bool:
    """Whether a row is measured: a pattern with a slash is of rows, one without is of sections."""
    return fnmatch(f"{section.key}/{name}" if "/" in only else section.key, only)


def show(result: Result, implementations: Sequence[str], rows: Sequence[Callable[[], Row]]) -> Result:
    """Measure the rows of a section and print each as soon as it is there."""
    if rows:
        print(f"\n## {result.title}\n\n{report.header(implementations)}", flush=True)
    for row in rows:
        result.rows.append(row())
        print(report.markdown(result.rows[-1], implementations), flush=True)
    if rows:
        print(f"\n{report.verdict(result)}", flush=True)
    return result


if __name__ == "__main__":
    main()
