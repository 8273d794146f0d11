"""Eigenvalues and singular values by Jacobi's method, for stacks of real or complex matrices.

A group diagonalizes a Hermitian matrix of some rows in its memory. Each round rotates half as many disjoint pairs of rows and columns, and after a
sweep of rounds all pairs have met. Larger matrices are cut into blocks of columns: each round diagonalizes the parts that belong to pairs of blocks,
and multiplies all of the matrix by the rotations. For singular values the columns themselves are made orthogonal (one-sided): then the part of two
blocks is the product of their columns with each other.

Source: Golub and Van Loan 2013, "Matrix Computations", sections 8.5 and 8.6.3.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import DType, int32, int64
from ...core.storage import Storage
from ...engine.complexes import Complex
from ...engine.expr import Expr, absolute, copysign, select, sqrt
from ...engine.matrices import Matrices
from .arithmetic import Arithmetic, Number, conjugate, less_product, plus_product, scaled, shrunk
from .kernel import THREADS
from .products import TERMS, TILE, Tiles
from .target import Target
from .updates import Launches

MOST_SWEEPS = 30  # far more than matrices take
INNER_SWEEPS = 3  # of the part of two blocks, which the next sweep of all blocks diagonalizes again


def side(dtype: DType) -> int:
    """Return how many rows a group diagonalizes. With the rotations they take up to 38 of the 48 KiB that a group of NVIDIA's GPUs has."""
    return {4: 64, 8: 48, 16: 32}[dtype.itemsize]


class DiagonalizeKernel(NamedTuple):
    """Everything that the code that diagonalizes parts of matrices depends on.

    Arguments: the addresses of the matrices, the rotations, the eigenvalues (0: they are not wanted) and of the sweeps that were done; the number of
    matrices, their rows, blocks of rows, the round, the most sweeps, the tolerance, the floor, and the steps. An element is zero if it is at
    most the floor, or the tolerance times the geometric mean of the two elements of the diagonal.
    """

    dtype: DType


class RotateKernel(NamedTuple):
    """Everything that the code that multiplies columns by rotations depends on.

    Arguments: the addresses of the matrices, the rotations and the sweeps (0: the rotation is the identity); the number of matrices, rows,
    columns, blocks of columns, the round, and the steps.
    """

    dtype: DType
    conjugated: bool  # the rotations


class GramKernel(NamedTuple):
    """Everything that the code of the products of the columns of two blocks with each other depends on.

    Arguments: the addresses of the products and of the matrices; the number of matrices, rows, columns, blocks of columns, the round, and the
    steps of the matrices.
    """

    dtype: DType


# ---- Pairs -----------------------------------------------------------------------------------------------------------------


def _pair(body: Arithmetic, turn: str, at: str, count: str | int) -> tuple[str, str]:
    """The pair number `turn` of a round in which each of `count` players meets another one: after count - 1 rounds each has met all others.

    Of two players the pair is (0, 1).
    """
    last = body.integer("sub", count, 1)
    ahead, behind = body.integer("add", at, turn), body.integer("sub", at, turn)
    wrapped = body.integer("sub", ahead, last)
    first = body.let(f"select i1 {body.less(ahead, last)}, i64 {ahead}, i64 {wrapped}")
    first = body.let(f"select i1 {body.equal(turn, 0)}, i64 {last}, i64 {first}")
    raised = body.integer("add", behind, last)
    return body.let(f"select i1 {body.less(behind, 0)}, i64 {raised}, i64 {behind}"), first


def _place_in(body: Arithmetic, blocks: tuple[str, str], k: str, half: int) -> str:
    """The row of the matrix that row k of the part of two blocks is."""
    is_first = body.less(k, half)
    block = body.let(f"select i1 {is_first}, i64 {blocks[0]}, i64 {blocks[1]}")
    behind = body.integer("sub", k, half)
    own = body.let(f"select i1 {is_first}, i64 {k}, i64 {behind}")
    return body.integer("add", body.integer("mul", block, half), own)


def _packed(dtype: DType) -> tuple[int, int, int]:
    """The steps of matrices of `side` rows, one after the other, by columns."""
    rows = side(dtype)
    return rows * rows * dtype.itemsize, dtype.itemsize, rows * dtype.itemsize


# ---- Diagonalization in memory of a group ----------------------------------------------------------------------------------


def diagonalize_ir(target: Target, kernel: DiagonalizeKernel) -> str:
    """Return the module of the kernel: a group diagonalizes the part of a pair of blocks."""
    body = _Diagonalize(target, kernel.dtype)
    pairs = body.integer("udiv", body.blocks, 2)
    with body.loop(body.group(), body.integer("mul", body.count, pairs), body.groups()) as turn:
        number, pair = body.integer("udiv", turn, pairs), body.integer("urem", turn, pairs)
        body.write_part(turn, number, _pair(body, pair, body.at, body.blocks))
    return body.ir()


class _Diagonalize(Arithmetic):
    def __init__(self, target: Target, dtype: DType):
        super().__init__(target, dtype)
        self.side, self.packed = side(dtype), _packed(dtype)
        self.start, self.to, self.values, self.done = self.words("p", 4)
        self.count, self.n, self.blocks, self.at, self.most, tolerance, floor = (
            self.parameter(name) for name in ("count", "n", "blocks", "round", "most", "tolerance", "floor")
        )
        self.steps = self.words("step", 3)
        self.tolerance, self.floor = ((self.number(word, self.part),) for word in (tolerance, floor))
        self.matrix, self.vectors = (self.room(self.side * (self.side + 1)) for _ in range(2))
        # For each pair of rows: the rows, and the sine s of their rotation, 0 if there is none, and 1 / (1 + c) of its cosine c.
        self.players = [self.shared(int64, self.side // 2) for _ in range(2)]
        self.factors, self.sines = self.shared(self.part, self.side // 2), self.room(self.side // 2)
        self.rotated = self.shared(int64, 1)
        self.own = self.thread()

    def _slot(self, i: str, j: str) -> str:
        return self.integer("add", self.integer("mul", i, self.side + 1), j)

    def write_part(self, turn: str, number: str, blocks: tuple[str, str]) -> None:
        self._fetch(self.place(self.start, [number], self.steps[:1]), blocks)
        sweeps = self.variable("i64", "0")
        with self.repeat() as go_on_if:
            go_on_if(self.less(self.get(sweeps, "i64"), self.most))
            self.barrier()  # all threads know whether the sweep before has rotated
            with self.when(self.equal(self.own, 0)):
                self.put(self.rotated, int64, "0", "0")
            with self.loop(0, self.side - 1) as at:
                self.barrier()
                with self.when(self.less(self.own, self.side // 2)):
                    self._choose(at)
                self.barrier()
                self._rotate_matrix()
                self._rotate_vectors()
            self.barrier()
            go_on_if(self.let(f"icmp ne i64 {self.take(self.rotated, int64, '0')}, 0"))
            self.set(sweeps, "i64", self.integer("add", self.get(sweeps, "i64"), 1))
        self.barrier()
        self._store(turn, number, blocks, self.get(sweeps, "i64"))

    def _fetch(self, matrix: str, blocks: tuple[str, str]) -> None:
        self.barrier()  # the part before is stored
        with self.loop(self.own, self.side * self.side, THREADS) as place:
            i, j = self.integer("urem", place, self.side), self.integer("udiv", place, self.side)
            rows = [_place_in(self, blocks, k, self.side // 2) for k in (i, j)]
            value, one = self.zeros(), self.zeros()
            with self.when(self.both(*(self.less(row, self.n) for row in rows))):
                self.set_number(value, self.read_number(self.place(matrix, rows, self.steps[1:])))
            with self.when(self.equal(i, j)):
                self.set_number(one, self.number_of(1))
            self.put_number(self.matrix, self._slot(i, j), self.get_number(value))
            self.put_number(self.vectors, self._slot(i, j), self.get_number(one))

    def _choose(self, at: str) -> None:
        """Choose the rotation of a thread's pair, and do it to the four elements that belong to this pair only."""
        p, q = _pair(self, self.own, at, self.side)
        for memory, player in zip(self.players, (p, q), strict=True):
            self.put(memory, int64, self.own, player)
        places = [self._slot(i, j) for i, j in ((p, p), (q, q), (p, q), (q, p))]
        a, d = (self.take_number(self.matrix, place)[:1] for place in places[:2])
        x = self.take_number(self.matrix, places[2])
        factor, sine = self.variable(self.kind, self.literal(0.5)), self.zeros()
        with self.when(self.test(_is_rotated, a, d, x, self.tolerance, self.floor)):
            (f,), s, (moved,) = self.compute(_rotation, a, d, x)
            self.set(factor, self.kind, f)
            self.set_number(sine, s)
            nothing = self.number_of(0)
            for place, value in zip(
                places[:2], self.compute(lambda a, d, h: (a - h, d + h), a, d, (moved,)), strict=True
            ):
                self.put_number(self.matrix, place, (*value, *nothing[1:]))
            for place in places[2:]:
                self.put_number(self.matrix, place, nothing)
            self.put(self.rotated, int64, "0", "1")
        self.put(self.factors, self.part, self.own, self.get(factor, self.kind))
        self.put_number(self.sines, self.own, self.get_number(sine))

    def _rotation_of(self, pair: str) -> tuple[list[str], Number, Number, str]:
        """The rows of a pair, 1 / (1 + c) and s of their rotation, and whether there is one."""
        players = [self.take(memory, int64, pair) for memory in self.players]
        factor, sine = (self.take(self.factors, self.part, pair),), self.take_number(self.sines, pair)
        return players, factor, sine, self.test(_is_some, sine)

    def _rotate_matrix(self) -> None:
        """Rotate the rows and columns of each two pairs: a thread has the four elements of two pairs, and those opposite of them."""
        half = self.side // 2
        with self.loop(self.own, half * (half // 2), THREADS) as place:
            one, distance = (
                self.integer("urem", place, half),
                self.integer("add", self.integer("udiv", place, half), 1),
            )
            other = self.integer("urem", self.integer("add", one, distance), half)
            # At the largest distance each two pairs are met twice.
            is_first = self.let(f"or i1 {self.less(distance, half // 2)}, {self.less(one, half // 2)}")
            rows, c, s, rotates = self._rotation_of(one)
            columns, d, t, turns = self._rotation_of(other)
            with self.when(self.both(is_first, self.let(f"or i1 {rotates}, {turns}"))):
                places = [[self._slot(i, j) for j in columns] for i in rows]
                elements = [self.take_number(self.matrix, place) for line in places for place in line]
                rotated = self.compute(_both_sides, *elements, c, s, d, t)
                for i in range(2):
                    for j in range(2):
                        value = rotated[2 * i + j]
                        self.put_number(self.matrix, places[i][j], value)
                        opposite = self._slot(columns[j], rows[i])
                        self.put_number(self.matrix, opposite, self.compute(conjugate, value))

    def _rotate_vectors(self) -> None:
        half = self.side // 2
        with self.loop(self.own, self.side * half, THREADS) as place:
            row, pair = self.integer("urem", place, self.side), self.integer("udiv", place, self.side)
            columns, c, s, turns = self._rotation_of(pair)
            with self.when(turns):
                places = [self._slot(row, j) for j in columns]
                elements = [self.take_number(self.vectors, place) for place in places]
                for to, value in zip(places, self.compute(_columns, *elements, c, s), strict=True):
                    self.put_number(self.vectors, to, value)

    def _store(self, turn: str, number: str, blocks: tuple[str, str], sweeps: str) -> None:
        with self.loop(self.own, self.side * self.side, THREADS) as place:
            i, j = self.integer("urem", place, self.side), self.integer("udiv", place, self.side)
            address = self.place(self.to, [turn, i, j], self.packed)
            self.write_number(address, self.take_number(self.vectors, self._slot(i, j)))
        wanted = self.let(f"icmp ne i64 {self.values}, 0")
        row = _place_in(self, blocks, self.own, self.side // 2)
        inside = self.both(self.less(self.own, self.side), self.less(row, self.n))
        with self.when(self.both(wanted, inside)):
            at, itemsize = self.integer("add", self.integer("mul", number, self.n), row), self.part.itemsize
            value = self.take_number(self.matrix, self._slot(self.own, self.own))[0]
            self.write(self.place(self.values, [at], [itemsize]), self.part, value)
        with self.when(self.equal(self.own, 0)):
            self.write(
                self.place(self.done, [turn], [int32.itemsize]), int32, self.let(f"trunc i64 {sweeps} to i32")
            )


def _size(x: Any) -> Expr:
    """The absolute value, without overflow."""
    if not isinstance(x, Complex):
        return absolute(x)
    a, b = absolute(x.real), absolute(x.imag)
    large, small = select(a > b, a, b), select(a > b, b, a)
    ratio = small / select(large > 0, large, 1.0)
    return large * sqrt(ratio * ratio + 1.0)


def _is_rotated(a: Expr, d: Expr, x: Any, tolerance: Expr, floor: Expr) -> Expr:
    """Whether x is not zero beside a and d. NaN is: then the matrix has no eigenvalues, and rotations would not end."""
    size = _size(x)
    return (size > floor) & (size > tolerance * (sqrt(absolute(a)) * sqrt(absolute(d))))


def _rotation(a: Expr, d: Expr, x: Any) -> tuple[Expr, Any, Expr]:
    """1 / (1 + c) and s of the rotation that makes [[a, x], [conj(x), d]] diagonal, and by how much a falls and d grows. At most 45 degrees."""
    size = _size(x)
    slope = (d - a) / (size + size)
    height = absolute(slope)
    # Beyond 1 / eps the square of the slope could overflow, and the one beside it does not count.
    large = height > 1e10
    root = select(large, height, sqrt(select(large, slope * 0.0, slope * slope) + 1.0))
    tangent = copysign(1.0 / (height + root), slope)
    cosine = 1.0 / sqrt(tangent * tangent + 1.0)
    return 1.0 / (cosine + 1.0), scaled(shrunk(x, size), tangent * cosine), tangent * size


def _is_some(sine: Any) -> Expr:
    if isinstance(sine, Complex):
        return ~((absolute(sine.real) + absolute(sine.imag)) <= 0)
    return ~(absolute(sine) <= 0)


def _columns(p: Any, q: Any, factor: Expr, sine: Any) -> tuple[Any, Any]:
    """Two columns multiplied by [[c, s], [-conj(s), c]]. factor: 1 / (1 + c).

    So small rotations add small numbers to the columns, and the rounding of c does not count (Rutishauser 1966, "The Jacobi method for real
    symmetric matrices").
    """
    half = scaled(sine, factor)
    return (
        less_product(p, conjugate(sine), plus_product(q, half, p)),
        plus_product(q, sine, less_product(p, conjugate(half), q)),
    )


def _both_sides(pp: Any, pq: Any, qp: Any, qq: Any, f: Expr, s: Any, g: Expr, t: Any) -> tuple[Any, ...]:
    """The matrix [[pp, pq], [qp, qq]] multiplied by the adjoint of one rotation from the left, and by another one from the right."""
    (pp, pq), (qp, qq) = _columns(pp, pq, g, t), _columns(qp, qq, g, t)
    # The adjoint from the left: as columns, with the conjugate of the sine.
    (pp, qp), (pq, qq) = _columns(pp, qp, f, conjugate(s)), _columns(pq, qq, f, conjugate(s))
    return pp, pq, qp, qq


# ---- Products by all groups ------------------------------------------------------------------------------------------------


class _OfBlocks(Tiles):
    """A kernel whose groups compute tiles from the columns of pairs of blocks."""

    def __init__(self, target: Target, dtype: DType, addresses: int):
        super().__init__(target, dtype)
        self.height, self.packed = side(dtype), _packed(dtype)
        self.addresses = self.words("p", addresses)
        self.count, self.rows, self.columns, self.blocks, self.at = (
            self.parameter(name) for name in ("count", "rows", "columns", "blocks", "round")
        )
        self.steps = self.words("step", 3)
        self.pairs = self.integer("udiv", self.blocks, 2)

    def pair(self, turn: str) -> tuple[str, tuple[str, str]]:
        """The number of the matrix, and the blocks, of a part."""
        number, pair = self.integer("udiv", turn, self.pairs), self.integer("urem", turn, self.pairs)
        return number, _pair(self, pair, self.at, self.blocks)

    def column(self, blocks: tuple[str, str], k: str) -> tuple[str, str]:
        """The column of the matrix that column k of two blocks is, and whether there is one."""
        place = _place_in(self, blocks, k, self.height // 2)
        return place, self.both(self.less(k, self.height), self.less(place, self.columns))

    def fetched(self, matrix: str, row: str, blocks: tuple[str, str], k: str) -> Number:
        """Return an element of a column of two blocks, 0 where there is none."""
        column, exists = self.column(blocks, k)
        value = self.zeros()
        with self.when(self.both(exists, self.less(row, self.rows))):
            self.set_number(value, self.read_number(self.place(matrix, [row, column], self.steps[1:])))
        return self.get_number(value)


def rotate_ir(target: Target, kernel: RotateKernel) -> str:
    """Return the module of the kernel: a group multiplies some rows of the columns of two blocks, in place."""
    body = _OfBlocks(target, kernel.dtype, 3)
    start, rotations, done = body.addresses
    tall = body.squares(body.rows)
    parts = body.integer("mul", body.count, body.pairs)
    with body.loop(body.group(), body.integer("mul", parts, tall), body.groups()) as turn:
        part, tile = body.integer("udiv", turn, tall), body.integer("urem", turn, tall)
        sweeps = body.read(body.place(done, [part], [int32.itemsize]), int32)
        with body.when(body.let(f"icmp ne i32 {sweeps}, 0")):
            _rotate_tile(body, kernel, start, rotations, part, body.integer("mul", tile, TILE))
    return body.ir()


def _rotate_tile(
    body: _OfBlocks, kernel: RotateKernel, start: str, rotations: str, part: str, top: str
) -> None:
    number, blocks = body.pair(part)
    matrix = body.place(start, [number], body.steps[:1])

    def copy(first: str) -> None:
        for i, term in body.lines_and_terms():
            at = body.integer("add", first, term)
            body.fill(0, i, term, body.fetched(matrix, body.integer("add", top, i), blocks, at))
            value = body.zeros()
            with body.when(body.less(i, body.height)):
                own = body.read_number(body.place(rotations, [part, at, i], body.packed))
                body.set_number(value, body.compute(conjugate, own) if kernel.conjugated else own)
            body.fill(1, i, term, body.get_number(value))

    def store(row: str, k: str, value: Number) -> None:
        column, exists = body.column(blocks, k)
        with body.when(exists):
            body.write_number(body.place(matrix, [row, column], body.steps[1:]), value)

    sums = body.square_of(str(body.height), copy)
    body.each_of_square(sums, (top, "0"), (body.rows, str(body.height)), store)


def _copy_columns(body: _OfBlocks, matrix: str, blocks: tuple[str, str], first: str) -> None:
    for j in range(TILE * TERMS // THREADS):
        element = body.integer("add", body.own, THREADS * j)
        term, k = body.integer("urem", element, TERMS), body.integer("udiv", element, TERMS)
        value = body.fetched(matrix, body.integer("add", first, term), blocks, k)
        body.fill(0, k, term, body.compute(conjugate, value))
        body.fill(1, k, term, value)


def gram_ir(target: Target, kernel: GramKernel) -> str:
    """Return the module of the kernel: a group has a pair of blocks."""
    body = _OfBlocks(target, kernel.dtype, 2)
    to, start = body.addresses
    with body.loop(body.group(), body.integer("mul", body.count, body.pairs), body.groups()) as part:
        number, blocks = body.pair(part)
        matrix = body.place(start, [number], body.steps[:1])
        sums = body.square_of(body.rows, functools.partial(_copy_columns, body, matrix, blocks))

        def store(i: str, j: str, value: Number, part: str = part) -> None:
            body.write_number(body.place(to, [part, i, j], body.packed), value)

        body.each_of_square(sums, ("0", "0"), (str(body.height), str(body.height)), store)
    return body.ir()


# ---- Launches --------------------------------------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """The parts of a stack of matrices that are diagonalized at once, and memory for them."""

    stack: int  # matrices
    n: int  # columns
    dtype: DType
    blocks: int
    rotations: Storage
    products: Storage
    sweeps: Storage  # that each part took, in each round

    @property
    def number(self) -> int:
        return self.stack * self.blocks // 2

    @property
    def rounds(self) -> int:
        return self.blocks - 1

    def done(self, at: int) -> int:
        """Return the address of the sweeps of a round."""
        return self.sweeps.ptr + at * self.number * int32.itemsize


def _bits(value: float, dtype: DType) -> int:
    return int.from_bytes(dtype.to_real().numpy.type(value).tobytes(), "little")


class Rotations(Launches):
    """Eigenvalues and singular values of a device."""

    def side(self, dtype: DType) -> int:
        """Return how many rows a matrix may have that one group diagonalizes."""
        return side(dtype)

    def diagonalize(
        self, matrices: Matrices, vectors: Matrices | None, values: int, count: int, n: int, dtype: DType
    ) -> bool:
        """Write eigenvalues [count, n], in no order, and multiply `vectors`, which are identities, by eigenvectors. Norms are about 1.

        Matrices with more rows than `side` become diagonal, and their diagonals are the eigenvalues instead. Whether MOST_SWEEPS sweeps were enough.
        """
        parts = self._parts(count, n, dtype)
        eps = float(np.finfo(dtype.to_real().numpy).eps)
        wanted = [] if vectors is None else [vectors]
        if parts.rounds == 1:
            self._diagonalize(parts, matrices, 0, MOST_SWEEPS, (eps, eps * eps), values)
            for each in wanted:
                self._rotate(parts, each, 0)
            return self._most_sweeps(parts) < MOST_SWEEPS
        # Products leave rounding errors of this size in elements that would be zero, and they are not the same on both sides of the diagonal.
        limits = eps * side(dtype), 4 * eps
        for _ in range(MOST_SWEEPS):
            for at in range(parts.rounds):
                self._diagonalize(parts, matrices, at, INNER_SWEEPS, limits)
                self._rotate(parts, matrices, at)
                self._rotate(parts, matrices.transposed(), at, conjugated=dtype.is_complex)
                for each in wanted:
                    self._rotate(parts, each, at)
            if not self._most_sweeps(parts):
                return True
        return False

    def orthogonalize(
        self, matrices: Matrices, vectors: Matrices | None, count: int, n: int, dtype: DType
    ) -> bool:
        """Multiply matrices [n, n], and `vectors`, by rotations until columns are orthogonal. Norms are about 1.

        Whether MOST_SWEEPS sweeps were enough.
        """
        parts = self._parts(count, n, dtype)
        eps = float(np.finfo(dtype.to_real().numpy).eps)
        # Products of columns have rounding errors of about this size. Columns shorter than eps consist of rounding errors.
        tolerances = eps * max(8, 2 * n**0.5), eps * eps
        for _ in range(MOST_SWEEPS):
            for at in range(parts.rounds):
                self._multiply_columns(parts, matrices, at)
                self._diagonalize_products(parts, at, tolerances)
                for each in (matrices, vectors):
                    if each is not None:
                        self._rotate(parts, each, at)
            if not self._most_sweeps(parts):
                return True
        return False

    def _parts(self, count: int, n: int, dtype: DType) -> _Parts:
        blocks = 2 * -(-n // side(dtype))
        number = count * blocks // 2
        nbytes = number * _packed(dtype)[0]
        sweeps = number * (blocks - 1) * int32.itemsize
        memory = [self.gpu.allocate(each) for each in (nbytes, nbytes, sweeps)]
        return _Parts(count, n, dtype, blocks, *memory)

    def _most_sweeps(self, parts: _Parts) -> int:
        """Wait for the device. Return how many sweeps the part took that took the most."""
        return int(np.frombuffer(self.gpu.read(parts.sweeps.ptr, parts.sweeps.nbytes_), np.int32).max())

    def _diagonalize(
        self,
        parts: _Parts,
        matrices: Matrices,
        at: int,
        most: int,
        tolerances: tuple[float, float],
        values: int = 0,
    ) -> None:
        sizes = parts.stack, parts.n, parts.blocks, at
        self._launch_diagonalization(parts, matrices, sizes, at, most, tolerances, values)

    def _diagonalize_products(self, parts: _Parts, at: int, tolerances: tuple[float, float]) -> None:
        """Diagonalize the products of columns: each is one matrix of two blocks."""
        products, dtype = Matrices(parts.products.ptr, *_packed(parts.dtype)), parts.dtype
        sizes = parts.number, side(dtype), 2, 0
        self._launch_diagonalization(parts, products, sizes, at, INNER_SWEEPS, tolerances, 0)

    def _launch_diagonalization(
        self,
        parts: _Parts,
        matrices: Matrices,
        sizes: tuple[int, int, int, int],
        at: int,
        most: int,
        tolerances: tuple[float, float],
        values: int,
    ) -> None:
        addresses = matrices.address, parts.rotations.ptr, values, parts.done(at)
        limits = [_bits(each, parts.dtype) for each in tolerances]
        numbers = *sizes, most, *limits, *matrices.steps
        self.run(diagonalize_ir, DiagonalizeKernel(parts.dtype), addresses, *numbers)

    def _multiply_columns(self, parts: _Parts, matrices: Matrices, at: int) -> None:
        addresses = parts.products.ptr, matrices.address
        sizes = parts.stack, parts.n, parts.n, parts.blocks, at
        self.run(gram_ir, GramKernel(parts.dtype), addresses, *sizes, *matrices.steps)

    def _rotate(self, parts: _Parts, matrices: Matrices, at: int, conjugated: bool = False) -> None:
        addresses = matrices.address, parts.rotations.ptr, parts.done(at)
        sizes = parts.stack, parts.n, parts.n, parts.blocks, at
        self.run(rotate_ir, RotateKernel(parts.dtype, conjugated), addresses, *sizes, *matrices.steps)
