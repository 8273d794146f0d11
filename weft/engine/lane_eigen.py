"""Eigenvalues and eigenvectors of a group of symmetric matrices (`lane_groups.py`).

Householder's reflections make each matrix tridiagonal, as in LAPACK's sytrd. Then sweeps of plane rotations make the elements beside the
diagonal vanish, as in LAPACK's steqr: the implicit QL algorithm with Wilkinson's shift. A sweep runs over the longest part that a matrix of the group
still has; in the lanes of the other matrices the rotations beyond their own part are identities. 64 float32 matrices of 32x32 take 0.6 ms on one thread, in OpenBLAS 6.7
(AMD Zen 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..core.dtype import int32
from .lane_groups import Group, Matrix
from .lane_reflections import power_of_two, reflect, reflection
from .llvm import constant

# Sweeps for one eigenvalue. Two are usual; LAPACK gives up after 30 for each.
_MOST_SWEEPS = 30
# Rows of the eigenvectors that are rotated side by side, because one row would wait for its own last product.
_ROWS = 4


class _Tridiagonal:
    """The columns of the workspace that the steps share, each with an element for every row of the matrices."""

    def __init__(self, g: Group):
        b, n = g.b, g.meta["height"]
        self.g, self.n, self.last = g, n, b.integer("sub", n, 1)
        columns = g.matrix(n, "5")
        self.diagonal, self.beside, self.scales, self.first, self.second = (
            columns._replace(base=g.place(columns, 0, k), width="1") for k in range(5)
        )
        self.limits = np.finfo(g.dtype.numpy)

    # ---- To tridiagonal form ----

    def reduce(self, a: Matrix) -> None:
        """Only the lower triangle of `a` is read. The reflections' vectors replace it."""
        g, b, n = self.g, self.g.b, self.n
        below = self.below(a)
        with b.loop(0, self.last) as k:
            scale = reflection(g, below, k)
            g.store(self.scales, k, 0, scale)
            g.store(self.diagonal, k, 0, g.load(a, k, k))
            g.store(self.beside, k, 0, g.load(below, k, k))
            start = b.integer("add", k, 1)
            g.store(self.first, start, 0, g.one)
            with b.loop(b.integer("add", k, 2), n) as i:
                g.store(self.first, i, 0, g.load(a, i, k))
            self._multiply(a, start)
            self._correct(scale, start)
            with b.loop(start, n) as j:
                own = b.let(f"fneg {g.vector} {g.load(self.first, j, 0)}")
                other = b.let(f"fneg {g.vector} {g.load(self.second, j, 0)}")
                with b.loop(j, n) as i:
                    value = g.call("fma", g.load(self.second, i, 0), own, g.load(a, i, j))
                    g.store(a, i, j, g.call("fma", g.load(self.first, i, 0), other, value))
        g.store(self.diagonal, self.last, 0, g.load(a, self.last, self.last))

    def below(self, a: Matrix) -> Matrix:
        """All rows but the first, in which column k has the vector of reflection k from row k on."""
        return a._replace(base=self.g.place(a, 1, 0), height=self.last)

    def _multiply(self, a: Matrix, start: str) -> None:
        """second = a @ first, from row `start` on, where `a` is symmetric and only its lower triangle is read."""
        g, b, n = self.g, self.g.b, self.n
        with b.loop(start, n) as i:
            g.store(self.second, i, 0, g.zero)
        with b.loop(start, n) as j:
            factor = g.load(self.first, j, 0)
            total = b.variable(g.vector, g.zero)
            b.set(total, g.vector, g.call("fma", g.load(a, j, j), factor, g.load(self.second, j, 0)))
            with b.loop(b.integer("add", j, 1), n) as i:
                element = g.load(a, i, j)
                b.set(
                    total, g.vector, g.call("fma", element, g.load(self.first, i, 0), b.get(total, g.vector))
                )
                g.store(self.second, i, 0, g.call("fma", element, factor, g.load(self.second, i, 0)))
            g.store(self.second, j, 0, b.get(total, g.vector))

    def _correct(self, scale: str, start: str) -> None:
        """second = scale * (second - scale / 2 * (second . first) * first), so that a - first second' - second first' is the reflected matrix."""
        g, b, n = self.g, self.g.b, self.n
        product = b.variable(g.vector, g.zero)
        with b.loop(start, n) as i:
            value = g.two("fmul", scale, g.load(self.second, i, 0))
            g.store(self.second, i, 0, value)
            b.set(product, g.vector, g.call("fma", value, g.load(self.first, i, 0), b.get(product, g.vector)))
        half = g.two("fmul", g.two("fmul", scale, g.number(-0.5)), b.get(product, g.vector))
        with b.loop(start, n) as i:
            value = g.call("fma", half, g.load(self.first, i, 0), g.load(self.second, i, 0))
            g.store(self.second, i, 0, value)

    def fill_basis(self, a: Matrix, basis: Matrix) -> None:
        """basis = the product of the reflections that `reduce` left in `a`."""
        g, b = self.g, self.g.b
        g.fill_identity(basis)
        vectors, part = self.below(a), self.below(basis)
        with b.loop(0, self.last) as step:
            k = b.integer("sub", b.integer("sub", self.last, 1), step)
            with b.loop(b.integer("add", k, 1), self.n) as j:
                reflect(g, vectors, k, g.load(self.scales, k, 0), part, j)

    # ---- To diagonal form ----

    def diagonalize(self, basis: Matrix, has_basis: str) -> str:
        """Replace the diagonal by the eigenvalues, and the columns of the basis by the eigenvectors, in no order.

        Returns, in the bits of an integer, the lanes that did not converge.
        """
        g, b = self.g, self.g.b
        bits = f"i{g.lanes}"
        stuck = b.variable(bits, "0")
        with b.loop(0, self.last) as row:
            unfinished = b.variable(bits, "-1")
            with b.loop(0, _MOST_SWEEPS):
                with b.when(b.let(f"icmp ne {bits} {b.get(unfinished, bits)}, 0")):
                    end, shift = self._part(row)
                    active = b.let(f"icmp ne {g.integers} {end}, {g.index(row)}")
                    lanes = b.let(f"bitcast <{g.lanes} x i1> {active} to {bits}")
                    b.set(unfinished, bits, lanes)
                    with b.when(b.let(f"icmp ne {bits} {lanes}, 0")):
                        top = self._sweep(row, end, shift, active)
                        with b.when(has_basis):
                            self._rotate(basis, row, top)
            b.set(stuck, bits, b.let(f"or {bits} {b.get(stuck, bits)}, {b.get(unfinished, bits)}"))
        return b.get(stuck, bits)

    def _part(self, row: str) -> tuple[str, str]:
        """The last row of the part that begins with row l: the element beside the diagonal behind it is as good as 0. And its element of the diagonal."""
        g, b = self.g, self.g.b
        end = b.variable(g.integers, g.index(self.last))
        value = b.variable(g.vector, g.load(self.diagonal, self.last, 0))
        after = b.variable(g.vector, g.call("fabs", b.get(value, g.vector)))
        with self._upwards(row, self.last) as i:
            own = g.load(self.diagonal, i, 0)
            size = g.call("fabs", own)
            bound = g.two("fadd", size, b.get(after, g.vector))
            bound = g.call(
                "fma", bound, g.number(float(self.limits.eps)), g.number(float(self.limits.tiny) ** 0.5)
            )
            is_small = g.compare("ole", g.call("fabs", g.load(self.beside, i, 0)), bound)
            b.set(end, g.integers, g.chosen(is_small, g.index(i), b.get(end, g.integers), g.integers))
            b.set(value, g.vector, g.chosen(is_small, own, b.get(value, g.vector)))
            b.set(after, g.vector, size)
        return b.get(end, g.integers), b.get(value, g.vector)

    @contextmanager
    def _upwards(self, start: str, end: str) -> Iterator[str]:
        """A loop over the rows before `end`, from the last one up to `start`."""
        b = self.g.b
        with b.loop(0, b.integer("sub", end, start)) as step:
            yield b.integer("sub", b.integer("sub", end, 1), step)

    def _sweep(self, row: str, end: str, last: str, active: str) -> str:
        """One sweep over the part from `row` to `end`, whose last element on the diagonal is `last`; the rotations replace `first` and `second`.

        Returns the end of the longest part. `active`: the lanes whose part has more than one row.
        """
        g, b = self.g, self.g.b
        top = self._greatest(end)
        shift = b.variable(g.vector, self._shifted(row, last, active))
        cosine, sine = b.variable(g.vector, g.one), b.variable(g.vector, g.one)
        change = b.variable(g.vector, g.zero)
        with self._upwards(row, top) as i:
            after = b.integer("add", i, 1)
            inside = b.let(f"icmp slt {g.integers} {g.index(i)}, {end}")
            is_end = b.let(f"icmp eq {g.integers} {g.index(after)}, {end}")
            element, old = g.load(self.beside, i, 0), b.get(shift, g.vector)
            height = g.two("fmul", b.get(sine, g.vector), element)
            rest = g.two("fmul", b.get(cosine, g.vector), element)
            new_cosine, new_sine, length = self._rotation(old, height)
            before = g.load(self.beside, after, 0)
            length = g.chosen(is_end, g.zero, length)
            g.store(self.beside, after, 0, g.chosen(inside, length, before))
            value = g.load(self.diagonal, after, 0)
            moved = g.two("fsub", value, b.get(change, g.vector))
            slope = g.two("fmul", g.two("fsub", g.load(self.diagonal, i, 0), moved), new_sine)
            slope = g.call("fma", g.two("fadd", new_cosine, new_cosine), rest, slope)
            new_change = g.two("fmul", new_sine, slope)
            g.store(self.diagonal, after, 0, g.chosen(inside, g.two("fadd", moved, new_change), value))
            minus = b.let(f"fneg {g.vector} {rest}")
            b.set(shift, g.vector, g.chosen(inside, g.call("fma", new_cosine, slope, minus), old))
            b.set(change, g.vector, g.chosen(inside, new_change, b.get(change, g.vector)))
            b.set(cosine, g.vector, g.chosen(inside, new_cosine, b.get(cosine, g.vector)))
            b.set(sine, g.vector, g.chosen(inside, new_sine, b.get(sine, g.vector)))
            g.store(self.first, i, 0, g.chosen(inside, new_cosine, g.one))
            g.store(self.second, i, 0, g.chosen(inside, new_sine, g.zero))
        value = g.load(self.diagonal, row, 0)
        g.store(self.diagonal, row, 0, g.two("fsub", value, b.get(change, g.vector)))
        beside = g.load(self.beside, row, 0)
        g.store(self.beside, row, 0, g.chosen(active, b.get(shift, g.vector), beside))
        return top

    def _greatest(self, indices: str) -> str:
        g, b = self.g, self.g.b
        name = f"@llvm.vector.reduce.smax.v{g.lanes}i32"
        b.declarations.add(f"declare i32 {name}({g.integers})")
        return b.let(f"sext i32 {b.let(f'call i32 {name}({g.integers} {indices})')} to i64")

    def _shifted(self, row: str, last: str, active: str) -> str:
        """The last element of the diagonal less Wilkinson's shift, the eigenvalue of the first 2x2 block that is nearer to its first element."""
        g, b = self.g, self.g.b
        own, after = g.load(self.diagonal, row, 0), g.load(self.diagonal, b.integer("add", row, 1), 0)
        beside = g.chosen(active, g.load(self.beside, row, 0), g.one)
        slope = g.two("fdiv", g.two("fsub", after, own), g.two("fadd", beside, beside))
        root = g.call("copysign", g.call("sqrt", g.call("fma", slope, slope, g.one)), slope)
        return g.two("fadd", g.two("fsub", last, own), g.two("fdiv", beside, g.two("fadd", slope, root)))

    def _rotation(self, x: str, y: str) -> tuple[str, str, str]:
        """The cosine, the sine and the length of (x, y). A length that is as good as 0 gives the identity, because its square loses digits."""
        g = self.g
        squares = g.call("fma", x, x, g.two("fmul", y, y))
        is_tiny = g.compare("olt", squares, g.number(float(self.limits.tiny) / float(self.limits.eps)))
        length = g.call("sqrt", squares)
        cosine = g.chosen(is_tiny, g.one, g.two("fdiv", x, length))
        sine = g.chosen(is_tiny, g.zero, g.two("fdiv", y, length))
        return cosine, sine, g.chosen(is_tiny, x, length)

    def _rotate(self, basis: Matrix, row: str, top: str) -> None:
        """Apply the rotations of a sweep to the columns of the basis, some of its rows at a time."""
        g, b = self.g, self.g.b
        with b.loop(0, basis.height, _ROWS) as first:
            rows = [b.integer("add", first, k) for k in range(_ROWS)]
            carried = [b.variable(g.vector, g.load(basis, k, top)) for k in rows]
            with self._upwards(row, top) as i:
                after = b.integer("add", i, 1)
                cosine, sine = g.load(self.first, i, 0), g.load(self.second, i, 0)
                for k, kept in zip(rows, carried, strict=True):
                    lower, upper = g.load(basis, k, i), b.get(kept, g.vector)
                    g.store(basis, k, after, g.call("fma", sine, lower, g.two("fmul", cosine, upper)))
                    minus = b.let(f"fneg {g.vector} {g.two('fmul', sine, upper)}")
                    b.set(kept, g.vector, g.call("fma", cosine, lower, minus))
            for k, kept in zip(rows, carried, strict=True):
                g.store(basis, k, row, b.get(kept, g.vector))

    # ---- Results ----

    def write(self, basis: Matrix, has_basis: str, unit: str) -> None:
        """Write the eigenvalues, ascending, to operand 1, and the eigenvectors to operand 2."""
        g, b = self.g, self.g.b
        with b.loop(0, self.n) as j:
            place = self._place(j)
            g.store(self.first, 0, 0, g.two("fmul", g.load(self.diagonal, j, 0), unit))
            g.write_part(1, self.first.base, "1", place, self.n)
            with b.when(has_basis):
                # Rotations of other lanes may change the sign of a 0.
                with b.loop(0, self.n) as i:
                    g.store(basis, i, j, g.two("fadd", g.load(basis, i, j), g.zero))
                g.write_part(2, g.place(basis, 0, j), self.n, place, self.n)

    def _place(self, j: str) -> str:
        """Return how many eigenvalues come before number j."""
        g, b = self.g, self.g.b
        own, count = g.load(self.diagonal, j, 0), b.variable(g.integers, "zeroinitializer")
        with b.loop(0, self.n) as i:
            other = g.load(self.diagonal, i, 0)
            is_left = b.let(f"icmp slt {g.integers} {g.index(i)}, {g.index(j)}")
            is_before = g.chosen(
                is_left, g.compare("ole", other, own), g.compare("olt", other, own), f"<{g.lanes} x i1>"
            )
            number = b.let(f"zext <{g.lanes} x i1> {is_before} to {g.integers}")
            b.set(count, g.integers, b.let(f"add {g.integers} {b.get(count, g.integers)}, {number}"))
        return b.get(count, g.integers)


def eigh(g: Group) -> None:
    """The lower triangle of a -> eigenvalues, eigenvectors unless `beside` is 0, and 1 as info of matrices whose results are no good."""
    b, n = g.b, g.meta["height"]
    a = g.read_matrix()
    unit, spoiled = _scale(g, a)
    work = _Tridiagonal(g)
    work.reduce(a)
    has_basis = b.let(f"icmp ne i64 {g.meta['beside']}, 0")
    padded = b.integer("and", b.integer("add", n, _ROWS - 1), -_ROWS)
    basis = g.matrix(padded, n)
    with b.when(has_basis):
        work.fill_basis(a, basis)
    stuck = b.let(f"bitcast i{g.lanes} {work.diagonalize(basis, has_basis)} to <{g.lanes} x i1>")
    work.write(basis, has_basis, unit)
    failed = b.let(f"or <{g.lanes} x i1> {spoiled}, {stuck}")
    g.write_one(3, g.chosen(failed, constant(int32, 1, g.lanes), "zeroinitializer", g.integers), int32)


def _scale(g: Group, a: Matrix) -> tuple[str, str]:
    """Divide each matrix by a power of two, so that squares of its elements neither overflow nor vanish.

    Returns the divisors, and the lanes of matrices with elements that are not finite, which become 0.
    """
    b, n = g.b, g.meta["height"]
    largest, nothing = b.variable(g.vector, g.zero), b.variable(g.vector, g.zero)
    with b.loop(0, n) as j, b.loop(j, n) as i:
        element = g.load(a, i, j)
        size, found = g.call("fabs", element), b.get(largest, g.vector)
        b.set(largest, g.vector, g.chosen(g.compare("ogt", size, found), size, found))
        b.set(nothing, g.vector, g.call("fma", element, g.zero, b.get(nothing, g.vector)))
    unit = power_of_two(g, b.get(largest, g.vector))
    spoiled = g.compare("uno", b.get(nothing, g.vector), g.zero)
    with b.loop(0, n) as j, b.loop(j, n) as i:
        g.store(a, i, j, g.chosen(spoiled, g.zero, g.two("fdiv", g.load(a, i, j), unit)))
    return unit, spoiled
