"""LU factorizations with partial pivoting, by blocks of 32 columns, in place, for stacks of real or complex matrices.

A group factorizes the columns of a block in memory of the device, one after the other. Then the rows of the other columns are swapped, the rows of
the block beside it are a triangular system (`triangles.py`), and what is left is a product (`updates.py`). These are LAPACK's steps, so the
pivots are its, unless rounding makes another element the largest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.dtype import DType, int32, int64
from ...engine.matrices import Matrices
from .arithmetic import Arithmetic, less_product, size_of
from .kernel import THREADS
from .target import Target
from .triangles import Triangles
from .updates import BLOCK, Launches


class PanelKernel(NamedTuple):
    """Everything that the code of a factorization of columns depends on.

    Arguments: the addresses of the columns, of their pivots and of the infos; the number of matrices, rows, columns, the row of the matrix that
    is the first one here, the step from one row of pivots to the next, and the steps.
    """

    dtype: DType


class SwapKernel(NamedTuple):
    """Everything that the code of swaps of rows depends on.

    Arguments: the addresses of the first columns of matrices and of the first pivots; the number of matrices, rows of a matrix, columns, pivots, the
    row that the first pivot swaps, the step from one such row to the next (1 or -1), the steps of the pivots from one matrix and from one pivot
    to the next, and the steps of the matrices.
    """

    dtype: DType


def panel_ir(target: Target, kernel: PanelKernel) -> str:
    """Return the module of the kernel: a group factorizes the columns of a matrix."""
    body = _Panel(target, kernel.dtype)
    with body.loop(body.group(), body.count, body.groups()) as number:
        body.write_matrix(number)
    return body.ir()


class _Panel(Arithmetic):
    def __init__(self, target: Target, dtype: DType):
        super().__init__(target, dtype)
        self.start, self.pivots, self.infos = self.words("p", 3)
        self.count, self.rows, self.columns, self.first, self.pivots_step = (
            self.parameter(name) for name in ("count", "rows", "columns", "first", "pivots_step")
        )
        self.steps = self.words("step", 3)
        self.sizes, self.places = self.shared(self.part, THREADS), self.shared(int64, THREADS)
        self.own = self.thread()

    def write_matrix(self, number: str) -> None:
        matrix = self.place(self.start, [number], self.steps[:1])
        with self.loop(0, self.minimum(self.rows, self.columns)) as k:
            self.barrier()  # the columns before have changed this one
            pivot_row = self._largest(matrix, k)
            pivot = self.read_number(self._at(matrix, pivot_row, k))
            is_zero = self.test(_is_zero, pivot)
            with self.when(self.equal(self.own, 0)):
                self._note(number, k, pivot_row, is_zero)
            self.barrier()  # all threads have read the pivot
            with self.when(self.both(self.less(self.own, self.columns), self.less(k, pivot_row))):
                self._swap(self._at(matrix, k, self.own), self._at(matrix, pivot_row, self.own))
            self.barrier()
            with self.unless(is_zero):  # then all below are zeros, too
                self._eliminate(matrix, k)

    def _at(self, matrix: str, i: str, j: str) -> str:
        return self.place(matrix, [i, j], self.steps[1:])

    def _largest(self, matrix: str, k: str) -> str:
        """Return the first row with the largest element of column k, from row k on. NaN is not larger than anything."""
        size, place = self.variable(self.kind, self.literal(-1)), self.variable("i64", k)
        with self.loop(self.integer("add", k, self.own), self.rows, THREADS) as i:
            found = self.compute(size_of, self.read_number(self._at(matrix, i, k)))
            with self.when(self.test(lambda a, b: a > b, found, (self.get(size, self.kind),))):
                self.set(size, self.kind, found[0])
                self.set(place, "i64", i)
        self.put(self.sizes, self.part, self.own, self.get(size, self.kind))
        self.put(self.places, int64, self.own, self.get(place, "i64"))
        self.halved(self.own, self.rows, self._take_larger)
        return self.take(self.places, int64, "0")

    def _take_larger(self, other: str) -> None:
        """Replace what this thread has found by what another one has, if that is larger, or as large and in a row before."""
        mine, theirs = ((self.take(self.sizes, self.part, each),) for each in (self.own, other))
        row, their_row = (self.take(self.places, int64, each) for each in (self.own, other))
        is_larger = self.test(lambda a, b: a > b, theirs, mine)
        is_before = self.both(
            self.test(lambda a, b: ~(a < b), theirs, mine), self.let(f"icmp slt i64 {their_row}, {row}")
        )
        with self.when(self.let(f"or i1 {is_larger}, {is_before}")):
            self.put(self.sizes, self.part, self.own, theirs[0])
            self.put(self.places, int64, self.own, their_row)

    def _note(self, number: str, k: str, pivot_row: str, is_zero: str) -> None:
        """Write the pivot of column k, and the info if it is the first zero. Both count from 1."""
        after = self.integer("add", self.first, 1)
        place = self.place(self.pivots, [number, k], [self.pivots_step, int32.itemsize])
        self.write(place, int32, self._short(self.integer("add", pivot_row, after)))
        info = self.place(self.infos, [number], [int32.itemsize])
        is_first = self.let(f"icmp eq i32 {self.read(info, int32)}, 0")
        with self.when(self.both(is_zero, is_first)):
            self.write(info, int32, self._short(self.integer("add", k, after)))

    def _short(self, value: str) -> str:
        return self.let(f"trunc i64 {value} to i32")

    def _swap(self, one: str, other: str) -> None:
        first, second = self.read_number(one), self.read_number(other)
        self.write_number(one, second)
        self.write_number(other, first)

    def _eliminate(self, matrix: str, k: str) -> None:
        """Divide column k by the pivot, and subtract its products with row k. A thread has every 256th row."""
        pivot, after = self.read_number(self._at(matrix, k, k)), self.integer("add", k, 1)
        with self.loop(self.integer("add", after, self.own), self.rows, THREADS) as i:
            place = self._at(matrix, i, k)
            factor = self.compute(lambda a, b: a / b, self.read_number(place), pivot)
            self.write_number(place, factor)
            with self.loop(after, self.columns) as j:
                to = self._at(matrix, i, j)
                above = self.read_number(self._at(matrix, k, j))
                self.write_number(to, self.compute(less_product, self.read_number(to), factor, above))


def _is_zero(a: Any) -> Any:
    return size_of(a) <= 0


def swap_ir(target: Target, kernel: SwapKernel) -> str:
    """Return the module of the kernel: a thread swaps the elements of a column. Pivots out of range swap nothing."""
    body = Arithmetic(target, kernel.dtype)
    start, pivots = body.words("p", 2)
    count, rows, columns, swaps, first, direction = (
        body.parameter(name) for name in ("count", "rows", "columns", "swaps", "first", "direction")
    )
    of_pivots, steps = body.words("s", 2), body.words("m", 3)
    begin, stride = body.first_and_step()
    with body.loop(begin, body.integer("mul", count, columns), stride) as turn:
        number, column = body.integer("udiv", turn, columns), body.integer("urem", turn, columns)
        own = body.place(start, [number, column], [steps[0], steps[2]])
        with body.loop(0, swaps) as k:
            pivot = body.read(body.place(pivots, [number, k], of_pivots), int32)
            other = body.integer("sub", body.let(f"sext i32 {pivot} to i64"), 1)
            row = body.integer("add", first, body.integer("mul", k, direction))
            with body.when(
                body.both(body.let(f"icmp ult i64 {other}, {rows}"), body.let(f"icmp ne i64 {other}, {row}"))
            ):
                places = body.place(own, [row], [steps[1]]), body.place(own, [other], [steps[1]])
                one, two = (body.read_number(place) for place in places)
                body.write_number(places[0], two)
                body.write_number(places[1], one)
    return body.ir()


class Pivoting(Launches):
    """The LU factorizations of a device, and swaps of rows by their pivots."""

    def __init__(self, gpu: Any, triangles: Triangles):
        super().__init__(gpu)
        self._triangles = triangles

    def factorize(
        self, matrices: Matrices, pivots: int, infos: int, count: int, size: tuple[int, int], dtype: DType
    ) -> None:
        """Replace matrices by L below the diagonal and U. pivots: int32 [count, min(size)]; infos: int32, 0 before."""
        (m, n), width = size, int32.itemsize
        fewest = min(m, n)
        for k in range(0, fewest, BLOCK):
            columns = min(BLOCK, fewest - k)
            panel, own, after = matrices.at(k, k), pivots + k * width, k + columns
            sizes = count, m - k, columns, k, fewest * width
            self.run(panel_ir, PanelKernel(dtype), (panel.address, own, infos), *sizes, *panel.steps)
            for first, others in ((0, k), (after, n - after)):
                if others:
                    sides, taken = matrices.at(0, first), (count, m, others)
                    self.swap(sides, pivots, taken, range(k, after), fewest, dtype)
            if rest := n - after:
                right = panel.at(0, columns)
                self._triangles.solve(panel, right, count, columns, rest, dtype, True)
                if m > after:
                    below, products = panel.at(columns, 0), (count, m - after, rest, columns)
                    self.update(below.at(0, columns), below, right, products, dtype)

    def swap(
        self,
        matrices: Matrices,
        pivots: int,
        sizes: tuple[int, int, int],
        swapped: range,
        step: int,
        dtype: DType,
    ) -> None:
        """Swap rows with those that pivots name, in the order of `swapped`. sizes: of the stack, rows, columns. step: pivots of a matrix."""
        first, width = swapped.start, int32.itemsize
        of_pivots = step * width, swapped.step * width
        numbers = *sizes, len(swapped), first, swapped.step, *of_pivots, *matrices.steps
        self.run(swap_ir, SwapKernel(dtype), (matrices.address, pivots + first * width), *numbers)
