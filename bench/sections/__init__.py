"""The sections of the benchmark, in the order of the report."""

from bench.cases import Section
from bench.sections import (
    calls,
    chains,
    convolution,
    files,
    layout,
    linalg,
    memory,
    nested,
    pointwise,
    products,
    quantized,
    recorded,
    reductions,
    rows,
    sparse,
    training,
)

SECTIONS: tuple[Section, ...] = (
    calls.SECTION,
    recorded.SECTION,
    *chains.SECTIONS,
    *pointwise.SECTIONS,
    rows.SECTION,
    layout.SECTION,
    reductions.SECTION,
    linalg.SECTION,
    *products.SECTIONS,
    sparse.SECTION,
    nested.SECTION,
    quantized.SECTION,
    convolution.SECTION,
    training.SECTION,
    files.SECTION,
    memory.SECTION,
)
