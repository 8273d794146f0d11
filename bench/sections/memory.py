"""By how much a statement raises the peak of resident memory, in a fresh process."""

from dataclasses import replace
from textwrap import indent

from bench.cases import Case, Section
from bench.sections import chains, files, products, reductions, training

CHAINS = (
    "relu(a*b+c) 1e7",
    "gelu by tanh 1e7",
    "Black-Scholes 1e7",
    "softmax 1e7",
    "squared error 1e7",
    "relu(a*b+c), backward 1e7",
    "gelu by tanh, backward 1e7",
)


def named(section: Section, *names: str) -> list[Case]:
    return [case for case in section.cases if case.name in names]


def three_steps(case: Case) -> Case:
    """The first three steps: the first one makes Adam's moments."""
    return replace(case, stmt=f"for _ in range(3):\n{indent(case.stmt, '    ')}\nNone")


SECTION = Section(
    "memory",
    "peak memory",
    tuple(
        case.memory()
        for case in (
            *named(chains.SECTIONS[1], *CHAINS),
            *named(products.SECTIONS[0], "2000x2000x2000"),
            *named(products.SECTIONS[1], "1024x1024x1024"),
            *named(reductions.SECTION, "sum dim 0", "var dim 1"),
            *map(three_steps, training.SECTION.cases),
            *files.CASES,
        )
    ),
    mean=1.0,
    floor=1.0,
    implementations=("torch", "weft"),
    counted=False,
)
