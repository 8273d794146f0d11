"""`python -m bench`: measure, and print one table."""

import argparse
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

from bench import programs, report
from bench.cases import cases
from bench.rounds import FULL, QUICK, Row, Worker, measure

IMPLEMENTATIONS = ("torch", "weft", "numpy")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="weft beside PyTorch and NumPy")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", metavar="GLOB", default="*", help='rows to measure, such as "map*/exp"')
    parser.add_argument(
        "--impl", metavar="LIST", default=",".join(IMPLEMENTATIONS), help="default: %(default)s"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to FILE, too")
    options = parser.parse_args()
    implementations = options.impl.split(",")
    if unknown := set(implementations) - set(IMPLEMENTATIONS):
        parser.error(f"there is no implementation {', '.join(sorted(unknown))}")
    effort = QUICK if options.quick else FULL

    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        print(report.markdown(row, implementations), flush=True)

    print(report.header(implementations), flush=True)
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name)) for name in implementations}
        for case in cases():
            if fnmatch(case.id, options.only):
                add(measure(case, workers, effort))
    for id, measure_program in programs.rows(implementations, effort.rounds).items():
        if fnmatch(id, options.only):
            add(measure_program())
    print(f"\n{report.footer(rows)}")
    if options.json:
        options.json.write_text(report.to_json(rows))


if __name__ == "__main__":
    main()
