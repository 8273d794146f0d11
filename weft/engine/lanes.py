"""Factorizations of stacks of small matrices in machine code, one matrix in each lane of the vectors.

On AMD Zen 4 LAPACK needs 0.2 to 0.6 us for a 4x4 matrix and 4 us for one of 32x32, because its vectors run along columns that are
shorter than a vector. Here a vector holds one element of as many matrices as it has lanes, a *group*, so that every instruction works on all lanes at
any size. Rows are swapped by selecting lanes. The result of a matrix does not depend on the others of its group.

Each function that writes a kernel gets a `_Group`, whose matrices lie in the workspace column by column, an element's vector in each
line of 64 bytes.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from ..core.dtype import DType, float32, int32
from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK
from .kernel import Code, compile_loop, shared
from .llvm import constant, value_type
from .sliding import LINE
from .storages import allocator
from .structured import Body, function
from .vectors import broadcast, lanes_below, masked_load, masked_store, transposed

# Rows and columns of the largest matrices. LAPACK on one matrix of 32x32 takes as long as a kernel on a group of 16 (AMD Zen 4).
LARGEST = 32
# Columns of right sides beside a matrix.
MOST_COLUMNS = 64
_OPERANDS = 5
_WORKSPACE = _OPERANDS - 1
# The words of meta, in order. `width`: columns of the matrices. `beside`: columns of right sides, or of Q; `rows`: of R. `row`, `column`: the
# distances (bytes) in the workspace between the elements of a column, and of a row, of the matrices as they are read;
# `beside_row`, `beside_column`: the same of the right sides.
_META = (
    *("count", "tasks", "groups", "scratch", "height", "width", "beside", "rows"),
    *("row", "column", "beside_row", "beside_column"),
)
# A stack is cut into so many tasks at most, each with a workspace of its own, which one thread after the other brings into its cache.
_MOST_TASKS = 8


class _Matrix(NamedTuple):
    """The vectors of a matrix in the workspace: element (i, j) is at `base` + i * `row` + j * `column` bytes."""

    base: str
    height: str
    width: str
    row: str | int
    column: str | int


class _Group:
    """What the functions that write kernels need: a group's place in the operands, and arithmetic on vectors."""

    def __init__(self, b: Body, dtype: DType, meta: dict[str, str], first: str, scratch: str):
        self.b, self.dtype, self.meta, self.first = b, dtype, meta, first
        self.lanes = LINE // dtype.itemsize
        self.vector, self.integers = value_type(dtype, self.lanes), f"<{self.lanes} x i32>"
        self.free = scratch
        self.zero, self.one = (self.number(value) for value in (0.0, 1.0))

    # ---- Arithmetic ----

    def number(self, value: float) -> str:
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        if self.dtype is float32:
            bits = struct.unpack("<i", struct.pack("<f", value))[0]
        return constant(self.dtype, bits, self.lanes)

    def two(self, operation: str, x: str, y: str) -> str:
        return self.b.let(f"{operation} {self.vector} {x}, {y}")

    def call(self, name: str, *operands: str) -> str:
        return self.b.intrinsic(name, self.dtype, self.lanes, *operands)

    def chosen(self, mask: str, x: str, y: str, kind: str = "") -> str:
        kind = kind or self.vector
        return self.b.let(f"select <{self.lanes} x i1> {mask}, {kind} {x}, {kind} {y}")

    def compare(self, condition: str, x: str, y: str) -> str:
        return self.b.let(f"fcmp {condition} {self.vector} {x}, {y}")

    def index(self, value: str) -> str:
        """An index in every lane."""
        return broadcast(self.b, "i32", self.lanes, self.b.let(f"trunc i64 {value} to i32"))

    # ---- The workspace ----

    def room(self, lines: str) -> str:
        """The address of so many lines, rounded up so that `_block` may touch whole squares of lanes."""
        b, address = self.b, self.free
        whole = b.integer("and", b.integer("add", lines, self.lanes - 1), -self.lanes)
        self.free = b.at(address, b.integer("mul", whole, LINE))
        return address

    def matrix(self, height: str, width: str) -> _Matrix:
        """Room for a matrix, stored column by column."""
        b = self.b
        return _Matrix(
            self.room(b.integer("mul", height, width)), height, width, LINE, b.integer("mul", height, LINE)
        )

    def place(self, matrix: _Matrix, i: str | int, j: str | int) -> str:
        b = self.b
        return b.at(b.at(matrix.base, b.integer("mul", matrix.row, i)), b.integer("mul", matrix.column, j))

    def load(self, matrix: _Matrix, i: str | int, j: str | int) -> str:
        return self.b.get(self.place(matrix, i, j), self.vector)

    def store(self, matrix: _Matrix, i: str | int, j: str | int, value: str) -> None:
        self.b.set(self.place(matrix, i, j), self.vector, value)

    @contextmanager
    def elements(self, matrix: _Matrix) -> Iterator[tuple[str, str]]:
        """A loop over the columns, and within it one over the rows: the indices (i, j) of an element."""
        with self.b.loop(0, matrix.width) as j, self.b.loop(0, matrix.height) as i:
            yield i, j

    def fill_identity(self, matrix: _Matrix) -> None:
        with self.elements(matrix) as (i, j):
            self.store(matrix, i, j, self.zero)
        with self.b.loop(0, self.b.minimum(matrix.height, matrix.width)) as k:
            self.store(matrix, k, k, self.one)

    # ---- Operands ----

    def read(self, operand: int, target: _Matrix, row: str, column: str) -> None:
        """Fill a matrix from an operand, whose elements have these distances between rows and columns (bytes of the workspace)."""
        count = self.b.integer("mul", target.height, target.width)
        staged = target._replace(base=self.room(count), row=row, column=column)
        self._blocks(operand, staged.base, count, self.dtype, True)
        with self.elements(target) as (i, j):
            self.store(target, i, j, self.load(staged, i, j))

    def read_matrix(self) -> _Matrix:
        """The first operand in new room."""
        a = self.matrix(self.meta["height"], self.meta["width"])
        self.read(0, a, self.meta["row"], self.meta["column"])
        return a

    def write(self, operand: int, base: str, count: str, dtype: DType | None = None) -> None:
        """Store so many lines as the elements of each matrix of an operand, one after the other."""
        self._blocks(operand, base, count, dtype or self.dtype, False)

    def write_one(self, operand: int, value: str, dtype: DType) -> None:
        """Store one element for each matrix."""
        b = self.b
        inside = lanes_below(b, self.lanes, b.integer("sub", self.meta["count"], self.first))
        address = b.at(self.base(operand), b.integer("mul", self.first, dtype.itemsize))
        masked_store(b, dtype, self.lanes, value, address, inside)

    def base(self, operand: int) -> str:
        return self.b.let(f"load ptr, ptr {self.b.at('%operands', 8 * operand)}")

    def _blocks(self, operand: int, lines: str, count: str, dtype: DType, reads: bool) -> None:
        """Transpose squares: as many elements of a matrix as there are lanes, for the matrices of all lanes."""
        b, lanes, size = self.b, self.lanes, dtype.itemsize
        stride, last = b.integer("mul", count, size), b.integer("sub", self.meta["count"], 1)
        base, kind = self.base(operand), value_type(dtype, lanes)
        # Lanes behind the last matrix work on the last matrix, too. So they read valid memory, and write the same values to it.
        matrices = [
            b.at(base, b.integer("mul", b.minimum(b.integer("add", self.first, k), last), stride))
            for k in range(lanes)
        ]
        with b.loop(0, count, lanes) as element:
            mask = lanes_below(b, lanes, b.integer("sub", count, element))
            addresses = [b.at(matrix, b.integer("mul", element, size)) for matrix in matrices]
            line = b.at(lines, b.integer("mul", element, LINE))
            places = [b.at(line, LINE * k) for k in range(lanes)]
            if reads:
                rows = [masked_load(b, dtype, lanes, address, mask) for address in addresses]
                for place, row in zip(places, transposed(b, kind, rows), strict=True):
                    b.set(place, kind, row)
            else:
                rows = transposed(b, kind, [b.get(place, kind) for place in places])
                for address, row in zip(addresses, rows, strict=True):
                    masked_store(b, dtype, lanes, row, address, mask)


# ---- Gaussian elimination --------------------------------------------------------------------------------------------


class _Elimination:
    """LU factors in place, with the row swaps of LAPACK's getrf: each pivot is the first of the largest magnitude.

    Right sides that lie behind the columns of the matrix are swapped and eliminated with it.
    """

    def __init__(self, g: _Group, a: _Matrix, columns: str):
        """`columns`: of the matrix and of the right sides."""
        self.g, self.a, self.columns = g, a, columns
        self.count = g.b.minimum(a.height, a.width)
        self.pivots = g.room(self.count)
        self.info = g.b.variable(g.integers, "zeroinitializer")
        self.sign = g.b.variable(g.vector, g.one)
        with g.b.loop(0, self.count) as k:
            self._step(k)

    def _step(self, k: str) -> None:
        g, a, b = self.g, self.a, self.g.b
        below = b.integer("add", k, 1)
        best = b.variable(g.vector, g.call("fabs", g.load(a, k, k)))
        pivot_row = b.variable(g.integers, g.index(k))
        with b.loop(below, a.height) as i:
            size = g.call("fabs", g.load(a, i, k))
            larger = g.compare("ogt", size, b.get(best, g.vector))
            b.set(best, g.vector, g.chosen(larger, size, b.get(best, g.vector)))
            b.set(
                pivot_row, g.integers, g.chosen(larger, g.index(i), b.get(pivot_row, g.integers), g.integers)
            )
        chosen = b.get(pivot_row, g.integers)
        number = b.let(f"add {g.integers} {chosen}, {constant(int32, 1, g.lanes)}")
        b.set(b.at(self.pivots, b.integer("mul", k, LINE)), g.integers, number)
        with b.loop(below, a.height) as i:
            self._swap(k, i, b.let(f"icmp eq {g.integers} {chosen}, {g.index(i)}"))
        pivot = g.load(a, k, k)
        singular = g.compare("oeq", pivot, g.zero)
        first = b.let(f"icmp eq {g.integers} {b.get(self.info, g.integers)}, zeroinitializer")
        first = b.let(f"and <{g.lanes} x i1> {first}, {singular}")
        info = g.chosen(first, g.index(below), b.get(self.info, g.integers), g.integers)
        b.set(self.info, g.integers, info)
        divisor = g.chosen(singular, g.one, pivot)  # the elements below are 0, too
        with b.loop(below, a.height) as i:
            g.store(a, i, k, g.two("fdiv", g.load(a, i, k), divisor))
        with b.loop(below, self.columns) as j:
            _subtract_column(g, a, k, j, below, a.height)

    def _swap(self, k: str, i: str, mask: str) -> None:
        """Swap row k with row i where the mask is set."""
        g, a, b = self.g, self.a, self.g.b
        bits = b.let(f"bitcast <{g.lanes} x i1> {mask} to i{g.lanes}")
        with b.when(b.let(f"icmp ne i{g.lanes} {bits}, 0")):
            sign = b.get(self.sign, g.vector)
            b.set(self.sign, g.vector, g.chosen(mask, b.let(f"fneg {g.vector} {sign}"), sign))
            with b.loop(0, self.columns) as j:
                upper, lower = g.load(a, k, j), g.load(a, i, j)
                g.store(a, k, j, g.chosen(mask, lower, upper))
                g.store(a, i, j, g.chosen(mask, upper, lower))


def _subtract_column(
    g: _Group, a: _Matrix, k: str, j: str, begin: str | int, end: str, upper: str = ""
) -> None:
    """In rows begin to end, a[i, j] -= a[i, k] * upper, with one rounding; `upper` is a[k, j] unless it is given."""
    factor = g.b.let(f"fneg {g.vector} {upper or g.load(a, k, j)}")
    with g.b.loop(begin, end) as i:
        g.store(a, i, j, g.call("fma", g.load(a, i, k), factor, g.load(a, i, j)))


def _lu(g: _Group) -> None:
    """a -> factors, pivots, infos."""
    a = g.read_matrix()
    found = _Elimination(g, a, a.width)
    g.write(1, a.base, g.b.integer("mul", a.height, a.width))
    g.write(2, found.pivots, found.count, int32)
    g.write_one(3, g.b.get(found.info, g.integers), int32)


def _triangle(g: _Group) -> None:
    """a -> the diagonal of U, and -1 where an odd number of rows was swapped, else 1."""
    a = g.read_matrix()
    found = _Elimination(g, a, a.width)
    diagonal = g.matrix(found.count, "1")
    with g.b.loop(0, found.count) as k:
        g.store(diagonal, k, 0, g.load(a, k, k))
    g.write(1, diagonal.base, found.count)
    g.write_one(2, g.b.get(found.sign, g.vector), g.dtype)


def _solve(g: _Group) -> None:
    """a, right sides -> solutions, infos."""
    _solve_for(g, lambda right: g.read(1, right, g.meta["beside_row"], g.meta["beside_column"]))


def _inverse(g: _Group) -> None:
    """a, nothing -> inverses, infos."""
    _solve_for(g, g.fill_identity)


def _solve_for(g: _Group, fill: Callable[[_Matrix], None]) -> None:
    b, n, beside = g.b, g.meta["height"], g.meta["beside"]
    columns = b.integer("add", n, beside)
    whole = g.matrix(n, columns)
    a = whole._replace(width=n)
    right = a._replace(base=g.place(a, 0, n), width=beside)
    g.read(0, a, g.meta["row"], g.meta["column"])
    fill(right)
    found = _Elimination(g, a, columns)
    with b.loop(0, beside) as c:
        column = b.integer("add", n, c)
        with b.loop(0, n) as step:
            k = b.integer("sub", b.integer("sub", n, 1), step)
            g.store(whole, k, column, g.two("fdiv", g.load(whole, k, column), g.load(a, k, k)))
            _subtract_column(g, whole, k, column, 0, k)
    g.write(2, right.base, b.integer("mul", n, beside))
    g.write_one(3, b.get(found.info, g.integers), int32)


# ---- Other factorizations --------------------------------------------------------------------------------------------


def _cholesky(g: _Group) -> None:
    """a -> lower factors, infos. The meta says where rows and columns of the factor lie, so that it may be an upper one."""
    b, n = g.b, g.meta["height"]
    a = g.matrix(n, n)._replace(row=g.meta["beside_row"], column=g.meta["beside_column"])
    g.read(0, a, g.meta["row"], g.meta["column"])
    info = b.variable(g.integers, "zeroinitializer")
    with b.loop(0, n) as k:
        below = b.integer("add", k, 1)
        pivot = g.load(a, k, k)
        first = b.let(f"icmp eq {g.integers} {b.get(info, g.integers)}, zeroinitializer")
        first = b.let(f"and <{g.lanes} x i1> {first}, {g.compare('ule', pivot, g.zero)}")  # NaN fails, too
        b.set(info, g.integers, g.chosen(first, g.index(below), b.get(info, g.integers), g.integers))
        root = g.call("sqrt", pivot)
        g.store(a, k, k, root)
        with b.loop(below, n) as i:
            g.store(a, i, k, g.two("fdiv", g.load(a, i, k), root))
            g.store(a, k, i, g.zero)
        with b.loop(below, n) as j:
            _subtract_column(g, a, k, j, j, n, g.load(a, j, k))
    g.write(1, a.base, b.integer("mul", n, n))
    g.write_one(2, b.get(info, g.integers), int32)


def _qr(g: _Group) -> None:
    """a -> R, Q, by Householder's reflections as in LAPACK's geqrf and orgqr. The meta says how many columns Q has: none, or more."""
    b, beside = g.b, g.meta["beside"]
    a = g.read_matrix()
    count = b.minimum(a.height, a.width)
    scales = g.matrix(count, "1")
    with b.loop(0, count) as k:
        g.store(scales, k, 0, _reflection(g, a, k))
        with b.loop(b.integer("add", k, 1), a.width) as j:
            _reflect(g, a, k, g.load(scales, k, 0), a, j)
    upper = g.matrix(g.meta["rows"], a.width)
    with g.elements(upper) as (i, j):
        g.store(upper, i, j, g.zero)
    with b.loop(0, a.width) as j, b.loop(0, b.minimum(count, b.integer("add", j, 1))) as i:
        g.store(upper, i, j, g.load(a, i, j))
    g.write(1, upper.base, b.integer("mul", upper.height, upper.width))
    with b.when(b.let(f"icmp ne i64 {beside}, 0")):
        basis = g.matrix(a.height, beside)
        g.fill_identity(basis)
        with b.loop(0, count) as step:
            k = b.integer("sub", b.integer("sub", count, 1), step)
            with b.loop(k, beside) as j:
                _reflect(g, a, k, g.load(scales, k, 0), basis, j)
        g.write(2, basis.base, b.integer("mul", a.height, beside))


def _reflection(g: _Group, a: _Matrix, k: str) -> str:
    """The reflection that clears column k below row k: its vector replaces them, but for the first element, which is 1.

    Returns its scale. The sum of squares is that of elements divided by a power of two, so that it neither overflows nor vanishes.
    """
    b, below = g.b, g.b.integer("add", k, 1)
    largest, squares = b.variable(g.vector, g.zero), b.variable(g.vector, g.zero)
    with b.loop(k, a.height) as i:
        size = g.call("fabs", g.load(a, i, k))
        found = b.get(largest, g.vector)
        b.set(largest, g.vector, g.chosen(g.compare("ogt", size, found), size, found))
    unit = _power_of_two(g, b.get(largest, g.vector))
    with b.loop(below, a.height) as i:
        part = g.two("fdiv", g.load(a, i, k), unit)
        b.set(squares, g.vector, g.call("fma", part, part, b.get(squares, g.vector)))
    head = g.load(a, k, k)
    part = g.two("fdiv", head, unit)
    rest = b.get(squares, g.vector)
    norm = g.two("fmul", g.call("sqrt", g.call("fma", part, part, rest)), unit)
    image = b.let(f"fneg {g.vector} {g.call('copysign', norm, head)}")
    is_clear = g.compare("oeq", rest, g.zero)
    scale = g.two("fdiv", g.two("fsub", image, head), g.chosen(is_clear, g.one, image))
    divisor = g.chosen(is_clear, g.one, g.two("fsub", head, image))
    with b.loop(below, a.height) as i:
        g.store(a, i, k, g.two("fdiv", g.load(a, i, k), divisor))
    g.store(a, k, k, g.chosen(is_clear, head, image))
    return g.chosen(is_clear, g.zero, scale)


def _power_of_two(g: _Group, value: str) -> str:
    """The largest power of two that is not above a positive value, or the least normal number."""
    b, width = g.b, 8 * g.dtype.itemsize
    mantissa, least = (23, 1 << 23) if g.dtype is float32 else (52, 1 << 52)
    kind = f"<{g.lanes} x i{width}>"
    exponent = (
        (1 << (width - 1 - mantissa)) - 2
    ) << mantissa  # of the largest power, so that infinity has one, too
    b.declarations.add(f"declare {kind} @llvm.umax.v{g.lanes}i{width}({kind}, {kind})")
    b.declarations.add(f"declare {kind} @llvm.umin.v{g.lanes}i{width}({kind}, {kind})")
    bits = b.let(f"bitcast {g.vector} {value} to {kind}")
    bits = b.let(f"and {kind} {bits}, splat (i{width} {-(1 << mantissa)})")
    bits = b.let(f"call {kind} @llvm.umax.v{g.lanes}i{width}({kind} {bits}, {kind} splat (i{width} {least}))")
    bits = b.let(
        f"call {kind} @llvm.umin.v{g.lanes}i{width}({kind} {bits}, {kind} splat (i{width} {exponent}))"
    )
    return b.let(f"bitcast {kind} {bits} to {g.vector}")


def _reflect(g: _Group, vectors: _Matrix, k: str, scale: str, a: _Matrix, j: str) -> None:
    """Apply reflection k, whose vector is in column k of `vectors`, to column j of a."""
    b, below = g.b, g.b.integer("add", k, 1)
    total = b.variable(g.vector, g.load(a, k, j))
    with b.loop(below, a.height) as i:
        b.set(total, g.vector, g.call("fma", g.load(vectors, i, k), g.load(a, i, j), b.get(total, g.vector)))
    factor = b.let(f"fneg {g.vector} {g.two('fmul', scale, b.get(total, g.vector))}")
    g.store(a, k, j, g.two("fadd", g.load(a, k, j), factor))
    with b.loop(below, a.height) as i:
        g.store(a, i, j, g.call("fma", g.load(vectors, i, k), factor, g.load(a, i, j)))


# ---- Kernels ---------------------------------------------------------------------------------------------------------

_WRITERS = {
    "lu": _lu,
    "triangle": _triangle,
    "solve": _solve,
    "inverse": _inverse,
    "cholesky": _cholesky,
    "qr": _qr,
}


@functools.cache
def _code(name: str, dtype: DType) -> Code:
    declarations: set[str] = set()
    parameters = "ptr %operands, ptr %meta, i64 %begin, i64 %end"
    text = function("loop", parameters, declarations, lambda body: _write(body, name, dtype))
    return compile_loop("\n".join([*sorted(declarations), text]), _OPERANDS, "", vectorize=False)


def _write(b: Body, name: str, dtype: DType) -> None:
    """`loop(operands, meta, begin, end)`: tasks begin to end, each with its groups."""
    meta = {word: b.let(f"load i64, ptr {b.at('%meta', 8 * k)}") for k, word in enumerate(_META)}
    workspace = b.let(f"load ptr, ptr {b.at('%operands', 8 * _WORKSPACE)}")
    groups, tasks = meta["groups"], meta["tasks"]
    with b.loop("%begin", "%end") as task:
        first = b.integer("sdiv", b.integer("mul", groups, task), tasks)
        after = b.integer("sdiv", b.integer("mul", groups, b.integer("add", task, 1)), tasks)
        scratch = b.at(workspace, b.integer("mul", task, meta["scratch"]))
        with b.loop(first, after) as group:
            lanes = LINE // dtype.itemsize
            _WRITERS[name](_Group(b, dtype, meta, b.integer("mul", group, lanes), scratch))


class Lanes:
    """A factorization of a stack of matrices: call it with the addresses of the operands."""

    __slots__ = ("allocate", "entry", "meta", "padding", "tasks", "words")

    def __init__(self, name: str, dtype: DType, count: int, work: int, operands: int, **sizes: int):
        """work: multiplications for each matrix, about. sizes: the words of meta from "height" on; those that are left out are 0."""
        lanes = LINE // dtype.itemsize
        groups = -(-count // lanes)
        is_shared = count * work >= SHARED_WORK
        self.tasks = min(groups, _MOST_TASKS) if is_shared else 1
        height, width, beside = (sizes.get(key, 0) for key in ("height", "width", "beside"))
        lines = 2 * height * (width + beside) + (width + beside) * width + 2 * (height + width)
        scratch = LINE * (lines + 8 * lanes)
        values = {"count": count, "tasks": self.tasks, "groups": groups, "scratch": scratch, **sizes}
        self.words = np.array([values.get(word, 0) for word in _META], np.int64)
        self.meta, self.padding = self.words.ctypes.data, (0,) * (_WORKSPACE - operands)
        self.allocate = allocator(scratch * self.tasks + LINE)
        code = _code(name, dtype)
        self.entry = code.entry
        if is_shared:
            self.entry = shared(code, count * work >= ALWAYS_SHARED_WORK)

    def __call__(self, *addresses: int) -> None:
        storage = self.allocate()
        workspace = storage.ptr + LINE - 1 & -LINE
        self.entry(*addresses, *self.padding, workspace, self.meta, self.tasks)
