"""Poisson and binomial numbers by rejection: each element draws until its sampler accepts.

The draws and the order of the tests are those of ATen/native/Distributions.h and .cpp; every bit is PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ..core.dtype import DType, bool_, float32, float64, uint64
from ..core.generator import Generator
from .distributions import u53
from .expr import Expr, absolute, cast, ceil, const, eq, floor, load, param, select, sqrt
from .libm import emit_with_libm, libm
from .structured import Body, function
from .twister import compiled, draw_functions

NEVER = const(False, bool_)


class _Attempt(NamedTuple):
    """One turn of a sampler."""

    done: Expr  # tested first
    value: Expr  # the sample, if this turn is the last
    accept: Expr = NEVER  # tested, and computed, only if not done
    carried: tuple[Expr, ...] = ()  # what the next turn starts from


class Sampler(NamedTuple):
    """`attempt(*constants, *uniforms, *carried)`, repeated; `constants(a, b)` are computed once for each element."""

    constants: Callable[[Expr, Expr], tuple[Expr, ...]]
    attempt: Callable[..., _Attempt]
    draws: int
    start: tuple[float, ...] = ()  # what the first turn starts from

    def write(self, b: Body) -> str:
        """Write one sample."""
        draws = b.room(8 * self.draws)
        first, second = load(0, float64), load(1, float64)
        leaves = {first: "%a", second: "%b"}
        constants = self.constants(first, second)
        leaves |= dict(zip(constants, emit_with_libm(b, constants, leaves), strict=True))
        words = [load(2 + k, uint64) for k in range(self.draws)]
        carried = [param(k, float64) for k in range(len(self.start))]
        variables = [b.variable("double", str(start)) for start in self.start]
        sample = b.variable("double", "0.0")
        turn = self.attempt(*constants, *map(u53, words), *carried)
        with b.repeat() as go_on_if:
            b.do(f"call void @draw(ptr %state, ptr {draws}, i64 {2 * self.draws})")
            leaves |= dict(zip(words, b.words(draws, self.draws), strict=True))
            leaves |= {leaf: b.get(place, "double") for leaf, place in zip(carried, variables, strict=True)}
            done, value = emit_with_libm(b, (turn.done, turn.value), leaves)
            b.set(sample, "double", value)
            go_on_if(b.let(f"xor i1 {done}, true"))
            later = (turn.accept, *turn.carried)
            accept, *following = emit_with_libm(b, later, leaves | {turn.done: done, turn.value: value})
            for place, start in zip(variables, following, strict=True):
                b.set(place, "double", start)
            go_on_if(b.let(f"xor i1 {accept}, true"))
        return b.get(sample, "double")


# Draws one uniform number in [0, 1).
first_uniform = Sampler(lambda a, b: (), lambda u: _Attempt(const(True, bool_), u), 1)


# Poisson. Large rates: transformed rejection, Hörmann 1993, PTRS. Small ones: count factors until the product is small.


def _ptrs_constants(rate: Expr, _: Expr) -> tuple[Expr, ...]:
    b = sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = const(1.1328, float64) / (b - 3.4) + 1.1239
    enough = 0.9277 - const(3.6224, float64) / (b - 2.0)
    return rate, libm("log", rate), a, b, libm("log", inverse_alpha), enough


def _ptrs(rate, log_rate, a, b, log_inverse_alpha, enough, u, v) -> _Attempt:
    u = u - 0.5
    us = 0.5 - absolute(u)
    k = floor((a * 2.0 / us + b) * u + rate + 0.43)
    rejected = (k < 0.0) | ((us < 0.013) & (v > us))
    left = libm("log", v) + log_inverse_alpha - libm("log", a / (us * us) + b)
    right = k * log_rate - rate - libm("lgamma", k + 1.0)
    return _Attempt((us >= 0.07) & (v <= enough), k, ~rejected & (left <= right))


def _product(limit: Expr, u: Expr, product: Expr, count: Expr) -> _Attempt:
    product = product * u
    return _Attempt(~(product > limit), count, carried=(product, count + 1.0))


_PTRS = Sampler(_ptrs_constants, _ptrs, 2)
_PRODUCT = Sampler(lambda rate, _: (libm("exp", -rate),), _product, 1, (1.0, 0.0))


def sample(b: Body, name: str, x: str = "0.0", y: str = "0.0") -> str:
    """Draw a number by the function `name` of a module of samplers."""
    return b.let(f"call double @{name}(ptr %state, double {x}, double {y})")


def _one_poisson(b: Body) -> str:
    found = b.variable("double", "0.0")
    with b.unless(b.let("fcmp oeq double %a, 0.0")):
        large = b.let("fcmp oge double %a, 10.0")
        with b.when(large):
            b.set(found, "double", sample(b, "ptrs", "%a"))
        with b.unless(large):
            b.set(found, "double", sample(b, "product", "%a"))
    return b.get(found, "double")


def compiled_samplers(name: str, **functions: Callable[[Body], str]) -> Callable:
    """(state, out, a, b, 0, n): what the function `one` gives for each a and b. It may call the others by `sample`.

    Their parameters are %state, %a and %b.
    """
    declarations: set[str] = set()
    parts = draw_functions(declarations)
    parts += [
        function(each, "ptr %state, double %a, double %b", declarations, write, "private", "double")
        for each, write in functions.items()
    ]

    def write(b: Body) -> None:
        state, samples, *parameters = b.operands(4)
        with b.loop("%begin", "%end") as i:
            x, y = (b.load("double", b.place(base, (i, 8))) for base in parameters)
            value = b.let(f"call double @one(ptr {state}, double {x}, double {y})")
            b.do(f"store double {value}, ptr {b.place(samples, (i, 8))}")

    return compiled(write, 4, "", name, parts, declarations)


@functools.cache
def _poisson() -> Callable:
    return compiled_samplers("poisson", ptrs=_PTRS.write, product=_PRODUCT.write, one=_one_poisson)


def poisson(generator: Generator, out: int, rates: int, n: int) -> None:
    """Return a Poisson number for each rate >= 0: float64 at address `rates` to float64 at address `out`."""
    if n:
        with generator.lock:
            _poisson()(generator.address, out, rates, rates, 0, n)


# Binomial. Large n p: Hörmann 1993, BTRS. Small n p: count geometric waiting times (Devroye 1986, page 525).


def _btrs_constants(dtype: DType, count: Expr, p: Expr) -> tuple[Expr, ...]:
    n, q = cast(count, dtype), cast(p, dtype)
    stddev = cast(sqrt(n * q * (1.0 - q)), float64)
    b = stddev * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    center = cast(n * q, float64) + 0.5
    enough = 0.92 - const(4.2, float64) / b
    ratio = cast(q / (1.0 - q), float64)
    alpha = (const(5.1, float64) / b + 2.83) * stddev
    mode = cast(floor((n + 1.0) * q), float64)
    return count, a, b, center, enough, ratio, alpha, mode


def _btrs(count, a, b, center, enough, ratio, alpha, mode, u, v) -> _Attempt:
    u = u - 0.5
    us = 0.5 - absolute(u)
    k = floor((a * 2.0 / us + b) * u + center)
    rejected = (k < 0.0) | (k > count)
    left = libm("log", v * alpha / (a / (us * us) + b))
    right = (mode + 0.5) * libm("log", (mode + 1.0) / (ratio * (count - mode + 1.0)))
    right = right + (count + 1.0) * libm("log", (count - mode + 1.0) / (count - k + 1.0))
    right = right + (k + 0.5) * libm("log", ratio * (count - k + 1.0) / (k + 1.0))
    right = right + _stirling_tail(mode) + _stirling_tail(count - mode)
    right = right - _stirling_tail(k) - _stirling_tail(count - k)
    return _Attempt((us >= 0.07) & (v <= enough), k, ~rejected & (left <= right))


def _stirling_tail(k: Expr) -> Expr:
    """Compute log k! less Stirling's approximation of it."""
    square = (k + 1.0) * (k + 1.0)
    tail = (1.0 / 12 - (1.0 / 360 - const(1.0 / 1260, float64) / square) / square) / (k + 1.0)
    for small, value in enumerate(_STIRLING_TAILS):
        tail = select(eq(k, float(small)), value, tail)
    return tail


# fmt: off
_STIRLING_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)
# fmt: on


def _waiting(count: Expr, log_q: Expr, u: Expr, waited: Expr, successes: Expr) -> _Attempt:
    waited = waited + ceil(libm("log", u) / log_q)
    return _Attempt(waited > count, successes, carried=(waited, successes + 1.0))


def _one_binomial(b: Body, dtype: DType) -> str:
    """Of a trials with probability b. Probabilities above a half count the failures, which are rarer."""
    found = b.variable("double", "0.0")
    none = b.let(f"or i1 {b.let('fcmp ole double %a, 0.0')}, {b.let('fcmp ole double %b, 0.0')}")
    with b.unless(none):
        unknown, always = b.let("fcmp uno double %a, %b"), b.let("fcmp oge double %b, 1.0")
        b.set(found, "double", b.let(f"select i1 {always}, double %a, double 0x7FF8000000000000"))
        with b.unless(b.let(f"or i1 {unknown}, {always}")):
            more, failure = b.let("fcmp ogt double %b, 0.5"), b.let("fsub double 1.0, %b")
            rare = b.let(f"select i1 {more}, double {failure}, double %b")
            mean = b.let(f"fmul double %a, {rare}")
            if dtype is float32:
                mean = b.let(f"fpext float {b.let(f'fptrunc double {mean} to float')} to double")
            large = b.let(f"fcmp oge double {mean}, 10.0")
            with b.when(large):
                b.set(found, "double", sample(b, "btrs", "%a", rare))
            with b.unless(large):
                b.set(found, "double", sample(b, "waiting", "%a", rare))
            count = b.get(found, "double")
            rest = b.let(f"fsub double %a, {count}")
            b.set(found, "double", b.let(f"select i1 {more}, double {rest}, double {count}"))
    return b.get(found, "double")


@functools.cache
def _binomial(dtype: DType) -> Callable:
    btrs = Sampler(functools.partial(_btrs_constants, dtype), _btrs, 2)
    waiting = Sampler(lambda count, p: (count, libm("log1p", -p)), _waiting, 1, (0.0, 0.0))
    one = functools.partial(_one_binomial, dtype=dtype)
    return compiled_samplers("binomial", btrs=btrs.write, waiting=waiting.write, one=one)


def binomial(generator: Generator, out: int, counts: int, probabilities: int, n: int, dtype: DType) -> None:
    """Return a binomial number for each count and probability: float64 at these addresses to float64 at address `out`.

    With float32 the constants of a sampler are rounded as PyTorch rounds them for tensors of that dtype.
    """
    if n:
        with generator.lock:
            _binomial(dtype)(generator.address, out, counts, probabilities, 0, n)
