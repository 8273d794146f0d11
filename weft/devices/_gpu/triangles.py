"""Cholesky factorizations and solutions of triangular systems, by blocks of 32 rows, in place, for stacks of real or complex matrices.

A block on the diagonal is factorized in memory of a group. A solution for a block is in the registers of a thread for each right side. What a block
contributes to the rows behind it is a product of matrices (`updates.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType, int32
from ...engine.expr import sqrt
from ...engine.matrices import Matrices
from .arithmetic import Arithmetic, Number, conjugate, less_product, shrunk
from .kernel import THREADS
from .target import Target
from .updates import BLOCK, Launches

_LINE = (
    BLOCK + 1
)  # elements of a row in memory of the group; so threads that read a column use different banks of this memory


class FactorKernel(NamedTuple):
    """Everything that the code of a factorization of blocks depends on.

    Arguments: the addresses of the blocks and of the infos; the number of matrices, rows of a block, its first row, and the steps.
    """

    dtype: DType


class SolveKernel(NamedTuple):
    """Everything that the code of a solution for blocks depends on.

    Arguments: the addresses of the lower triangles and of the right sides; the number of matrices, rows of a block, columns of the right
    sides, and the steps of both.
    """

    dtype: DType
    unitriangular: bool
    conjugated: bool  # the triangle


def factor_ir(target: Target, kernel: FactorKernel) -> str:
    """Return the module of the kernel: a group factorizes a block, column by column."""
    body = Arithmetic(target, kernel.dtype)
    start, infos = body.words("p", 2)
    count, rows, first = (body.parameter(name) for name in ("count", "rows", "first"))
    steps = body.words("step", 3)
    room, thread = body.room(BLOCK * _LINE), body.thread()

    def each(begin: str | int, write: Callable[[str, str], None]) -> None:
        """Write code for all places of the lower triangle behind a row and column."""
        with body.loop(thread, BLOCK * BLOCK, THREADS) as number:
            i, j = body.integer("udiv", number, BLOCK), body.integer("urem", number, BLOCK)
            inside = body.both(body.less(i, rows), body.let(f"icmp sle i64 {j}, {i}"))
            with body.when(body.both(inside, body.let(f"icmp sge i64 {j}, {begin}"))):
                write(i, j)

    def slot(i: str, j: str) -> str:
        return body.integer("add", body.integer("mul", i, _LINE), j)

    with body.loop(body.group(), count, body.groups()) as number:
        matrix = body.place(start, [number], steps[:1])
        body.barrier()  # the block before is stored
        each(
            0,
            lambda i, j: body.put_number(
                room, slot(i, j), body.read_number(body.place(matrix, [i, j], steps[1:]))
            ),
        )
        with body.loop(0, rows) as k:
            body.barrier()
            pivot = body.take_number(room, slot(k, k))[:1]  # the diagonal is real
            root = body.compute(sqrt, pivot)
            row = body.integer("add", body.integer("add", k, 1), thread)
            body.barrier()
            with body.when(body.less(row, rows)):
                value = body.compute(shrunk, body.take_number(room, slot(row, k)), root)
                body.put_number(room, slot(row, k), value)
            with body.when(body.equal(thread, 0)):
                body.put_number(room, slot(k, k), (*root, *body.number_of(0)[1:]))
                is_positive = body.test(lambda pivot: pivot > 0, pivot)  # NaN is not
                info = body.place(infos, [number], [int32.itemsize])
                is_first = body.let(f"icmp eq i32 {body.read(info, int32)}, 0")
                with body.when(is_first), body.unless(is_positive):
                    order = body.integer("add", body.integer("add", first, k), 1)
                    body.write(info, int32, body.let(f"trunc i64 {order} to i32"))
            body.barrier()

            def subtract(i: str, j: str, k: str = k) -> None:
                factors = body.take_number(room, slot(i, k)), body.take_number(room, slot(j, k))
                before = body.take_number(room, slot(i, j))
                body.put_number(room, slot(i, j), body.compute(_less_adjoint, before, *factors))

            each(body.integer("add", k, 1), subtract)
        body.barrier()
        each(
            0,
            lambda i, j: body.write_number(
                body.place(matrix, [i, j], steps[1:]), body.take_number(room, slot(i, j))
            ),
        )
    return body.ir()


def _less_adjoint(c: Any, a: Any, b: Any) -> Any:
    return less_product(c, a, conjugate(b))


def solve_ir(target: Target, kernel: SolveKernel) -> str:
    """Return the module of the kernel: a thread has a right side. Rows beyond the block are those of the identity."""
    body = Arithmetic(target, kernel.dtype)
    triangle, right = body.words("p", 2)
    count, rows, columns = (body.parameter(name) for name in ("count", "rows", "columns"))
    steps, of_right = body.words("a", 3), body.words("b", 3)
    room, thread = body.room(BLOCK * BLOCK), body.thread()
    parts = body.integer("udiv", body.integer("add", columns, THREADS - 1), THREADS)
    with body.loop(body.group(), body.integer("mul", count, parts), body.groups()) as turn:
        number, part = body.integer("udiv", turn, parts), body.integer("urem", turn, parts)
        matrix = body.place(triangle, [number], steps[:1])
        body.barrier()  # the triangle before is read
        with body.loop(thread, BLOCK * BLOCK, THREADS) as place:
            i, j = body.integer("udiv", place, BLOCK), body.integer("urem", place, BLOCK)
            value = body.zeros()
            with body.when(body.equal(i, j)):
                body.set_number(value, body.number_of(1))
            with body.when(body.both(body.less(i, rows), body.let(f"icmp sle i64 {j}, {i}"))):
                own = body.read_number(body.place(matrix, [i, j], steps[1:]))
                body.set_number(value, body.compute(conjugate, own) if kernel.conjugated else own)
            body.put_number(room, place, body.get_number(value))
        body.barrier()
        column = body.integer("add", body.integer("mul", part, THREADS), thread)
        with body.when(body.less(column, columns)):
            side = body.place(right, [number, column], [of_right[0], of_right[2]])
            found: list[Number] = []
            place = side
            for row in range(BLOCK):
                value = body.zeros()
                exists = body.let(f"icmp sgt i64 {rows}, {row}")
                with body.when(exists):
                    body.set_number(value, body.read_number(place))
                result = body.get_number(value)
                for term, other in enumerate(found):
                    factor = body.take_number(room, str(row * BLOCK + term))
                    result = body.compute(less_product, result, factor, other)
                if not kernel.unitriangular:
                    pivot = body.take_number(room, str(row * BLOCK + row))
                    result = body.compute(lambda a, b: a / b, result, pivot)
                found.append(result)
                # Stored before the next row is read, so that the code need not keep the addresses of all rows in registers.
                with body.when(exists):
                    body.write_number(place, result)
                place = body.integer("add", place, of_right[1])
    return body.ir()


# ---- Launches --------------------------------------------------------------------------------------------------------------


class Triangles(Launches):
    """The Cholesky factorizations of a device and its solutions of triangular systems, for stacks of `count` matrices."""

    def factorize(self, matrices: Matrices, infos: int, count: int, n: int, dtype: DType) -> None:
        """Replace lower triangles by Cholesky factors. infos: int32, 0 before; then the order of the first minor that is not positive."""
        for k in range(0, n, BLOCK):
            rows = min(BLOCK, n - k)
            corner = matrices.at(k, k)
            self.run(factor_ir, FactorKernel(dtype), (corner.address, infos), count, rows, k, *corner.steps)
            if rest := n - k - rows:
                below, after = corner.at(rows, 0), corner.at(rows, rows)
                panel = below.transposed()
                self._solve_block(corner, panel, count, rows, rest, dtype, False, True)
                sizes, conjugated = (count, rest, rest, rows), (False, True)
                self.update(after, below, panel, sizes, dtype, conjugated=conjugated, is_lower=True)

    def solve(
        self,
        triangles: Matrices,
        right: Matrices,
        count: int,
        n: int,
        columns: int,
        dtype: DType,
        unitriangular: bool,
        conjugated: bool = False,
    ) -> None:
        """Replace right sides [n, columns] by the solutions of systems with lower triangles [n, n], or with the conjugates of these."""
        for k in range(0, n, BLOCK):
            rows = min(BLOCK, n - k)
            corner, own = triangles.at(k, k), right.at(k, 0)
            self._solve_block(corner, own, count, rows, columns, dtype, unitriangular, conjugated)
            if rest := n - k - rows:
                sizes = count, rest, columns, rows
                self.update(
                    own.at(rows, 0), corner.at(rows, 0), own, sizes, dtype, conjugated=(conjugated, False)
                )

    def _solve_block(
        self,
        triangles: Matrices,
        right: Matrices,
        count: int,
        rows: int,
        columns: int,
        dtype: DType,
        unitriangular: bool,
        conjugated: bool,
    ) -> None:
        kernel = SolveKernel(dtype, unitriangular, conjugated and dtype.is_complex)
        addresses, steps = (triangles.address, right.address), (*triangles.steps, *right.steps)
        self.run(solve_ir, kernel, addresses, count, rows, columns, *steps)
