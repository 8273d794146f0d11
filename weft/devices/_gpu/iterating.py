"""Elements that take a loop each: random numbers by rejection, series and continued fractions (`engine/iterations.py`).

A thread computes whole elements. Each element has random words of its own: the counters of Philox whose thread is the element's number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import float64, int64, uint64
from ...engine import special
from ...engine.approx.circular import cos
from ...engine.approx.exponential import exp
from ...engine.approx.logarithm import log, log1p
from ...engine.expr import Expr, load, postorder
from ...engine.iterations import Cases
from ...engine.kernel import param_letters
from ...engine.llvm import emit
from .generator import PhiloxGenerator
from .kernel import Kernel
from .philox import WORDS, wide, words
from .target import Target

# Counters that a draw takes from the generator for each element. A turn uses one or two. The samplers take 10 turns or fewer on average,
# and more than 32 with a probability below 1e-8; such an element goes on with words that the next draw uses as well.
COUNTERS = 64

# weft's functions in place of the C library's.
_FUNCTIONS = {"log": log, "log1p": log1p, "exp": exp, "cos": cos, "lgamma": special.lgamma}


class IterationKernel(NamedTuple):
    """Everything that the code depends on.

    Arguments: the addresses of the results and of the two parameters, all float64; the seed and the first counter if it draws; how many
    elements there are.
    """

    cases: Cases

    @property
    def draws(self) -> bool:
        return any(case.iteration.draws for case in self.cases.of_parameters())


def iteration_ir(target: Target, kernel: IterationKernel) -> str:
    """Return the module of the kernel."""
    return _Iterations(target, kernel).ir()


class _Iterations(Kernel):
    def __init__(self, target: Target, kernel: IterationKernel):
        super().__init__(target)
        addresses = self.words("p", 3)
        if kernel.draws:
            self.seed, self.first_counter = self.parameter("seed"), self.parameter("counter")
        count = self.parameter("n")
        first, step = self.first_and_step()
        with self.loop(first, count, step) as element:
            result, *parameters = (self.place(each, [element], [8]) for each in addresses)
            if kernel.draws:
                self.element, self.counter = element, self.variable("i64", self.first_counter)
            x, y = (self.read(each, float64) for each in parameters)
            cases = kernel.cases.of_parameters()
            value = kernel.cases.write(
                self,
                emit_own,
                lambda k, x, y: cases[k].iteration.write(self, emit_own, self._draw, x, y),
                x,
                y,
            )
            self.write(result, float64, value)

    def _draw(self, count: int) -> list[str]:
        """The next words of this element."""
        found: list[str] = []
        seed, counter, thread = (load(k, uint64) for k in range(3))
        while len(found) < count:
            now = self.get(self.counter, "i64")
            found += emit(
                self,
                wide(words(seed, counter, thread)),
                {seed: self.seed, counter: now, thread: self.element},
            )
            self.set(self.counter, "i64", self.integer("add", now, 1))
        return found[:count]


def emit_own(block: Any, roots: tuple[Expr, ...], leaves: dict[Expr, str]) -> list[str]:
    """`llvm.emit`, with weft's functions where an expression calls the C library's."""
    leaves = dict(leaves)
    for expr in postorder(roots):
        if expr.op == "libm" and expr not in leaves:
            (leaves[expr],) = emit(block, (_FUNCTIONS[expr.value](expr.args[0]),), leaves)
    return emit(block, roots, leaves)


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernel, by the name that ops ask for."""

    @functools.cache
    def launch(kernel: IterationKernel, groups: int) -> Any:
        letters = "ppp" + param_letters([uint64, uint64] * kernel.draws + [int64])
        return gpu.runtime.launch(gpu.runtime.load(iteration_ir, kernel), groups, letters, [])

    def iterations(
        cases: Cases, addresses: tuple[int, int, int], count: int, generator: PhiloxGenerator | None = None
    ) -> None:
        """Compute elements of two parameters. addresses: of the results and the parameters, contiguous float64."""
        kernel = IterationKernel(cases)
        found = launch(kernel, gpu.groups(count))
        if generator is None:
            found.entry(*addresses, count, found.meta, found.count)
            return

        def draw() -> None:
            seed, counter = generator.take(COUNTERS * WORDS)
            found.entry(*addresses, seed, counter, count, found.meta, found.count)

        gpu.draw(draw)

    return {"iterations": iterations}
