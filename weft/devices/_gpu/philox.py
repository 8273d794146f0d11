"""Random numbers on GPUs: those that PyTorch draws from the same seed and offset on a device with as many multiprocessors.

Philox (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") makes four words of 32 bits from a key and a counter. The key is the
seed. The counter consists of the number of the thread and of how many counters the thread has used before. As in PyTorch
(ATen/native/cuda/DistributionTemplates.h), a thread makes elements that lie as far apart as there are threads from the words of one counter.
So from a certain size on the numbers depend on how many threads the device runs at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, float32, float64, int64, uint32, uint64
from ...engine.approx.circular import cos, sin, tan
from ...engine.approx.exponential import exp
from ...engine.approx.logarithm import log
from ...engine.convert import convert
from ...engine.distributions import largest_span, scaled_uniform
from ...engine.expr import Expr, bitcast, cast, ceil, const, fma, load, param, select, sqrt
from ...engine.kernel import Launch, param_letters
from ...engine.llvm import emit
from .kernel import THREADS, Kernel
from .target import Target

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
WORDS = 4  # of a counter; generators count these


def _halves(value: Expr) -> tuple[Expr, Expr]:
    return cast(value, uint32), cast(value >> 32, uint32)


def words(seed: Expr, counter: Expr, thread: Expr) -> list[Expr]:
    """Return the four words of a counter of a thread, from uint64."""
    a, b = _halves(counter)
    c, d = _halves(thread)
    low_key, high_key = _halves(seed)
    for _ in range(_ROUNDS):
        first, second = (
            _halves(cast(word, uint64) * const(factor, uint64))
            for word, factor in zip((a, c), _MULTIPLIERS, strict=True)
        )
        a, b, c, d = second[1] ^ b ^ low_key, second[0], first[1] ^ d ^ high_key, first[0]
        low_key, high_key = low_key + _KEY_STEPS[0], high_key + _KEY_STEPS[1]
    return [a, b, c, d]


# ---- From words to numbers, as cuRAND does it -----------------------------------------------------------------------------


def wide(words: Sequence[Expr]) -> list[Expr]:
    return [(cast(high, uint64) << 32) | cast(low, uint64) for high, low in (words[:2], words[2:])]


def _of_53_bits(low: Expr, high: Expr) -> Expr:
    return cast(cast(low, uint64) ^ (cast(high, uint64) << 21), float64)


def _uniforms(words: Sequence[Expr], dtype: DType) -> list[Expr]:
    """Return numbers in (0, 1]: four float32 or two float64."""
    if dtype is float32:
        return [fma(cast(word, float32), 2.0**-32, 2.0**-33) for word in words]
    return [fma(_of_53_bits(*pair), 2.0**-53, 2.0**-54) for pair in (words[:2], words[2:])]


def _normals(words: Sequence[Expr], dtype: DType) -> list[Expr]:
    """Return standard normal numbers by Box and Muller: four float32 or two float64."""
    if dtype is float32:
        first, second = (
            _box_muller(fma(cast(x, float32), 2.0**-32, 2.0**-33), _angle(y))
            for x, y in (words[:2], words[2:])
        )
        return [*first, *second]
    angle = fma(_of_53_bits(*words[2:]), 2.0**-52, 2.0**-53) * math.pi
    return _box_muller(fma(_of_53_bits(*words[:2]), 2.0**-53, 2.0**-54), angle)


def _angle(word: Expr) -> Expr:
    return fma(cast(word, float32), math.pi * 2.0**-31, math.pi * 2.0**-32)


def _box_muller(uniform: Expr, angle: Expr) -> list[Expr]:
    radius = sqrt(log(uniform) * -2.0)
    return [radius * sin(angle), radius * cos(angle)]


# ---- Distributions --------------------------------------------------------------------------------------------------------


def _exponential(u: Expr, rate: Expr, dtype: DType) -> Expr:
    nearly_zero = -_epsilon(u.dtype) / 2  # in place of log(1), because no waiting time is zero
    return const(-1.0, u.dtype) / rate * select(u >= 1.0 + nearly_zero, nearly_zero, log(u))


def _cauchy(u: Expr, median: Expr, sigma: Expr, dtype: DType) -> Expr:
    if u.dtype is float32:  # away from where the tangent is infinite
        least = _epsilon(u.dtype)
        u = select(u > 1.0 - least, 1.0 - least, u)
        u = select(u < least, least, u)
    return fma(sigma, tan((u - 0.5) * math.pi), median)


def _epsilon(dtype: DType) -> float:
    return 2.0**-dtype.mantissa_bits


def _remainder(word: Expr, low: Expr, span: Expr, dtype: DType) -> Expr:
    return bitcast(cast(word, uint64) % span + low, int64)


class Distribution(NamedTuple):
    """How numbers are drawn: `draw` makes numbers of four words in a dtype, and `element` an element of one of them and the parameters.

    `parameters` are their dtypes; None stands for the dtype that numbers are drawn in.
    """

    draw: Callable[[Sequence[Expr], DType], list[Expr]]
    element: Callable[..., Expr]
    parameters: tuple[DType | None, ...] = ()


def _draw_32(words: Sequence[Expr], dtype: DType) -> list[Expr]:
    return list(words)


def _draw_64(words: Sequence[Expr], dtype: DType) -> list[Expr]:
    return wide(words)


_ONE, _TWO = (None,), (None, None)
UNIFORM = Distribution(_uniforms, scaled_uniform, _TWO)
NORMAL = Distribution(_normals, lambda x, mean, std, dtype: fma(x, std, mean), _TWO)
LOG_NORMAL = Distribution(_normals, lambda x, mean, std, dtype: exp(fma(x, std, mean)), _TWO)
BERNOULLI = Distribution(_uniforms, lambda u, p, dtype: u < p, _ONE)
EXPONENTIAL = Distribution(_uniforms, _exponential, _ONE)
GEOMETRIC = Distribution(_uniforms, lambda u, scale, dtype: ceil(log(u) / scale), _ONE)
CAUCHY = Distribution(_uniforms, _cauchy, _TWO)
INTEGERS_32 = Distribution(_draw_32, _remainder, (uint64, uint64))
INTEGERS_64 = Distribution(_draw_64, _remainder, (uint64, uint64))
ANY_INTEGER = Distribution(_draw_64, lambda word, dtype: bitcast(word, int64))


def _integers(dtype: DType, low: int, span: int) -> tuple[Distribution, tuple]:
    if span == 2**64:
        return ANY_INTEGER, ()
    return (INTEGERS_32 if span < 2**28 else INTEGERS_64), (low, span)


def _any_integers(dtype: DType) -> tuple[Distribution, tuple]:
    return (INTEGERS_64 if dtype.itemsize == 8 else INTEGERS_32), (0, largest_span(dtype))


# By the names of `engine/distributions.py`, with its parameters.
DISTRIBUTIONS: dict[str, Callable[..., tuple[Distribution, tuple]]] = {
    "uniform": lambda dtype, low, high: (UNIFORM, (low, high)),
    "normal": lambda dtype, mean, std, contiguous=True: (NORMAL, (mean, std)),
    "log_normal": lambda dtype, mean, std: (LOG_NORMAL, (mean, std)),
    "bernoulli": lambda dtype, p: (BERNOULLI, (p,)),
    "exponential": lambda dtype, rate: (EXPONENTIAL, (rate,)),
    "geometric": lambda dtype, p: (GEOMETRIC, (math.log1p(-p),)),
    "cauchy": lambda dtype, median, sigma: (CAUCHY, (median, sigma)),
    "integers": _integers,
    "any_integers": _any_integers,
}


# ---- The kernel ---------------------------------------------------------------------------------------------------------


class FillKernel(NamedTuple):
    """Everything that the code of a fill depends on.

    Arguments: the address, the seed, the first counter, the parameters, and the number of elements.
    """

    distribution: Distribution
    dtype: DType

    @property
    def drawn(self) -> DType:
        """The dtype that numbers are drawn in."""
        return float64 if self.dtype is float64 else float32

    @property
    def parameters(self) -> list[DType]:
        return [self.drawn if each is None else each for each in self.distribution.parameters]

    @property
    def elements(self) -> list[Expr]:
        """The elements that one counter gives, over `load`s of the thread, the counter and the seed."""
        thread, counter, seed = (load(k, uint64) for k in range(3))
        numbers = self.distribution.draw(words(seed, counter, thread), self.drawn)
        given = [param(k, dtype) for k, dtype in enumerate(self.parameters)]
        return [
            convert(self.distribution.element(number, *given, dtype=self.dtype), self.dtype)
            for number in numbers
        ]


def fill_ir(target: Target, kernel: FillKernel) -> str:
    """Write the module of the kernel."""
    return _Fill(target, kernel).ir()


class _Fill(Kernel):
    def __init__(self, target: Target, kernel: FillKernel):
        super().__init__(target)
        self.kernel = kernel
        self.address = self.parameter("p0")
        self.seed, self.first_counter = self.parameter("seed"), self.parameter("counter")
        self.numbers = self.words("x", len(kernel.parameters))
        self.count = self.parameter("n")
        self._write()

    def _write(self) -> None:
        elements = self.kernel.elements
        thread, threads = self.first_and_step()
        step = self.integer("mul", threads, len(elements))
        names = {load(0, uint64): thread, load(2, uint64): self.seed}
        for k, dtype in enumerate(self.kernel.parameters):
            names[param(k, dtype)] = self.number(self.numbers[k], dtype)
        counter = self.variable("i64", self.first_counter)
        with self.loop(thread, self.count, step) as first:
            now = self.get(counter, "i64")
            values = emit(self, elements, names | {load(1, uint64): now})
            for lane, value in enumerate(values):
                self._store(self.integer("add", first, self.integer("mul", threads, lane)), value)
            self.set(counter, "i64", self.integer("add", now, 1))

    def _store(self, element: str, value: str) -> None:
        dtype = self.kernel.dtype
        with self.when(self.let(f"icmp slt i64 {element}, {self.count}")):
            self.write(self.place(self.address, [element], [dtype.itemsize]), dtype, value)


class Fill(NamedTuple):
    """A fill of so many elements."""

    launch: Launch
    words: int  # of each thread


def prepare_fill(runtime: Any, kernel: FillKernel, count: int, multiprocessors: int) -> Fill:
    """The launch for so many elements, to be called with the address, the seed, the first counter and the parameters.

    multiprocessors: those that the mapping of threads to elements follows from.
    """
    resident = multiprocessors * (runtime.threads_per_multiprocessor // THREADS)
    groups = min(-(-count // THREADS), resident)
    each = len(kernel.elements)
    letters = "p" + param_letters([uint64, uint64, *kernel.parameters])
    launch = runtime.launch(runtime.load(fill_ir, kernel), groups, letters, [count])
    return Fill(launch, WORDS * ((count - 1) // (groups * THREADS * each) + 1))
