"""Gamma numbers by rejection: a sampler that draws uniforms and normals until it accepts.

Method: Marsaglia and Tsang 2000, "A simple method for generating gamma variables". The draws and the order of the
tests are those of ATen/native/Distributions.h; every bit is PyTorch's.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable

from ..core.dtype import DType, float64
from ..core.generator import STATE, Generator
from .expr import Expr, cast, const, eq, load, ne, select, sqrt
from .iterations import Case, Cases, Iteration, Turn
from .libm import emit_with_libm, libm
from .rejection import compiled_samplers, first_uniform, function_of, sample
from .structured import Body

_OFFSETS = {name: field[1] for name, field in (STATE.fields or {}).items()}


# PyTorch's two constants that are not exact are of float32.
_THIRD, _SQUEEZE = (struct.unpack("<f", struct.pack("<f", value))[0] for value in (1 / 3, 0.0331))


def _normal(b: Body) -> str:
    """A standard normal number by Box and Muller's method, which makes two: the generator keeps the second for the next call."""
    is_kept, kept = (b.at("%state", _OFFSETS[name]) for name in ("normal_is_valid", "normal"))
    found = b.variable("double", b.load("double", kept))
    valid = b.let(f"icmp ne i32 {b.load('i32', is_kept)}, 0")
    with b.unless(valid):
        u, v = load(0, float64), load(1, float64)
        names = {u: sample(b, "uniform"), v: sample(b, "uniform")}
        radius, angle = sqrt(libm("log1p", -v) * -2.0), u * (2 * math.pi)
        first, second = emit_with_libm(b, (radius * libm("cos", angle), radius * libm("sin", angle)), names)
        b.do(f"store double {second}, ptr {kept}")
        b.set(found, "double", first)
    with b.when(valid):
        b.do(f"store double 0.0, ptr {kept}")
    b.do(f"store i32 {b.let(f'select i1 {valid}, i32 0, i32 1')}, ptr {is_kept}")
    return b.get(found, "double")


def _one(b: Body, dtype: DType) -> str:
    """Return a number of shape a."""
    names: dict[Expr, str] = {}

    def known(name: str) -> Expr:
        """Return the number of this name, in expressions."""
        leaf = load(len(names), float64)
        names[leaf] = name
        return leaf

    def value(expr: Expr) -> str:
        return emit_with_libm(b, (expr,), names)[0]

    def rounded(expr: Expr) -> Expr:
        """Numbers that depend on the shape alone have its dtype."""
        return cast(cast(expr, dtype), float64)

    shape = known("%a")
    found, scale, alpha = (b.variable("double", each) for each in ("0.0", "1.0", "%a"))
    with b.unless(value(eq(shape, 0.0))):
        with b.when(value(shape < 1.0)):
            base, exponent = value(1.0 - known(sample(b, "uniform"))), value(rounded(1.0 / shape))
            b.declarations.add("declare double @pow(double, double)")
            b.set(scale, "double", b.let(f"call double @pow(double {base}, double {exponent})"))
            b.set(alpha, "double", value(rounded(shape + 1.0)))
        d = known(value(rounded(known(b.get(alpha, "double")) - _THIRD)))
        c = known(value(1.0 / sqrt(d * 9.0)))
        normal = b.variable("double", "0.0")
        with b.repeat() as go_on_if:
            with b.repeat() as again_if:
                b.set(normal, "double", sample(b, "normal"))
                again_if(value(c * known(b.get(normal, "double")) + 1.0 <= 0.0))
            x = known(b.get(normal, "double"))
            y = known(value(c * x + 1.0))
            v, xx = known(value(y * y * y)), known(value(x * x))
            u = known(value(1.0 - known(sample(b, "uniform"))))
            b.set(found, "double", value(known(b.get(scale, "double")) * d * v))
            go_on_if(value(~(u < 1.0 - xx * _SQUEEZE * xx)))
            go_on_if(value(~(libm("log", u) < xx * 0.5 + d * (1.0 - v + libm("log", v)))))
    return b.get(found, "double")


@functools.cache
def _gamma(dtype: DType) -> Callable:
    one = functools.partial(_one, dtype=dtype)
    return compiled_samplers("gamma", uniform=function_of(first_uniform), normal=_normal, one=one)


def gamma(generator: Generator, out: int, shapes: int, n: int, dtype: DType) -> None:
    """Return a gamma number of rate 1 for each shape >= 0: float64 at address `shapes` to float64 at address `out`.

    With float32, what depends on the shape alone is rounded as PyTorch rounds it for tensors of that dtype.
    """
    if n:
        with generator.lock:
            _gamma(dtype)(generator.address, out, shapes, shapes, 0, n)


# ---- The same method with numbers that each element draws for itself, for devices ------------------------------------------


def _constants(shape: Expr, _: Expr) -> tuple[Expr, ...]:
    small = shape < 1.0
    d = select(small, shape + 1.0, shape) - 1.0 / 3
    return d, const(1.0, float64) / sqrt(d * 9.0), select(small, const(1.0, float64) / shape, 0.0)


def _turn(d: Expr, c: Expr, exponent: Expr, u1: Expr, u2: Expr, u3: Expr, u4: Expr) -> Turn:
    x = sqrt(libm("log1p", -u1) * -2.0) * libm("cos", u2 * (2 * math.pi))
    y = c * x + 1.0
    v, xx, u = y * y * y, x * x, 1.0 - u3
    rejected = y <= 0.0
    at_once = u < 1.0 - xx * _SQUEEZE * xx
    later = libm("log", u) < xx * 0.5 + d * (1.0 - v + libm("log", v))
    scale = libm("exp", libm("log1p", -u4) * exponent)
    return Turn(~rejected & at_once, d * v * scale, ~rejected & later)


def _cases(shape: Expr, _: Expr) -> tuple[Case, ...]:
    return (Case(ne(shape, 0.0), Iteration(_constants, _turn, 4), (shape, shape)),)


GAMMA = Cases(_cases, lambda found, shape, _: select(eq(shape, 0.0), 0.0, found))
