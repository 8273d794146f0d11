"""Poisson and binomial numbers by rejection: each element draws until its sampler accepts.

The draws and the order of the tests are those of ATen/native/Distributions.h and .cpp; every bit is PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import NamedTuple

from ..core.dtype import DType, bool_, float32, float64, uint64
from ..core.generator import Generator
from .distributions import u53
from .expr import Expr, absolute, cast, ceil, const, eq, floor, load, param, select, sqrt
from .libm import emit_with_libm, libm
from .llvm import Block
from .structured import Body
from .twister import DRAW, compiled

NEVER = const(False, bool_)


class _Attempt(NamedTuple):
    """One turn of a sampler."""

    done: Expr  # tested first
    value: Expr  # the sample, if this turn is the last
    accept: Expr = NEVER  # tested, and computed, only if not done
    carried: tuple[Expr, ...] = ()  # what the next turn starts from


class _Sampler(NamedTuple):
    """`attempt(*constants, *uniforms, *carried)`, repeated; `constants(a, b)` are computed once for each element."""

    name: str
    constants: Callable[[Expr, Expr], tuple[Expr, ...]]
    attempt: Callable[..., _Attempt]
    draws: int
    start: tuple[float, ...] = ()  # what the first turn starts from

    def ir(self, declarations: set[str]) -> str:
        """@name(state, a, b): one sample."""
        before, block, after = (Block(declarations, prefix) for prefix in "psv")
        a, b = load(0, float64), load(1, float64)
        leaves = {a: "%a", b: "%b"}
        constants = self.constants(a, b)
        leaves |= dict(zip(constants, emit_with_libm(before, constants, leaves), strict=True))
        uniforms = []
        for k in range(self.draws):
            word = load(2 + k, uint64)
            where = block.let(f"getelementptr i64, ptr %draws, i64 {k}")
            leaves[word] = block.let(f"load i64, ptr {where}")
            uniforms.append(u53(word))
        carried = [param(k, float64) for k in range(len(self.start))]
        leaves |= {leaf: f"%c{leaf.value}" for leaf in carried}
        turn = self.attempt(*constants, *uniforms, *carried)
        now = (turn.done, turn.value)
        done, value = emit_with_libm(block, now, leaves)
        later = (turn.accept, *turn.carried)
        accept, *following = emit_with_libm(after, later, leaves | {turn.done: done, turn.value: value})
        carry = [
            f"%c{k} = phi double [{start}, %entry], [{name}, %tested]"
            for k, (start, name) in enumerate(zip(self.start, following, strict=True))
        ]
        return "\n".join(
            [
                f"define internal double @{self.name}(ptr %state, double %a, double %b) #0 {{",
                "entry:",
                f"%draws = alloca [{self.draws} x i64]",
                *before.lines,
                "br label %turn",
                "turn:",
                *carry,
                f"call void @draw(ptr %state, ptr %draws, i64 {2 * self.draws})",
                *block.lines,
                f"br i1 {done}, label %exit, label %tested",
                "tested:",
                *after.lines,
                f"br i1 {accept}, label %exit, label %turn",
                "exit:",
                f"ret double {value}",
                "}\n",
            ]
        )


# @uniform draws one uniform in [0, 1); the IR of the samplers calls it.
first_uniform = _Sampler("uniform", lambda a, b: (), lambda u: _Attempt(const(True, bool_), u), 1)


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


_POISSON = (
    _Sampler("ptrs", _ptrs_constants, _ptrs, 2),
    _Sampler("product", lambda rate, _: (libm("exp", -rate),), _product, 1, (1.0, 0.0)),
)
_ONE_POISSON = """
define internal double @one(ptr %state, double %rate, double %unused) #0 {
  %zero = fcmp oeq double %rate, 0.0
  br i1 %zero, label %none, label %some
none:
  ret double 0.0
some:
  %large = fcmp oge double %rate, 10.0
  br i1 %large, label %reject, label %multiply
reject:
  %k = call double @ptrs(ptr %state, double %rate, double 0.0)
  ret double %k
multiply:
  %n = call double @product(ptr %state, double %rate, double 0.0)
  ret double %n
}
"""


def compiled_samplers(
    samplers: tuple[_Sampler, ...], dispatch: str, name: str, library: Collection[str] = ()
) -> Callable:
    """(state, out, a, b, 0, n): what `dispatch` defines as @one(state, a, b), with these samplers at its disposal."""
    declarations = set(library)
    functions = [sampler.ir(declarations) for sampler in samplers]

    def write(b: Body) -> None:
        state, samples, *parameters = b.operands(4)
        with b.loop("%begin", "%end") as i:
            x, y = (b.load("double", b.place(base, (i, 8))) for base in parameters)
            value = b.let(f"call double @one(ptr {state}, double {x}, double {y})")
            b.do(f"store double {value}, ptr {b.place(samples, (i, 8))}")

    return compiled(write, 4, "", name, [DRAW, *functions, dispatch], declarations)


@functools.cache
def _poisson() -> Callable:
    return compiled_samplers(_POISSON, _ONE_POISSON, "poisson")


def poisson(generator: Generator, out: int, rates: int, n: int) -> None:
    """A Poisson number for each rate >= 0: float64 at address `rates` to float64 at address `out`."""
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
    """log k! less Stirling's approximation of it."""
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


_MEAN = {
    float64: "%mean = fmul double %count, %rare",
    float32: """%exact = fmul double %count, %rare
  %narrow = fptrunc double %exact to float
  %mean = fpext float %narrow to double""",
}
_ONE_BINOMIAL = """
define internal double @one(ptr %state, double %count, double %p) #0 {
  %empty = fcmp ole double %count, 0.0
  %never = fcmp ole double %p, 0.0
  %none = or i1 %empty, %never
  br i1 %none, label %zero, label %some
zero:
  ret double 0.0
some:
  %always = fcmp oge double %p, 1.0
  br i1 %always, label %all, label %possible
all:
  ret double %count
possible:
  %nan = fcmp uno double %count, %p
  br i1 %nan, label %unknown, label %draw
unknown:
  ret double 0x7FF8000000000000
draw:
  %q = fsub double 1.0, %p
  %more = fcmp ogt double %p, 0.5
  %rare = select i1 %more, double %q, double %p
  {mean}
  %large = fcmp oge double %mean, 10.0
  br i1 %large, label %reject, label %wait
reject:
  %k = call double @btrs(ptr %state, double %count, double %rare)
  br label %sampled
wait:
  %n = call double @waiting(ptr %state, double %count, double %rare)
  br label %sampled
sampled:
  %sample = phi double [%k, %reject], [%n, %wait]
  %rest = fsub double %count, %sample
  %value = select i1 %more, double %rest, double %sample
  ret double %value
}
"""


@functools.cache
def _binomial(dtype: DType) -> Callable:
    btrs = _Sampler("btrs", functools.partial(_btrs_constants, dtype), _btrs, 2)
    waiting = _Sampler("waiting", lambda count, p: (count, libm("log1p", -p)), _waiting, 1, (0.0, 0.0))
    return compiled_samplers((btrs, waiting), _ONE_BINOMIAL.replace("{mean}", _MEAN[dtype]), "binomial")


def binomial(generator: Generator, out: int, counts: int, probabilities: int, n: int, dtype: DType) -> None:
    """A binomial number for each count and probability: float64 at these addresses to float64 at address `out`.

    With float32 the constants of a sampler are rounded as PyTorch rounds them for tensors of that dtype.
    """
    if n:
        with generator.lock:
            _binomial(dtype)(generator.address, out, counts, probabilities, 0, n)
