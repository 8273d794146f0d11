"""Poisson and binomial numbers by rejection: each element draws until its sampler accepts.

The draws and the order of the tests are those of ATen/native/Distributions.h and .cpp; every bit is PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.dtype import DType, float64
from ..core.generator import Generator
from .expr import Expr, absolute, cast, ceil, const, eq, floor, isnan, ne, select, sqrt
from .iterations import ALWAYS, Case, Cases, Iteration, Turn
from .libm import emit_with_libm, libm
from .structured import Body, function
from .twister import compiled, draw_functions

# Draws one uniform number in [0, 1).
first_uniform = Iteration(lambda a, b: (), lambda u: Turn(ALWAYS, u), 1)


# Poisson. Large rates: transformed rejection, Hörmann 1993, PTRS. Small ones: count factors until the product is small.


def _ptrs_constants(rate: Expr, _: Expr) -> tuple[Expr, ...]:
    b = sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = const(1.1328, float64) / (b - 3.4) + 1.1239
    enough = 0.9277 - const(3.6224, float64) / (b - 2.0)
    return rate, libm("log", rate), a, b, libm("log", inverse_alpha), enough


def _ptrs(rate, log_rate, a, b, log_inverse_alpha, enough, u, v) -> Turn:
    u = u - 0.5
    us = 0.5 - absolute(u)
    k = floor((a * 2.0 / us + b) * u + rate + 0.43)
    rejected = (k < 0.0) | ((us < 0.013) & (v > us))
    left = libm("log", v) + log_inverse_alpha - libm("log", a / (us * us) + b)
    right = k * log_rate - rate - libm("lgamma", k + 1.0)
    return Turn((us >= 0.07) & (v <= enough), k, ~rejected & (left <= right))


def _product(limit: Expr, u: Expr, product: Expr, count: Expr) -> Turn:
    product = product * u
    return Turn(~(product > limit), count, carried=(product, count + 1.0))


_PTRS = Iteration(_ptrs_constants, _ptrs, 2)
_PRODUCT = Iteration(lambda rate, _: (libm("exp", -rate),), _product, 1, (1.0, 0.0))


def sample(b: Body, name: str, x: str = "0.0", y: str = "0.0") -> str:
    """Draw a number by the function `name` of a module of samplers."""
    return b.let(f"call double @{name}(ptr %state, double {x}, double {y})")


def _poisson_cases(rate: Expr, _: Expr) -> tuple[Case, ...]:
    large = rate >= 10.0
    return Case(large, _PTRS, (rate, rate)), Case(~large & ne(rate, 0.0), _PRODUCT, (rate, rate))


POISSON = Cases(_poisson_cases, lambda found, rate, _: select(eq(rate, 0.0), 0.0, found))


def drawn_from_state(b: Body) -> Callable[[int], list[str]]:
    """Return a function that writes the draw of so many words from the generator's state."""

    def draw(count: int) -> list[str]:
        room = b.room(8 * count)
        b.do(f"call void @draw(ptr %state, ptr {room}, i64 {2 * count})")
        return b.words(room, count)

    return draw


def function_of(iteration: Iteration) -> Callable[[Body], str]:
    """Return what writes the function of an iteration, for `compiled_samplers`."""
    return lambda b: iteration.write(b, emit_with_libm, drawn_from_state(b))


def _compiled_cases(name: str, cases: Cases) -> Callable:
    functions = {f"case{k}": function_of(case.iteration) for k, case in enumerate(cases.of_parameters())}

    def one(b: Body) -> str:
        return cases.write(b, emit_with_libm, lambda k, x, y: sample(b, f"case{k}", x, y), "%a", "%b")

    return compiled_samplers(name, **functions, one=one)


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
    return _compiled_cases("poisson", POISSON)


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


def _btrs(count, a, b, center, enough, ratio, alpha, mode, u, v) -> Turn:
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
    return Turn((us >= 0.07) & (v <= enough), k, ~rejected & (left <= right))


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


def _waiting(count: Expr, log_q: Expr, u: Expr, waited: Expr, successes: Expr) -> Turn:
    waited = waited + ceil(libm("log", u) / log_q)
    return Turn(waited > count, successes, carried=(waited, successes + 1.0))


def _binomial_cases(dtype: DType, count: Expr, p: Expr) -> tuple[Case, ...]:
    """Probabilities above a half count the failures, which are rarer."""
    rare = select(p > 0.5, 1.0 - p, p)
    random = (count > 0.0) & (p > 0.0) & (p < 1.0)
    large = cast(cast(count * rare, dtype), float64) >= 10.0
    btrs = Iteration(functools.partial(_btrs_constants, dtype), _btrs, 2)
    return Case(random & large, btrs, (count, rare)), Case(random & ~large, _WAITING, (count, rare))


def _binomial_result(found: Expr, count: Expr, p: Expr) -> Expr:
    found = select(p > 0.5, count - found, found)
    found = select(~isnan(count) & (p >= 1.0), count, found)
    return select((count <= 0.0) | (p <= 0.0), 0.0, found)


_WAITING = Iteration(lambda count, p: (count, libm("log1p", -p)), _waiting, 1, (0.0, 0.0))


@functools.cache
def binomial_cases(dtype: DType) -> Cases:
    """Of a trials with probability b. The constants of samplers are rounded as PyTorch rounds them for tensors of the dtype."""
    return Cases(functools.partial(_binomial_cases, dtype), _binomial_result)


@functools.cache
def _binomial(dtype: DType) -> Callable:
    return _compiled_cases("binomial", binomial_cases(dtype))


def binomial(generator: Generator, out: int, counts: int, probabilities: int, n: int, dtype: DType) -> None:
    """Return a binomial number for each count and probability: float64 at these addresses to float64 at address `out`.

    With float32 the constants of a sampler are rounded as PyTorch rounds them for tensors of that dtype.
    """
    if n:
        with generator.lock:
            _binomial(dtype)(generator.address, out, counts, probabilities, 0, n)
