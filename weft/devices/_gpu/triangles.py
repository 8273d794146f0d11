"""Cholesky factorizations and solutions of triangular systems, by blocks of 32 rows, in place, for stacks of matrices.

A block on the diagonal is factorized in memory of a group. A solution for a block is in the registers of a thread for each right side. What a block
contributes to the rows behind it is a product of matrices, of which all groups compute squares (`products.py`).

All matrices are given by an address, and the steps in bytes from one matrix, row and column to the next. So a transposed matrix is one with its
steps swapped, and a system that is solved from its end is one with negative steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, int32
from ...engine.llvm import constant, value_type
from .kernel import THREADS, Kernel
from .products import TERMS, TILE, Tiles
from .target import Target

BLOCK = 32  # rows
_LINE = (
    BLOCK + 1
)  # elements of a row in memory of the group; so threads that read a column use different banks of this memory

Matrices = tuple[int, int, int, int]  # address, steps


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


class UpdateKernel(NamedTuple):
    """Everything that the code of C -= A B depends on.

    Arguments: the addresses of C, A and B; the number of matrices, rows, columns, terms, whether only the lower triangle of C is wanted, and the
    steps of all three.
    """

    dtype: DType


def factor_ir(target: Target, kernel: FactorKernel) -> str:
    """Return the module of the kernel: a group factorizes a block, column by column."""
    body, dtype = Kernel(target), kernel.dtype
    kind, zero = value_type(dtype), constant(dtype, 0)
    start, infos = body.words("p", 2)
    count, rows, first = (body.parameter(name) for name in ("count", "rows", "first"))
    steps = body.words("step", 3)
    room, thread = body.shared(dtype, BLOCK * _LINE), body.thread()

    def each(begin: str | int, write: Callable[[str, str], None]) -> None:
        """Write code for all places of the lower triangle behind a row and column."""
        with body.loop(thread, BLOCK * BLOCK, THREADS) as number:
            i, j = body.integer("udiv", number, BLOCK), body.integer("urem", number, BLOCK)
            inside = body.let(
                f"and i1 {body.let(f'icmp slt i64 {i}, {rows}')}, {body.let(f'icmp sle i64 {j}, {i}')}"
            )
            with body.when(body.let(f"and i1 {inside}, {body.let(f'icmp sge i64 {j}, {begin}')}")):
                write(i, j)

    def slot(i: str, j: str) -> str:
        return body.integer("add", body.integer("mul", i, _LINE), j)

    with body.loop(body.group(), count, body.groups()) as number:
        matrix = body.place(start, [number], steps[:1])
        body.barrier()  # the block before is stored
        each(
            0,
            lambda i, j: body.put(
                room, dtype, slot(i, j), body.read(body.place(matrix, [i, j], steps[1:]), dtype)
            ),
        )
        with body.loop(0, rows) as k:
            body.barrier()
            pivot = body.take(room, dtype, slot(k, k))
            root = body.intrinsic("sqrt", dtype, 1, pivot)
            row = body.integer("add", body.integer("add", k, 1), thread)
            body.barrier()
            with body.when(body.let(f"icmp slt i64 {row}, {rows}")):
                value = body.let(f"fdiv {kind} {body.take(room, dtype, slot(row, k))}, {root}")
                body.put(room, dtype, slot(row, k), value)
            with body.when(body.let(f"icmp eq i64 {thread}, 0")):
                body.put(room, dtype, slot(k, k), root)
                fails = body.let(f"fcmp ule {kind} {pivot}, {zero}")  # also if it is NaN
                info = body.place(infos, [number], [int32.itemsize])
                is_first = body.let(f"icmp eq i32 {body.read(info, int32)}, 0")
                with body.when(body.let(f"and i1 {fails}, {is_first}")):
                    order = body.integer("add", body.integer("add", first, k), 1)
                    body.write(info, int32, body.let(f"trunc i64 {order} to i32"))
            body.barrier()

            def subtract(i: str, j: str, k: str = k) -> None:
                a, b = body.take(room, dtype, slot(i, k)), body.take(room, dtype, slot(j, k))
                minus = body.let(f"fneg {kind} {a}")
                value = body.intrinsic("fma", dtype, 1, minus, b, body.take(room, dtype, slot(i, j)))
                body.put(room, dtype, slot(i, j), value)

            each(body.integer("add", k, 1), subtract)
        body.barrier()
        each(
            0,
            lambda i, j: body.write(
                body.place(matrix, [i, j], steps[1:]), dtype, body.take(room, dtype, slot(i, j))
            ),
        )
    return body.ir()


def solve_ir(target: Target, kernel: SolveKernel) -> str:
    """Return the module of the kernel: a thread has a right side. Rows beyond the block are those of the identity."""
    body, dtype = Kernel(target), kernel.dtype
    kind, zero, one = value_type(dtype), constant(dtype, 0), _one(kernel.dtype)
    triangle, right = body.words("p", 2)
    count, rows, columns = (body.parameter(name) for name in ("count", "rows", "columns"))
    steps, of_right = body.words("a", 3), body.words("b", 3)
    room, thread = body.shared(dtype, BLOCK * BLOCK), body.thread()
    parts = body.integer("udiv", body.integer("add", columns, THREADS - 1), THREADS)
    with body.loop(body.group(), body.integer("mul", count, parts), body.groups()) as turn:
        number, part = body.integer("udiv", turn, parts), body.integer("urem", turn, parts)
        matrix = body.place(triangle, [number], steps[:1])
        body.barrier()  # the triangle before is read
        with body.loop(thread, BLOCK * BLOCK, THREADS) as place:
            i, j = body.integer("udiv", place, BLOCK), body.integer("urem", place, BLOCK)
            value = body.variable(kind, zero)
            with body.when(body.let(f"icmp eq i64 {i}, {j}")):
                body.set(value, kind, one)
            inside = body.let(
                f"and i1 {body.let(f'icmp slt i64 {i}, {rows}')}, {body.let(f'icmp sle i64 {j}, {i}')}"
            )
            with body.when(inside):
                body.set(value, kind, body.read(body.place(matrix, [i, j], steps[1:]), dtype))
            body.put(room, dtype, place, body.get(value, kind))
        body.barrier()
        column = body.integer("add", body.integer("mul", part, THREADS), thread)
        with body.when(body.let(f"icmp slt i64 {column}, {columns}")):
            side = body.place(right, [number, column], [of_right[0], of_right[2]])
            found: list[str] = []
            place = side
            for row in range(BLOCK):
                own = body.variable(kind, zero)
                exists = body.let(f"icmp sgt i64 {rows}, {row}")
                with body.when(exists):
                    body.set(own, kind, body.read(place, dtype))
                result = body.get(own, kind)
                for term, other in enumerate(found):
                    minus = body.let(f"fneg {kind} {body.take(room, dtype, str(row * BLOCK + term))}")
                    result = body.intrinsic("fma", dtype, 1, minus, other, result)
                if not kernel.unitriangular:
                    pivot = body.take(room, dtype, str(row * BLOCK + row))
                    result = body.let(f"fdiv {kind} {result}, {pivot}")
                found.append(result)
                # Stored before the next row is read, so that the code need not keep the addresses of all rows in registers.
                with body.when(exists):
                    body.write(place, dtype, result)
                place = body.integer("add", place, of_right[1])
    return body.ir()


def _one(dtype: DType) -> str:
    return constant(dtype, int.from_bytes(dtype.numpy.type(1).tobytes(), "little"))


def update_ir(target: Target, kernel: UpdateKernel) -> str:
    """Return the module of the kernel."""
    return _Update(target, kernel).ir()


class _Update(Tiles):
    def __init__(self, target: Target, kernel: UpdateKernel):
        super().__init__(target, kernel.dtype)
        self.addresses = self.words("p", 3)
        self.count, self.rows, self.columns, self.terms, lower = (
            self.parameter(name) for name in ("count", "rows", "columns", "terms", "lower")
        )
        self.lower = self.let(f"icmp ne i64 {lower}, 0")
        self.steps = [self.words(f"s{k}", 3) for k in range(3)]
        self._write()

    def _write(self) -> None:
        sizes = [self.count, self.squares(self.rows), self.squares(self.columns)]
        count = functools.reduce(lambda a, b: self.integer("mul", a, b), sizes)
        with self.loop(self.group(), count, self.groups()) as turn:
            number, down, across = self.unravel(turn, sizes, wide=False)
            above = self.let(f"icmp ugt i64 {across}, {down}")
            with self.unless(self.let(f"and i1 {above}, {self.lower}")):
                self._tile(number, self.integer("mul", down, TILE), self.integer("mul", across, TILE))

    def _tile(self, number: str, row: str, column: str) -> None:
        result, *operands = (
            self.place(address, [number], steps[:1])
            for address, steps in zip(self.addresses, self.steps, strict=True)
        )
        sums = self.new_square()
        with self.loop(0, self.terms, TERMS) as first:
            self.barrier()
            for j in range(TILE * TERMS // THREADS):
                element = self.integer("add", self.own, THREADS * j)
                i, term = self.integer("urem", element, TILE), self.integer("udiv", element, TILE)
                at = self.integer("add", first, term)
                down, across = self.integer("add", row, i), self.integer("add", column, i)
                self._fetch(0, i, term, operands[0], (down, self.rows), (at, self.terms))
                self._fetch(1, i, term, operands[1], (at, self.terms), (across, self.columns))
            self.barrier()
            self.multiply_square(sums)

        def store(at: str, place: str, values: Sequence[str]) -> None:
            above = self.let(f"icmp sgt i64 {place}, {at}")
            with self.unless(self.let(f"and i1 {above}, {self.lower}")):
                address = self.place(result, [at, place], self.steps[0][1:])
                before = self.read(address, self.part)
                self.write(address, self.part, self.let(f"fsub {self.kind} {before}, {values[0]}"))

        self.each_of_square(sums, (row, column), (self.rows, self.columns), store)

    def _fetch(
        self, operand: int, i: str, term: str, start: str, down: tuple[str, str], across: tuple[str, str]
    ) -> None:
        inside = [self.let(f"icmp slt i64 {at}, {size}") for at, size in (down, across)]
        (value,) = self.zeros()
        with self.when(self.let(f"and i1 {inside[0]}, {inside[1]}")):
            place = self.place(start, [down[0], across[0]], self.steps[operand + 1][1:])
            self.set(value, self.kind, self.read(place, self.part))
        self.fill(operand, i, term, [self.get(value, self.kind)])


# ---- Launches --------------------------------------------------------------------------------------------------------------


class Triangles:
    """The factorizations and solutions of a device, for stacks of `count` matrices of a real dtype."""

    def __init__(self, gpu: Any):
        self._gpu = gpu
        self._launch = functools.cache(self._prepare)

    def _prepare(self, write: Callable, kernel: Any, letters: str) -> Any:
        """Sizes are arguments of a call, because each block of a matrix has others."""
        gpu = self._gpu
        return gpu.runtime.launch(gpu.runtime.load(write, kernel), gpu.most_groups, letters, [])

    def factorize(self, matrices: Matrices, infos: int, count: int, n: int, dtype: DType) -> None:
        """Replace lower triangles by Cholesky factors. infos: int32, 0 before; then the order of the first minor that is not positive."""
        address, *steps = matrices
        _, down, across = steps
        factor = self._launch(factor_ir, FactorKernel(dtype), "pp" + "i" * 6)
        for k in range(0, n, BLOCK):
            rows = min(BLOCK, n - k)
            corner = address + k * (down + across)
            factor.entry(corner, infos, count, rows, k, *steps, factor.meta, factor.count)
            if rest := n - k - rows:
                below = corner + rows * down
                panel = below, steps[0], across, down  # transposed
                self._solve_block((corner, *steps), panel, count, rows, rest, dtype, False)
                self._update(
                    (below + rows * across, *steps),
                    (below, *steps),
                    panel,
                    (count, rest, rest, rows),
                    True,
                    dtype,
                )

    def solve(
        self,
        triangles: Matrices,
        right: Matrices,
        count: int,
        n: int,
        columns: int,
        dtype: DType,
        unitriangular: bool,
    ) -> None:
        """Replace right sides [n, columns] by the solutions of systems with lower triangles [n, n]."""
        (address, *steps), (side, *of_right) = triangles, right
        for k in range(0, n, BLOCK):
            rows = min(BLOCK, n - k)
            corner, own = address + k * (steps[1] + steps[2]), side + k * of_right[1]
            self._solve_block((corner, *steps), (own, *of_right), count, rows, columns, dtype, unitriangular)
            if rest := n - k - rows:
                self._update(
                    (own + rows * of_right[1], *of_right),
                    (corner + rows * steps[1], *steps),
                    (own, *of_right),
                    (count, rest, columns, rows),
                    False,
                    dtype,
                )

    def _solve_block(
        self,
        triangles: tuple,
        right: tuple,
        count: int,
        rows: int,
        columns: int,
        dtype: DType,
        unitriangular: bool,
    ) -> None:
        launch = self._launch(solve_ir, SolveKernel(dtype, unitriangular), "pp" + "i" * 9)
        sizes = count, rows, columns, *triangles[1:], *right[1:]
        launch.entry(triangles[0], right[0], *sizes, launch.meta, launch.count)

    def _update(
        self, c: tuple, a: tuple, b: tuple, sizes: tuple[int, int, int, int], is_lower: bool, dtype: DType
    ) -> None:
        launch = self._launch(update_ir, UpdateKernel(dtype), "ppp" + "i" * 14)
        launch.entry(
            c[0], a[0], b[0], *sizes, int(is_lower), *c[1:], *a[1:], *b[1:], launch.meta, launch.count
        )
