"""Random numbers on the CPU: the bits that PyTorch draws from the same `Generator`.

Most functions take a generator, an address, a number of elements, parameters and a dtype, and fill the memory at the address in
the order of the draws. The draws of an element and their conversion to its value follow ATen/native/cpu/DistributionTemplates.h
and ATen/core/DistributionsHelper.h, as compiled for AVX2, on every CPU: transcendental functions are the float64 functions of the
C library, and multiply-adds are fused where PyTorch fuses them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.dtype import DType, bool_, float32, float64, int32, int64, uint32, uint64
from ..core.generator import SCRATCH, Generator
from .convert import convert
from .expr import Expr, bitcast, cast, ceil, const, eq, fma, horner, load, param, select, sqrt, trunc
from .libm import emit_with_libm, libm
from .llvm import memory_type, value_type
from .structured import Body
from .twister import compiled, draw
from .vectors import splat

_PARAMETER_TYPES = {"f": float32, "d": float64, "8": uint64}


@dataclass(frozen=True, eq=False)
class _Transform:
    """Draws to values: `body(*inputs, *parameters)` gives as many outputs as there are inputs.

    With 2 inputs in 8 lanes, draws 0 to 7 and 8 to 15 of each 16 are the inputs; so it is with elements and outputs.
    """

    name: str  # of the distribution, for profilers
    body: Callable
    source: DType  # of the inputs: uint32 or uint64 draws, or numbers
    parameters: str = ""  # a letter each, as in `host.entry_ir`
    inputs: int = 1
    lanes: int = 1

    @property
    def group(self) -> int:
        """Elements per turn of the loop."""
        return self.inputs * self.lanes


@functools.cache
def _compiled(transform: _Transform, dtype: DType) -> Callable:
    """Compile `entry(address of the inputs, address of the outputs, *parameters, 0, number of groups)`."""
    return compiled(lambda b: _transform_all(b, transform, dtype), 2, transform.parameters, transform.name)


def _transform_all(b: Body, transform: _Transform, dtype: DType) -> None:
    lanes = transform.lanes
    source, target = b.operands(2)
    leaves = {}
    for k, letter in enumerate(transform.parameters):
        leaf = param(k, _PARAMETER_TYPES[letter])
        kind = memory_type(leaf.dtype)
        leaves[leaf] = splat(b, kind, lanes, b.load(kind, b.at("%operands", 8 * (k + 2))))
    params = list(leaves)
    with b.loop("%begin", "%end") as i:
        first = b.integer("mul nuw nsw", i, transform.group)
        elements = [b.integer("add nuw nsw", first, k * lanes) for k in range(transform.inputs)]
        loads = [load(k, transform.source) for k in range(transform.inputs)]
        for leaf, element in zip(loads, elements, strict=True):
            place = b.place(source, (element, leaf.dtype.itemsize))
            leaves[leaf] = b.let(f"load {value_type(leaf.dtype, lanes)}, ptr {place}, align 4")
        values = transform.body(*loads, *params)
        roots = tuple(convert(value, dtype) for value in (values if transform.inputs > 1 else [values]))
        for value, element in zip(emit_with_libm(b, roots, leaves, lanes), elements, strict=True):
            kind = value_type(dtype, lanes)
            if dtype is bool_:
                kind, value = "i8", b.let(f"zext i1 {value} to i8")
            b.do(f"store {kind} {value}, ptr {b.place(target, (element, dtype.itemsize))}, align 1")


def _draw_to(
    generator: Generator, out: int, n: int, transform: _Transform, dtype: DType, *parameters
) -> None:
    """Values of `n` elements, a multiple of the transform's group, each from its own draw."""
    to_words, to_values, words, group = _drawing(transform, dtype)
    step = SCRATCH // words
    with generator.lock:
        for start in range(0, n, step):
            count = n - start if n - start < step else step
            to_words(generator.address, generator.scratch, 0, count * words)
            to_values(generator.scratch, out + start * dtype.itemsize, *parameters, 0, count // group)


@functools.cache
def _drawing(transform: _Transform, dtype: DType) -> tuple[Callable, Callable, int, int]:
    """The function that draws words, the one that makes values of them, the words of a draw, and the draws of a turn."""
    return draw(), _compiled(transform, dtype), transform.source.itemsize // 4, transform.group


# Draws. A 64-bit draw is two of 32 bits, the first of them the high half; uniform floats keep the low bits.


def _high_word_first(word: Expr) -> Expr:
    return (word << 32) | (word >> 32)


def u24(word: Expr) -> Expr:
    return cast(bitcast(word & (2**24 - 1), int32), float32) * 2.0**-24


def u53(word: Expr) -> Expr:
    return cast(bitcast(_high_word_first(word) & (2**53 - 1), int64), float64) * 2.0**-53


_U32 = _Transform("random", lambda word: word, uint32)
_U64 = _Transform("random", _high_word_first, uint64)


def u32(generator: Generator, n: int) -> np.ndarray:
    """The next `n` draws of 32 bits, as uint32."""
    draws = np.empty(n, np.uint32)
    _draw_to(generator, draws.ctypes.data, n, _U32, uint32)
    return draws


def u64(generator: Generator, n: int) -> np.ndarray:
    """The next `n` draws of 64 bits, as uint64."""
    draws = np.empty(n, np.uint64)
    _draw_to(generator, draws.ctypes.data, n, _U64, uint64)
    return draws


# Uniform and integers


def scaled_uniform(u: Expr, low: Expr, high: Expr, dtype: DType) -> Expr:
    """Scale a uniform number from between 0 and 1 to [low, high)."""
    value = convert(fma(u, high - low, low), dtype)
    is_high = eq(convert(value, u.dtype), convert(convert(high, dtype), u.dtype))  # by rounding
    return select(is_high, convert(low, dtype), value)


@functools.cache
def _to_uniform(dtype: DType) -> _Transform:
    if dtype is float64:
        return _Transform(
            "uniform", lambda word, low, high: scaled_uniform(u53(word), low, high, dtype), uint64, "dd"
        )
    return _Transform(
        "uniform", lambda word, low, high: scaled_uniform(u24(word), low, high, dtype), uint32, "ff"
    )


def uniform(generator: Generator, out: int, n: int, low: float, high: float, dtype: DType) -> None:
    """Draw from the uniform distribution on [low, high)."""
    _draw_to(generator, out, n, _to_uniform(dtype), dtype, low, high)


def _remainder_32(word: Expr, low: Expr, span: Expr) -> Expr:
    # Dividing in float64 vectorises, and is exact: such a quotient is never within an ulp of the next integer.
    word, divisor = cast(word, float64), cast(span, float64)
    remainder = fma(-trunc(word / divisor), divisor, word)
    return bitcast(low, int64) + cast(remainder, int64)


def _remainder_64(word: Expr, low: Expr, span: Expr) -> Expr:
    return bitcast(_high_word_first(word) % span + low, int64)


_INTEGERS = {
    uint32: _Transform("random", _remainder_32, uint32, "88"),
    uint64: _Transform("random", _remainder_64, uint64, "88"),
}
_ANY_INTEGER = _Transform("random", lambda word: bitcast(_high_word_first(word), int64), uint64)


def integers(generator: Generator, out: int, n: int, low: int, span: int, dtype: DType) -> None:
    """Integers from low to low + span - 1; span = 2**64 is every int64."""
    transform, parameters = _to_integers(low, span)
    _draw_to(generator, out, n, transform, dtype, *parameters)


def _to_integers(low: int, span: int) -> tuple[_Transform, tuple]:
    if span == 2**64:
        return _ANY_INTEGER, ()
    return _INTEGERS[uint32 if span < 2**28 else uint64], (low, span)


def any_integers(generator: Generator, out: int, n: int, dtype: DType) -> None:
    """Integers from 0 to the largest of an integer dtype, or to the last that a float counts to."""
    transform = _INTEGERS[uint64 if dtype.itemsize == 8 else uint32]
    _draw_to(generator, out, n, transform, dtype, 0, largest_span(dtype))


def largest_span(dtype: DType) -> int:
    """How many integers from 0 on a dtype holds."""
    if dtype.is_floating_point:
        return 2 ** (dtype.mantissa_bits + 1) + 1
    return 2 if dtype is bool_ else 2 ** (8 * dtype.itemsize - dtype.is_signed)


@functools.cache
def shuffle() -> Callable:
    """(address of n > 1 integers p, address of n - 1 draws, 0, n): swap p[i] with p[i + draws[i] % (n - i)] for i < n - 1."""

    def write(b: Body) -> None:
        p, words = b.operands(2)
        with b.loop(0, b.integer("sub", "%end", 1)) as i:
            left = b.let(f"trunc i64 {b.integer('sub', '%end', i)} to i32")
            jump = b.let(f"urem i32 {b.load('i32', b.place(words, (i, 4)))}, {left}")
            here = b.place(p, (i, 8))
            there = b.place(here, (b.let(f"zext i32 {jump} to i64"), 8))
            x, y = b.load("i64", here), b.load("i64", there)
            b.do(f"store i64 {y}, ptr {here}")
            b.do(f"store i64 {x}, ptr {there}")

    return compiled(write, 2, "", "shuffle")


def permutation(generator: Generator, n: int) -> np.ndarray:
    """Return the integers from 0 to n - 1 as int64, shuffled (Fisher and Yates)."""
    if n >= 214748364:  # PyTorch changes to 64-bit draws here
        raise NotImplementedError(f"randperm of {n} elements: only up to 214748363 for now")
    out = np.arange(n)
    if n > 1:
        words = u32(generator, n - 1)
        shuffle()(out.ctypes.data, words.ctypes.data, 0, n)
    return out


# Normal. Two ways, with different numbers.


def _log(x: Expr) -> Expr:
    """Compute Cephes' logf for positive normal x."""
    bits = bitcast(x, int32)
    exponent = cast((bits >> 23) - 126, float32)
    mantissa = bitcast((bits & 0x807FFFFF) | 0x3F000000, float32)
    small = mantissa < 0.707106781186547524
    exponent = exponent - select(small, const(1.0, float32), 0.0)
    x = (mantissa - 1.0) + select(small, mantissa, 0.0)
    z = x * x
    y = horner(x, _LOG)
    y = fma(y * x, z, exponent * -2.12194440e-4) - z * 0.5
    return fma(exponent, 0.693359375, x + y)


def _sin_cos(x: Expr) -> tuple[Expr, Expr]:
    """Compute Cephes' sinf and cosf for x in [0, 8192]."""
    octant = (cast(x * 1.27323954473516, int32) + 1) & ~1
    y = cast(octant, float32)
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):  # pi/4 in three parts
        x = fma(y, part, x)
    z = x * x
    cosine = fma(horner(z, _COS) * z, z, -(z * 0.5)) + 1.0
    sine = fma(horner(z, _SIN) * z, x, x)
    first = eq(octant & 2, 0)
    sin, cos = select(first, sine, cosine), select(first, cosine, sine)
    return select(eq(octant & 4, 0), sin, -sin), select(eq((octant - 2) & 4, 0), -cos, cos)


# fmt: off
_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
# fmt: on


def _box_muller(first: Expr, second: Expr, mean: Expr, std: Expr) -> tuple[Expr, Expr]:
    """Turn eight uniforms and the next eight into sixteen normals."""
    if first.dtype is uint32:
        radius = sqrt(-2.0 * _log(1.0 - u24(first)))
        sine, cosine = _sin_cos(2 * math.pi * u24(second))
    else:
        radius = sqrt(-2.0 * libm("log", 1.0 - u53(first)))
        angle = 2 * math.pi * u53(second)
        sine, cosine = libm("sin", angle), libm("cos", angle)
    return fma(radius * cosine, std, mean), fma(radius * sine, std, mean)


def _polar(angle: Expr, radius: Expr) -> tuple[Expr, Expr]:
    radius = sqrt(-2.0 * libm("log1p", -u53(radius)))
    angle = 2 * math.pi * u53(angle)
    return radius * libm("cos", angle), radius * libm("sin", angle)


_BLOCKED = _Transform("normal", _box_muller, uint32, "ff", inputs=2, lanes=8)
_BLOCKED_64 = _Transform("normal", _box_muller, uint64, "dd", inputs=2, lanes=8)
_POLAR = _Transform("normal", _polar, uint64, inputs=2)
_AFFINE = _Transform("normal", fma, float64, "dd")


def normal(
    generator: Generator, out: int, n: int, mean: float, std: float, dtype: DType, contiguous: bool = True
) -> None:
    """Normal: in blocks of 16 when there are as many to fill a contiguous tensor, else one by one in float64."""
    if n >= 16 and contiguous:
        _blocked_normal(generator, out, n, mean, std, dtype)
    else:
        _from_normal(generator, out, n, _AFFINE, dtype, std, mean)


def _blocked_normal(generator: Generator, out: int, n: int, mean: float, std: float, dtype: DType) -> None:
    for first, count, is_kept in _turns(n, dtype):
        if is_kept:
            _draw_to(generator, out + first * dtype.itemsize, count, _to_normal(dtype), dtype, mean, std)
        else:
            u64(generator, count) if dtype is float64 else u32(generator, count)


def _to_normal(dtype: DType) -> _Transform:
    return _BLOCKED_64 if dtype is float64 else _BLOCKED


def _turns(n: int, dtype: DType) -> list[tuple[int, int, bool]]:
    """How blocks of 16 fill n >= 16 elements: the first element, the number of draws, and whether they become values."""
    rest = n % 16
    turns = [(0, n - rest, True)]
    if rest:
        if dtype.itemsize >= 4:
            turns.append((0, rest, False))
        # Draw the last 16 elements anew, also those that have their values already.
        turns.append((n - 16, 16, True))
    return turns


def _from_normal(
    generator: Generator, out: int, n: int, transform: _Transform, dtype: DType, *parameters
) -> None:
    """Return the transform of `n` standard normals in float64."""
    if n:
        normals = _standard_normal(generator, n)
        _compiled(transform, dtype)(normals.ctypes.data, out, *parameters, 0, n)


def _standard_normal(generator: Generator, n: int) -> np.ndarray:
    """Normals in float64, two from each pair of draws; the generator keeps a second one that is not used."""
    kept = generator.take_normal()
    missing = n - (kept is not None)
    values = np.empty(missing + missing % 2 + 1)  # the kept one before them
    _draw_to(generator, values.ctypes.data + 8, values.size - 1, _POLAR, float64)
    if missing % 2:
        generator.keep_normal(values[-1])
    if kept is None:
        return values[1 : n + 1]
    values[0] = kept
    return values[:n]


# Other continuous and discrete distributions: one 64-bit draw for each element, computed in float64.

_EXPONENTIAL = _Transform("exponential", lambda word, scale: scale * libm("log1p", -u53(word)), uint64, "d")
_GEOMETRIC = _Transform("geometric", lambda word, scale: ceil(libm("log", u53(word)) / scale), uint64, "d")
_CAUCHY = _Transform(
    "cauchy",
    lambda word, median, sigma: fma(libm("tan", math.pi * (u53(word) - 0.5)), sigma, median),
    uint64,
    "dd",
)
_LOG_NORMAL = _Transform(
    "log_normal", lambda value, mean, std: libm("exp", fma(value, std, mean)), float64, "dd"
)
_BERNOULLI = _Transform("bernoulli", lambda word, p: u53(word) < p, uint64, "d")


def exponential(generator: Generator, out: int, n: int, rate: float, dtype: DType) -> None:
    _draw_to(generator, out, n, _EXPONENTIAL, dtype, -1.0 / rate)


def geometric(generator: Generator, out: int, n: int, p: float, dtype: DType) -> None:
    """Return how many trials until the first success."""
    _draw_to(generator, out, n, _GEOMETRIC, dtype, math.log1p(-p))


def cauchy(generator: Generator, out: int, n: int, median: float, sigma: float, dtype: DType) -> None:
    _draw_to(generator, out, n, _CAUCHY, dtype, median, sigma)


def log_normal(generator: Generator, out: int, n: int, mean: float, std: float, dtype: DType) -> None:
    """Compute exp of a normal with this mean and std."""
    _from_normal(generator, out, n, _LOG_NORMAL, dtype, mean, std)


def bernoulli(generator: Generator, out: int, n: int, p: float, dtype: DType) -> None:
    """1 with probability p, else 0; for dropout, p is what it keeps."""
    _draw_to(generator, out, n, _BERNOULLI, dtype, p)


def multinomial(
    generator: Generator, p: np.ndarray, count: int, replacement: bool, dtype: DType
) -> np.ndarray:
    """Draw `count` indices from each row of p, weighted by it.

    Shapes: p [rows, categories] in `dtype` -> [rows, count] int64. Without replacement equal scores, likely only in the
    narrow floats, come in the order of their indices; PyTorch leaves that order to its top-k.
    """
    if replacement and count > 1:
        sums = np.cumsum(p, axis=1, dtype=(float64 if dtype is float64 else float32).numpy)
        np.divide(sums, sums[:, -1:], out=sums)
        sums[:, -1] = 1
        u = np.empty((len(p), count))
        uniform(generator, u.ctypes.data, u.size, 0.0, 1.0, float64)
        rows = [np.searchsorted(row, keys) for row, keys in zip(sums.astype(np.float64), u, strict=True)]
        return np.array(rows, np.int64).reshape(-1, count)
    # The smallest of exponential waiting times: race over all categories.
    # In the strides of `p`, as PyTorch; NumPy would put the columns of an expanded array first.
    waits = np.empty(p.shape, p.dtype) if 0 in p.strides else np.empty_like(p)
    exponential(generator, waits.ctypes.data, p.size, 1.0, dtype)
    with np.errstate(all="ignore"):
        scores = p / waits
    if count == 1:
        return scores.argmax(axis=1, keepdims=True)
    found = np.empty((len(p), count), np.int64)
    for k, row in enumerate(-scores):
        found[k] = _first_of(row, count)
    return found


def _first_of(row: np.ndarray, count: int) -> np.ndarray:
    """Where the `count` least lie, in order; of equals, the first come first."""
    if count > len(row) // 8 or row.itemsize < 4:  # NumPy has no selection for the narrow floats
        return row.argsort(kind="stable")[:count]
    candidates = np.flatnonzero(row <= np.partition(row, count - 1)[count - 1])
    return candidates[np.argsort(row[candidates], kind="stable")[:count]]


# ---- Fills as data ---------------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """Draw `words` words of 32 bits; `to_values` makes `groups` groups of them, unless it is None, from element `first` on."""

    words: int
    to_values: Callable | None
    first: int
    groups: int


def turns_of(distribution: str, n: int, dtype: DType, parameters: dict) -> tuple[list[Turn], tuple] | None:
    """What a fill of n > 0 elements does one after the other, and the numbers that each `to_values` gets.

    None if that is not known beforehand, or more than SCRATCH words are drawn at once.
    """
    if distribution not in _TRANSFORMS:
        return None
    blocks = [(0, n, True)]
    if distribution == "normal":
        if n < 16 or not parameters["contiguous"]:  # the generator may have a number left
            return None
        blocks = _turns(n, dtype)
        parameters = {key: parameters[key] for key in ("mean", "std")}
    transform, numbers = _TRANSFORMS[distribution](dtype, **parameters)
    _, to_values, words, group = _drawing(transform, dtype)
    turns = [
        Turn(count * words, to_values if is_kept else None, first, count // group)
        for first, count, is_kept in blocks
    ]
    return (turns, numbers) if max(turn.words for turn in turns) <= SCRATCH else None


# By distribution: the transform of the draws, and its parameters.
_TRANSFORMS: dict[str, Callable[..., tuple[_Transform, tuple]]] = {
    "uniform": lambda dtype, low, high: (_to_uniform(dtype), (low, high)),
    "normal": lambda dtype, mean, std: (_to_normal(dtype), (mean, std)),
    "integers": lambda dtype, low, span: _to_integers(low, span),
    "bernoulli": lambda dtype, p: (_BERNOULLI, (p,)),
}
