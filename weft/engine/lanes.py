"""Computes factorizations of stacks of small matrices in machine code, one matrix in each lane of the vectors.

On AMD Zen 4 LAPACK needs 0.2 to 0.6 us for a 4x4 matrix and 4 us for one of 32x32, because its vectors run along columns that are
shorter than a vector. Here a vector holds one element of as many matrices as it has lanes, a *group*, so that every instruction works on all lanes at
any size. Rows are swapped by selecting lanes. The result of a matrix does not depend on the others of its group.

Each function that writes a kernel gets a `Group` (`lane_groups.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..core.dtype import DType, int32
from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK
from .kernel import Code, loop_code, shared
from .lane_eigen import eigh
from .lane_groups import Group, Matrix
from .lane_reflections import qr
from .llvm import constant
from .sliding import LINE
from .storages import allocator
from .structured import Body

# Rows and columns of the largest matrices. LAPACK on one matrix of 32x32 takes as long as a kernel on a group of 16 (AMD Zen 4).
LARGEST = 32
# Columns of right sides beside a matrix.
MOST_COLUMNS = 64
_OPERANDS = 5
_WORKSPACE = _OPERANDS - 1
# The words of meta, in order. `width`: columns of the matrices. `beside`: columns of right sides, or of Q; `rows`: of R, or the kind of a triangle. `row`, `column`: the
# distances (bytes) in the workspace between the elements of a column, and of a row, of the matrices as they are read;
# `beside_row`, `beside_column`: the same of the right sides.
_META = (
    *("count", "tasks", "groups", "scratch", "height", "width", "beside", "rows"),
    *("row", "column", "beside_row", "beside_column"),
)
# A stack is cut into so many tasks at most, each with a workspace of its own, which one thread after the other brings into its cache.
_MOST_TASKS = 8


# ---- Gaussian elimination --------------------------------------------------------------------------------------------


class _Elimination:
    """LU factors in place, with the row swaps of LAPACK's getrf: each pivot is the first of the largest magnitude.

    Right sides that lie behind the columns of the matrix are swapped and eliminated with it.
    """

    def __init__(self, g: Group, a: Matrix, columns: str):
        """Compute `columns`: of the matrix and of the right sides."""
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
        b.set(b.place(self.pivots, (k, LINE)), g.integers, number)
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
    g: Group, a: Matrix, k: str, j: str, begin: str | int, end: str, upper: str = ""
) -> None:
    """In rows begin to end, a[i, j] -= a[i, k] * upper, with one rounding; `upper` is a[k, j] unless it is given."""
    factor = g.b.let(f"fneg {g.vector} {upper or g.load(a, k, j)}")
    with g.b.loop(begin, end) as i:
        g.store(a, i, j, g.call("fma", g.load(a, i, k), factor, g.load(a, i, j)))


def _lu(g: Group) -> None:
    """Map a -> factors, pivots, infos."""
    a = g.read_matrix()
    found = _Elimination(g, a, a.width)
    g.write(1, a.base, g.b.integer("mul", a.height, a.width))
    g.write(2, found.pivots, found.count, int32)
    g.write_one(3, g.b.get(found.info, g.integers), int32)


def _triangle(g: Group) -> None:
    """a -> the diagonal of U, and -1 where an odd number of rows was swapped, else 1."""
    a = g.read_matrix()
    found = _Elimination(g, a, a.width)
    diagonal = g.matrix(found.count, "1")
    with g.b.loop(0, found.count) as k:
        g.store(diagonal, k, 0, g.load(a, k, k))
    g.write(1, diagonal.base, found.count)
    g.write_one(2, g.b.get(found.sign, g.vector), g.dtype)


def _solve(g: Group) -> None:
    """Map a, right sides -> solutions, infos."""
    _solve_for(g, lambda right: g.read(1, right, g.meta["beside_row"], g.meta["beside_column"]))


def _inverse(g: Group) -> None:
    """Map a, nothing -> inverses, infos."""
    _solve_for(g, g.fill_identity)


def _solve_for(g: Group, fill: Callable[[Matrix], None]) -> None:
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


# The word `rows` of a triangular system: upper triangles, plus ones that stand for the diagonal.
UPPER, UNIT = 1, 2


def _substitute(g: Group) -> None:
    """Map triangles, right sides -> solutions."""
    b, n, beside = g.b, g.meta["height"], g.meta["beside"]
    a, right = g.read_matrix(), g.matrix(n, beside)
    g.read(1, right, g.meta["beside_row"], g.meta["beside_column"])
    with b.when(b.let(f"icmp uge i64 {g.meta['rows']}, {UNIT}")), b.loop(0, n) as k:
        g.store(a, k, k, g.one)
    # Upper triangles are lower ones if all rows and columns are counted from the last.
    is_upper = b.integer("and", g.meta["rows"], UPPER)
    sign, last = b.integer("sub", 1, b.integer("mul", is_upper, 2)), b.integer("sub", n, 1)
    skipped = b.integer("mul", last, is_upper)
    row, column = (b.integer("mul", step, sign) for step in (a.row, a.column))
    lower = a._replace(base=g.place(a, skipped, skipped), row=row, column=column)
    found = right._replace(base=g.place(right, skipped, 0), row=row)
    with b.loop(0, beside) as c, b.loop(0, n) as k:
        value = g.two("fdiv", g.load(found, k, c), g.load(lower, k, k))
        g.store(found, k, c, value)
        factor = b.let(f"fneg {g.vector} {value}")
        with b.loop(b.integer("add", k, 1), n) as i:
            g.store(found, i, c, g.call("fma", g.load(lower, i, k), factor, g.load(found, i, c)))
    g.write(2, right.base, b.integer("mul", n, beside))


# ---- Other factorizations --------------------------------------------------------------------------------------------


def _cholesky(g: Group) -> None:
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


# ---- Kernels ---------------------------------------------------------------------------------------------------------

_WRITERS = {
    "lu": _lu,
    "triangle": _triangle,
    "solve": _solve,
    "inverse": _inverse,
    "substitute": _substitute,
    "cholesky": _cholesky,
    "qr": qr,
    "eigh": eigh,
}


@functools.cache
def _code(name: str, dtype: DType) -> Code:
    return loop_code(lambda body: _write(body, name, dtype), _OPERANDS, vectorize=False)


def _write(b: Body, name: str, dtype: DType) -> None:
    """`loop(operands, meta, begin, end)`: tasks begin to end, each with its groups."""
    meta = b.fields("%meta", _META)
    (workspace,) = b.operands(_WORKSPACE, _WORKSPACE + 1)
    groups, tasks = meta["groups"], meta["tasks"]
    with b.loop("%begin", "%end") as task:
        first = b.integer("sdiv", b.integer("mul", groups, task), tasks)
        after = b.integer("sdiv", b.integer("mul", groups, b.integer("add", task, 1)), tasks)
        scratch = b.place(workspace, (task, meta["scratch"]))
        with b.loop(first, after) as group:
            lanes = LINE // dtype.itemsize
            _WRITERS[name](Group(b, dtype, meta, b.integer("mul", group, lanes), scratch))


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
