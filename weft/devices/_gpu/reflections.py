"""QR factorizations by Householder reflections, by blocks of 32 columns, in place, for stacks of real or complex matrices.

A group finds the reflections of a block, one column after the other, in memory of the device. Those of a block are one product I - V T V.mH, which the
columns behind it are multiplied by (`updates.py`). Signs are LAPACK's.

Source: Schreiber and Van Loan 1989, "A storage-efficient WY representation for products of Householder transformations".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...core.storage import Storage
from ...engine.complexes import Complex
from ...engine.expr import Expr, absolute, copysign, select, sqrt
from ...engine.matrices import Matrices
from .arithmetic import Arithmetic, Number, conjugate, less_product, plus_product, shrunk
from .kernel import THREADS
from .target import Target
from .updates import BLOCK, Launches


class ReflectKernel(NamedTuple):
    """Everything that the code that finds the reflections of columns depends on.

    Arguments: the addresses of the columns and of the factors tau; the number of matrices, rows, columns, the step from the factors of one matrix to
    the next, and the steps.
    """

    dtype: DType


class VectorsKernel(NamedTuple):
    """Everything that the code that copies the vectors of reflections depends on: ones on the diagonal and zeros above it are not stored.

    Arguments: the addresses of the copies and of the columns; the number of matrices, rows, columns, and the steps of both.
    """

    dtype: DType


class TriangleKernel(NamedTuple):
    """Everything that the code that computes T depends on.

    Arguments: the addresses of T, of -V.mH V and of the factors tau; the number of matrices, columns, the step from the factors of one matrix to the
    next, and the steps of T and of the products.
    """

    dtype: DType


def reflect_ir(target: Target, kernel: ReflectKernel) -> str:
    """Return the module of the kernel: a group finds the reflections of a matrix."""
    body = _Reflect(target, kernel.dtype)
    with body.loop(body.group(), body.count, body.groups()) as number:
        body.write_matrix(number)
    return body.ir()


class _Reflect(Arithmetic):
    def __init__(self, target: Target, dtype: DType):
        super().__init__(target, dtype)
        self.start, self.factors = self.words("p", 2)
        self.count, self.rows, self.columns, self.factors_step = (
            self.parameter(name) for name in ("count", "rows", "columns", "factors_step")
        )
        self.steps = self.words("step", 3)
        self.values, self.sums = self.shared(self.part, THREADS), self.room(THREADS)
        self.own = self.thread()
        # Threads that share a column.
        self.lanes = self.integer("udiv", str(THREADS), self.columns)
        self.lane, self.line = (self.integer(name, self.own, self.lanes) for name in ("urem", "udiv"))

    def _at(self, matrix: str, i: str, j: str) -> str:
        return self.place(matrix, [i, j], self.steps[1:])

    def write_matrix(self, number: str) -> None:
        matrix = self.place(self.start, [number], self.steps[:1])
        with self.loop(0, self.minimum(self.rows, self.columns)) as k:
            self.barrier()  # the reflections before have changed this column
            first = self.read_number(self._at(matrix, k, k))
            largest = (
                self._over_column(matrix, k, k, lambda so_far, a: _larger(so_far, _largest_part(a)), _larger),
            )
            divisor = self.compute(lambda largest: select(largest > 0, largest, 1.0), largest)
            below = self._over_column(
                matrix,
                self.integer("add", k, 1),
                k,
                lambda so_far, a, divisor: so_far + _square(shrunk(a, divisor)),
                lambda a, b: a + b,
                divisor,
            )
            needed = self.test(_is_reflected, first, (below,))
            beta, tau, pivot = self.compute(_reflection, first, (below,), divisor)
            with self.when(self.equal(self.own, 0)):
                place = self.place(
                    self.factors, [number, k], [self.factors_step, self.parts * self.part.itemsize]
                )
                self.write_number(place, self.number_of(0))
                with self.when(needed):
                    self.write_number(place, tau)
            with self.when(needed):  # the same for all threads
                self._reflect(matrix, k, divisor, pivot, beta, tau)

    def _over_column(
        self,
        matrix: str,
        start: str,
        k: str,
        add: Callable,
        join: Callable[[Expr, Expr], Expr],
        *others: Number,
    ) -> str:
        """What `add` makes of 0 and the elements of column k from a row on, one after the other, as a real value; `join` joins those of threads."""
        value = self.variable(self.kind, self.literal(0))
        with self.loop(self.integer("add", start, self.own), self.rows, THREADS) as i:
            element = self.read_number(self._at(matrix, i, k))
            (after,) = self.compute(add, (self.get(value, self.kind),), element, *others)
            self.set(value, self.kind, after)
        self.barrier()  # the values before are read
        self.put(self.values, self.part, self.own, self.get(value, self.kind))

        def joined(other: str) -> None:
            two = [(self.take(self.values, self.part, each),) for each in (self.own, other)]
            self.put(self.values, self.part, self.own, self.compute(join, *two)[0])

        self.halved(self.own, self.rows, joined)
        return self.take(self.values, self.part, "0")

    def _reflect(
        self, matrix: str, k: str, divisor: Number, pivot: Number, beta: Number, tau: Number
    ) -> None:
        """Replace column k by the vector of the reflection, which the columns behind it are multiplied by."""
        after = self.integer("add", k, 1)
        with self.loop(self.integer("add", after, self.own), self.rows, THREADS) as i:
            place = self._at(matrix, i, k)
            self.write_number(
                place, self.compute(lambda a, d, p: shrunk(a, d) / p, self.read_number(place), divisor, pivot)
            )
        self.barrier()
        column = self.integer("add", after, self.line)
        inside = self.less(column, self.columns)
        begin = self.integer("add", after, self.lane)
        total, row = self.zeros(), self._at(matrix, k, column)
        with self.when(inside):
            with self.loop(begin, self.rows, self.lanes) as i:
                vector, element = (self.read_number(self._at(matrix, i, j)) for j in (k, column))
                self.set_number(total, self.compute(_plus_adjoint, self.get_number(total), vector, element))
        self.put_number(self.sums, self.own, self.get_number(total))
        self.barrier()
        with self.when(inside):
            self.set_number(total, self.read_number(row))
            start = self.integer("mul", self.line, self.lanes)
            with self.loop(start, self.integer("add", start, self.lanes)) as other:
                both = self.get_number(total), self.take_number(self.sums, other)
                self.set_number(total, self.compute(lambda a, b: a + b, *both))
            factor = self.compute(lambda tau, total: conjugate(tau) * total, tau, self.get_number(total))
            self.set_number(total, factor)
            with self.loop(begin, self.rows, self.lanes) as i:
                vector, place = self.read_number(self._at(matrix, i, k)), self._at(matrix, i, column)
                self.write_number(place, self.compute(less_product, self.read_number(place), vector, factor))
        self.barrier()  # all threads have read the row
        with self.when(self.both(inside, self.equal(self.lane, 0))):
            self.write_number(
                row, self.compute(lambda a, b: a - b, self.read_number(row), self.get_number(total))
            )
        with self.when(self.equal(self.own, 0)):
            self.write_number(self._at(matrix, k, k), beta)


def _larger(a: Expr, b: Expr) -> Expr:
    return select(a > b, a, b)


def _largest_part(a: Any) -> Expr:
    return _larger(absolute(a.real), absolute(a.imag)) if isinstance(a, Complex) else absolute(a)


def _square(a: Any) -> Expr:
    return a.real * a.real + a.imag * a.imag if isinstance(a, Complex) else a * a


def _is_reflected(first: Any, below: Expr) -> Expr:
    """Whether a column is not yet a real multiple of the first unit vector. `below`: the squares of the elements below, NaN if one is."""
    imag = absolute(first.imag) if isinstance(first, Complex) else absolute(first) * 0.0
    return ~((below <= 0) & (imag <= 0))


def _reflection(first: Any, below: Expr, divisor: Expr) -> tuple[Any, Any, Any]:
    """The element that stays of a column, beta, and the factor tau, as LAPACK's larfg; and what the elements divided by `divisor` are divided by.

    `below`: the squares of these. The divisor is the largest part of an element, so that nothing overflows, and numbers below the normal ones count.
    """
    first = shrunk(first, divisor)
    size = sqrt(_square(first) + below)
    if isinstance(first, Complex):
        beta = -copysign(size, first.real)
        tau = Complex((beta - first.real) / beta, -first.imag / beta)
        return Complex(beta * divisor, beta * 0.0), tau, Complex(first.real - beta, first.imag)
    beta = -copysign(size, first)
    return beta * divisor, (beta - first) / beta, first - beta


def _plus_adjoint(c: Any, a: Any, b: Any) -> Any:
    return plus_product(c, conjugate(a), b)


def vectors_ir(target: Target, kernel: VectorsKernel) -> str:
    """Return the module of the kernel."""
    body = Arithmetic(target, kernel.dtype)
    to, source = body.words("p", 2)
    count, rows, columns = (body.parameter(name) for name in ("count", "rows", "columns"))
    of_copies, steps = body.words("r", 3), body.words("s", 3)
    sizes = [count, columns, rows]
    begin, stride = body.first_and_step()
    with body.loop(begin, body.integer("mul", count, body.integer("mul", columns, rows)), stride) as turn:
        number, j, i = body.unravel(turn, sizes, wide=True)
        value = body.zeros()
        with body.when(body.equal(i, j)):
            body.set_number(value, body.number_of(1))
        with body.when(body.less(j, i)):
            body.set_number(value, body.read_number(body.place(source, [number, i, j], steps)))
        body.write_number(body.place(to, [number, i, j], of_copies), body.get_number(value))
    return body.ir()


def triangle_ir(target: Target, kernel: TriangleKernel) -> str:
    """Return the module of the kernel: a thread computes a row."""
    body = Arithmetic(target, kernel.dtype)
    to, products, factors = body.words("p", 3)
    count, columns, factors_step = (body.parameter(name) for name in ("count", "columns", "factors_step"))
    steps, of_products = body.words("r", 3), body.words("s", 3)
    itemsize = body.parts * body.part.itemsize
    begin, stride = body.first_and_step()
    with body.loop(begin, body.integer("mul", count, columns), stride) as turn:
        number, row = body.integer("udiv", turn, columns), body.integer("urem", turn, columns)
        with body.loop(0, columns) as i:
            tau = body.read_number(body.place(factors, [number, i], [factors_step, itemsize]))
            total = body.zeros()
            with body.when(body.equal(i, row)):
                body.set_number(total, tau)
            with body.when(body.less(row, i)):
                with body.loop(row, i) as s:
                    before = body.read_number(body.place(to, [number, row, s], steps))
                    product = body.read_number(body.place(products, [number, s, i], of_products))
                    body.set_number(
                        total, body.compute(plus_product, body.get_number(total), before, product)
                    )
                body.set_number(total, body.compute(lambda a, b: a * b, tau, body.get_number(total)))
            body.write_number(body.place(to, [number, row, i], steps), body.get_number(total))
    return body.ir()


class Reflections(Launches):
    """The QR factorizations of a device, and products with their Q."""

    def factorize(
        self, matrices: Matrices, factors: int, count: int, size: tuple[int, int], dtype: DType
    ) -> None:
        """Replace matrices by R and, below the diagonal, the vectors of reflections. factors: [count, min(size)], the factors tau."""
        m, n = size
        fewest = min(m, n)
        for k in range(0, fewest, BLOCK):
            columns = min(BLOCK, fewest - k)
            panel, own = matrices.at(k, k), factors + k * dtype.itemsize
            sizes = count, m - k, columns, fewest * dtype.itemsize
            self.run(reflect_ir, ReflectKernel(dtype), (panel.address, own), *sizes, *panel.steps)
            if rest := n - k - columns:
                block = panel, own, fewest, (count, m - k, columns)
                self._multiply_block(*block, panel.at(0, columns), rest, dtype, is_adjoint=True)

    def multiply(
        self,
        vectors: Matrices,
        factors: int,
        reflections: int,
        matrices: Matrices,
        sizes: tuple[int, int, int],
        dtype: DType,
        *,
        is_adjoint: bool,
        is_identity: bool = False,
    ) -> None:
        """Multiply matrices by Q, or Q.mH, from the left. sizes: of the stack, rows, columns. is_identity: the matrices are identities."""
        count, rows, columns = sizes
        blocks = range(0, reflections, BLOCK)
        for k in blocks if is_adjoint else reversed(blocks):
            own = vectors.at(k, k), factors + k * dtype.itemsize, reflections
            block = count, rows - k, min(BLOCK, reflections - k)
            first = k if is_identity else 0  # the columns before have only zeros in these rows
            self._multiply_block(
                *own, block, matrices.at(k, first), columns - first, dtype, is_adjoint=is_adjoint
            )

    def _multiply_block(
        self,
        panel: Matrices,
        factors: int,
        reflections: int,
        block: tuple[int, int, int],
        matrices: Matrices,
        columns: int,
        dtype: DType,
        *,
        is_adjoint: bool,
    ) -> None:
        """Multiply matrices by the product of the reflections of a block: the number of matrices, rows, columns."""
        count, rows, width = block
        held: list[
            Storage
        ] = []  # what kernels that are launched later write to may be this memory again: work is done in order

        def new(height: int, width: int) -> Matrices:
            size = height * width * dtype.itemsize
            held.append(self.gpu.allocate(count * size))
            return Matrices(held[-1].ptr, size, dtype.itemsize, height * dtype.itemsize)

        v, products, t = new(rows, width), new(width, width), new(width, width)
        self.run(vectors_ir, VectorsKernel(dtype), (v.address, panel.address), *block, *v.steps, *panel.steps)
        adjoint = v.transposed()
        self.update(
            products, adjoint, v, (count, width, width, rows), dtype, conjugated=(True, False), is_new=True
        )
        step = reflections * dtype.itemsize
        addresses = t.address, products.address, factors
        self.run(triangle_ir, TriangleKernel(dtype), addresses, count, width, step, *t.steps, *products.steps)
        inner, turned = new(width, columns), new(width, columns)
        self.update(
            inner,
            adjoint,
            matrices,
            (count, width, columns, rows),
            dtype,
            conjugated=(True, False),
            is_new=True,
        )
        triangle = t.transposed() if is_adjoint else t
        self.update(
            turned,
            triangle,
            inner,
            (count, width, columns, width),
            dtype,
            conjugated=(is_adjoint, False),
            is_new=True,
        )
        self.update(matrices, v, turned, (count, rows, columns, width), dtype)
