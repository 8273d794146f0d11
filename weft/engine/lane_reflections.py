"""Computes Householder's reflections of a group of matrices (`lane_groups.py`), and QR factorizations made of them."""

from __future__ import annotations

from ..core.dtype import float32
from .lane_groups import Group, Matrix


def qr(g: Group) -> None:
    """a -> R, Q, by Householder's reflections as in LAPACK's geqrf and orgqr. The meta says how many columns Q has: none, or more."""
    b, beside = g.b, g.meta["beside"]
    a = g.read_matrix()
    count = b.minimum(a.height, a.width)
    scales = g.matrix(count, "1")
    with b.loop(0, count) as k:
        g.store(scales, k, 0, reflection(g, a, k))
        with b.loop(b.integer("add", k, 1), a.width) as j:
            reflect(g, a, k, g.load(scales, k, 0), a, j)
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
                reflect(g, a, k, g.load(scales, k, 0), basis, j)
        g.write(2, basis.base, b.integer("mul", a.height, beside))


def reflection(g: Group, a: Matrix, k: str) -> str:
    """The reflection that clears column k below row k: its vector replaces them, but for the first element, which is 1.

    Returns its scale. All is computed from elements divided by a power of two, so that squares neither overflow nor vanish. A norm
    of less than the least normal number has few digits, and the reflection made of it would not be orthogonal: matrices of
    low rank have such columns.
    """
    b, below = g.b, g.b.integer("add", k, 1)
    largest, squares = b.variable(g.vector, g.zero), b.variable(g.vector, g.zero)
    with b.loop(k, a.height) as i:
        size = g.call("fabs", g.load(a, i, k))
        found = b.get(largest, g.vector)
        b.set(largest, g.vector, g.chosen(g.compare("ogt", size, found), size, found))
    unit = power_of_two(g, b.get(largest, g.vector))
    with b.loop(below, a.height) as i:
        part = g.two("fdiv", g.load(a, i, k), unit)
        g.store(a, i, k, part)
        b.set(squares, g.vector, g.call("fma", part, part, b.get(squares, g.vector)))
    head = g.two("fdiv", g.load(a, k, k), unit)
    rest = b.get(squares, g.vector)
    norm = g.call("sqrt", g.call("fma", head, head, rest))
    image = b.let(f"fneg {g.vector} {g.call('copysign', norm, head)}")
    is_clear = g.compare("oeq", rest, g.zero)
    scale = g.two("fdiv", g.two("fsub", image, head), g.chosen(is_clear, g.one, image))
    divisor = g.chosen(is_clear, g.one, g.two("fsub", head, image))
    with b.loop(below, a.height) as i:
        g.store(a, i, k, g.two("fdiv", g.load(a, i, k), divisor))
    g.store(a, k, k, g.two("fmul", g.chosen(is_clear, head, image), unit))
    return g.chosen(is_clear, g.zero, scale)


def power_of_two(g: Group, value: str) -> str:
    """The largest power of two that is not above a positive value, or the least normal number."""
    b, width = g.b, 8 * g.dtype.itemsize
    mantissa, least = (23, 1 << 23) if g.dtype is float32 else (52, 1 << 52)
    kind = f"<{g.lanes} x i{width}>"
    # This is the exponent of the largest power, so that infinity has one, too.
    exponent = ((1 << (width - 1 - mantissa)) - 2) << mantissa
    b.declarations.add(f"declare {kind} @llvm.umax.v{g.lanes}i{width}({kind}, {kind})")
    b.declarations.add(f"declare {kind} @llvm.umin.v{g.lanes}i{width}({kind}, {kind})")
    bits = b.let(f"bitcast {g.vector} {value} to {kind}")
    bits = b.let(f"and {kind} {bits}, splat (i{width} {-(1 << mantissa)})")
    bits = b.let(f"call {kind} @llvm.umax.v{g.lanes}i{width}({kind} {bits}, {kind} splat (i{width} {least}))")
    bits = b.let(
        f"call {kind} @llvm.umin.v{g.lanes}i{width}({kind} {bits}, {kind} splat (i{width} {exponent}))"
    )
    return b.let(f"bitcast {kind} {bits} to {g.vector}")


def reflect(g: Group, vectors: Matrix, k: str, scale: str, a: Matrix, j: str) -> None:
    """Apply reflection k, whose vector is in column k of `vectors`, to column j of a."""
    b, below = g.b, g.b.integer("add", k, 1)
    total = b.variable(g.vector, g.load(a, k, j))
    with b.loop(below, a.height) as i:
        b.set(total, g.vector, g.call("fma", g.load(vectors, i, k), g.load(a, i, j), b.get(total, g.vector)))
    factor = b.let(f"fneg {g.vector} {g.two('fmul', scale, b.get(total, g.vector))}")
    g.store(a, k, j, g.two("fadd", g.load(a, k, j), factor))
    with b.loop(below, a.height) as i:
        g.store(a, i, j, g.call("fma", g.load(vectors, i, k), factor, g.load(a, i, j)))
