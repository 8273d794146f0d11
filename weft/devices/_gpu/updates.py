"""Products that are subtracted from parts of matrices, and how kernels for blocks of matrices are launched."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.matrices import Matrices
from .arithmetic import Number, conjugate
from .products import TILE, Tiles
from .target import Target

BLOCK = 32  # rows or columns that a factorization takes at once


class UpdateKernel(NamedTuple):
    """Everything that the code of C -= A B depends on.

    Arguments: the addresses of C, A and B; the number of matrices, rows, columns, terms, whether only the lower triangle of C is wanted, whether
    C is zero before, and the steps of all three.
    """

    dtype: DType
    conjugated: tuple[bool, bool]  # A, B


def update_ir(target: Target, kernel: UpdateKernel) -> str:
    """Return the module of the kernel."""
    return _Update(target, kernel).ir()


class _Update(Tiles):
    def __init__(self, target: Target, kernel: UpdateKernel):
        super().__init__(target, kernel.dtype)
        self.conjugated = kernel.conjugated
        self.addresses = self.words("p", 3)
        self.count, self.rows, self.columns, self.terms, lower, new = (
            self.parameter(name) for name in ("count", "rows", "columns", "terms", "lower", "new")
        )
        self.lower, self.new = (self.let(f"icmp ne i64 {word}, 0") for word in (lower, new))
        self.steps = [self.words(f"s{k}", 3) for k in range(3)]
        self._write()

    def _write(self) -> None:
        sizes = [self.count, self.squares(self.rows), self.squares(self.columns)]
        count = functools.reduce(lambda a, b: self.integer("mul", a, b), sizes)
        with self.loop(self.group(), count, self.groups()) as turn:
            number, down, across = self.unravel(turn, sizes, wide=False)
            above = self.let(f"icmp ugt i64 {across}, {down}")
            with self.unless(self.both(above, self.lower)):
                self._tile(number, self.integer("mul", down, TILE), self.integer("mul", across, TILE))

    def _tile(self, number: str, row: str, column: str) -> None:
        result, *operands = (
            self.place(address, [number], steps[:1])
            for address, steps in zip(self.addresses, self.steps, strict=True)
        )

        def copy(first: str) -> None:
            for i, term in self.lines_and_terms():
                at = self.integer("add", first, term)
                down, across = self.integer("add", row, i), self.integer("add", column, i)
                self._fetch(0, i, term, operands[0], (down, self.rows), (at, self.terms))
                self._fetch(1, i, term, operands[1], (at, self.terms), (across, self.columns))

        def store(at: str, place: str, value: Number) -> None:
            above = self.let(f"icmp sgt i64 {place}, {at}")
            with self.unless(self.both(above, self.lower)):
                address = self.place(result, [at, place], self.steps[0][1:])
                before = self.zeros()
                with self.unless(self.new):
                    self.set_number(before, self.read_number(address))
                difference = self.compute(lambda a, b: a - b, self.get_number(before), value)
                self.write_number(address, difference)

        sums = self.square_of(self.terms, copy)
        self.each_of_square(sums, (row, column), (self.rows, self.columns), store)

    def _fetch(
        self, operand: int, i: str, term: str, start: str, down: tuple[str, str], across: tuple[str, str]
    ) -> None:
        inside = [self.less(at, size) for at, size in (down, across)]
        value = self.zeros()
        with self.when(self.both(*inside)):
            place = self.place(start, [down[0], across[0]], self.steps[operand + 1][1:])
            own = self.read_number(place)
            self.set_number(value, self.compute(conjugate, own) if self.conjugated[operand] else own)
        self.fill(operand, i, term, self.get_number(value))


# ---- Launches --------------------------------------------------------------------------------------------------------------


class Launches:
    """The launches of kernels of a device whose sizes are arguments of a call, because each block of a matrix has others."""

    def __init__(self, gpu: Any):
        self.gpu = gpu
        self._launch = functools.cache(self._prepare)

    def _prepare(self, write: Callable, kernel: Any, letters: str) -> Any:
        gpu = self.gpu
        return gpu.runtime.launch(gpu.runtime.load(write, kernel), gpu.most_groups, letters, [])

    def run(self, write: Callable, kernel: Any, addresses: Sequence[int], *numbers: int) -> None:
        """Launch the kernel whose IR `write` returns."""
        letters = "p" * len(addresses) + "i" * len(numbers)
        launch = self._launch(write, kernel, letters)
        launch.entry(*addresses, *numbers, launch.meta, launch.count)

    def update(
        self,
        c: Matrices,
        a: Matrices,
        b: Matrices,
        sizes: tuple[int, int, int, int],
        dtype: DType,
        *,
        conjugated: tuple[bool, bool] = (False, False),
        is_lower: bool = False,
        is_new: bool = False,
    ) -> None:
        """C -= A B, or C = -A B if `is_new`. sizes: of the stack, rows, columns and terms."""
        both = conjugated[0] and dtype.is_complex, conjugated[1] and dtype.is_complex
        numbers = *sizes, int(is_lower), int(is_new), *c.steps, *a.steps, *b.steps
        self.run(update_ir, UpdateKernel(dtype, both), (c.address, a.address, b.address), *numbers)
