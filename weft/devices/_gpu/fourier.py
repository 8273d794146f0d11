"""Discrete Fourier transforms along one dim.

A group of threads transforms signals in its memory: as many short ones as fit, by passes over the factors of their length (Stockham's form, in
which no pass permutes). The length and its factors are arguments, so a new length compiles nothing. A long signal of length a * b is a matrix:
its columns are transformed, multiplied by roots of unity, and then its rows are (the four-step algorithm).

Source: Govindaraju et al. 2008, "High Performance Discrete Fourier Transforms on Graphics Processors", sections 4.1 and 4.3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...core.storage import Storage
from ...engine.kernel import Launch
from ...engine.llvm import constant, value_type
from ...engine.roots import roots_of_unity
from .kernel import THREADS, Kernel, is_wide
from .target import Target

ROOM_BYTES = (
    1 << 14
)  # of the real parts of all signals in memory of the group, twice: what a pass reads and what it writes
RADICES = (8, 7, 5, 4, 3, 2)  # factors with code of their own
LARGEST_FACTOR = 61  # other prime factors up to here are computed term by term
BATCH_DIMS = 4
WIDTH = 8  # bits of a factor in the word of factors

Complex = tuple[str, str]


class TransformKernel(NamedTuple):
    """Everything that the code of a transform depends on.

    Arguments: the addresses of the result, the source, the roots of unity of the length and of the whole length; signals, their length, signals of
    a group, the factors of the length, the offsets of the real and imaginary parts, the scale, how many elements are stored, whether neighbouring
    threads have neighbouring signals; then the sizes of the batch, and the strides of the result and of the source, along the batch and
    along the signal.
    """

    part: DType  # float32 or float64
    real: bool  # the source has no imaginary parts
    twisted: bool  # element k of the signal number j of the innermost dim of the batch is multiplied by the k * j-th root of the whole length
    wide: bool  # positions need 64 bits


def most_elements(part: DType) -> int:
    """How many elements the memory of a group has room for."""
    return ROOM_BYTES // 2 // part.itemsize


def transform_ir(target: Target, kernel: TransformKernel) -> str:
    """Return the module of the kernel."""
    return _Transform(target, kernel).ir()


class _Transform(Kernel):
    def __init__(self, target: Target, kernel: TransformKernel):
        super().__init__(target)
        self.kernel, self.part, self.kind = kernel, kernel.part, value_type(kernel.part)
        self.result, self.source, self.roots, self.all_roots = self.words("p", 4)
        names = "signals", "length", "together", "factors", "real", "imag", "scale", "stored", "across"
        (
            self.signals,
            self.length,
            self.together,
            self.factors,
            self.real,
            self.imag,
            scale,
            self.stored,
            across,
        ) = (self.parameter(name) for name in names)
        self.sizes = self.words("d", BATCH_DIMS)
        self.result_steps, self.source_steps = (self.words(name, BATCH_DIMS + 1) for name in ("r", "s"))
        self.scale = self.number(scale, self.part)
        self.across = self.let(f"icmp ne i64 {across}, 0")
        self.most = most_elements(self.part)
        self.rooms = [self.shared(self.part, 2 * self.most) for _ in range(2)]
        self.own = self.thread()
        self._write()

    # ---- Numbers ---------------------------------------------------------------------------------------------------------

    def _op(self, name: str, a: str, b: str) -> str:
        return self.let(f"{name} {self.kind} {a}, {b}")

    def _fma(self, a: str, b: str, c: str) -> str:
        return self.intrinsic("fma", self.part, 1, a, b, c)

    def _negative(self, a: str) -> str:
        return self.let(f"fneg {self.kind} {a}")

    def _times(self, a: Complex, b: Complex) -> Complex:
        real = self._fma(self._negative(a[1]), b[1], self._op("fmul", a[0], b[0]))
        return real, self._fma(a[1], b[0], self._op("fmul", a[0], b[1]))

    def _plus(self, a: Complex, b: Complex) -> Complex:
        return self._op("fadd", a[0], b[0]), self._op("fadd", a[1], b[1])

    def _divided(self, a: str, b: str) -> tuple[str, str]:
        """The quotient and the rest of two numbers below 2 ** 31."""
        quotient, rest = self.unravel(a, ["0", b], wide=False)
        return quotient, rest

    def _root(self, table: str, number: str) -> Complex:
        place = self.place(table, [number], [2 * self.part.itemsize])
        return self.read(place, self.part), self.read(place, self.part, self.part.itemsize)

    # ---- Signals ---------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        turns = self.integer(
            "udiv",
            self.integer("add", self.signals, self.integer("sub", self.together, 1)),
            self.together,
        )
        with self.loop(self.group(), turns, self.groups()) as turn:
            first = self.integer("mul", turn, self.together)
            count = self.minimum(self.together, self.integer("sub", self.signals, first))
            base, done = self.variable("i64", "0"), self.variable("i64", "1")
            factors = self.variable("i64", self.factors)
            self.barrier()  # the signals before are stored
            self._fetch(first, count)
            with self.repeat() as go_on_if:
                rest = self.get(factors, "i64")
                go_on_if(self.let(f"icmp ne i64 {rest}, 0"))
                self.barrier()
                factor = self.integer("and", rest, (1 << WIDTH) - 1)
                self._pass(factor, count, self.get(base, "i64"), self.get(done, "i64"))
                self.set(base, "i64", self.integer("sub", self.most, self.get(base, "i64")))
                self.set(done, "i64", self.integer("mul", self.get(done, "i64"), factor))
                self.set(factors, "i64", self.integer("lshr", rest, WIDTH))
            self.barrier()
            self._store(first, count, self.get(base, "i64"))

    def _each(self, count: str, size: str) -> Any:
        """A loop over all elements of signals of a size, and what makes of its number (signal, element)."""
        return self.loop(self.own, self.integer("mul", count, size), THREADS)

    def _place(self, i: str, count: str, size: str) -> tuple[str, str]:
        """The signal and the element that a thread copies: neighbours in memory by neighbouring threads."""
        by_signal, element = self._divided(i, size)
        by_element, signal = self._divided(i, count)
        return (
            self.let(f"select i1 {self.across}, i64 {signal}, i64 {by_signal}"),
            self.let(f"select i1 {self.across}, i64 {by_element}, i64 {element}"),
        )

    def _slot(self, base: str, signal: str, element: str) -> str:
        line = self.integer("add", self.integer("mul", signal, self.length), element)
        return self.integer("add", base, line)

    def _value(self, slot: str) -> Complex:
        return self.take(self.rooms[0], self.part, slot), self.take(self.rooms[1], self.part, slot)

    def _put_value(self, slot: str, value: Complex) -> None:
        for room, part in zip(self.rooms, value, strict=True):
            self.put(room, self.part, slot, part)

    def _fetch(self, first: str, count: str) -> None:
        with self._each(count, self.length) as i:
            signal, element = self._place(i, count, self.length)
            batch = self.unravel(self.integer("add", first, signal), self.sizes, self.kernel.wide)
            place = self.place(self.source, [*batch, element], self.source_steps)
            if self.kernel.real:  # the transform of a signal that is swapped with its imaginary part, too
                value, zero = self.read(place, self.part), constant(self.part, 0)
                swapped = self.let(f"icmp ne i64 {self.real}, 0")
                parts = (
                    self.let(f"select i1 {swapped}, {self.kind} {zero}, {self.kind} {value}"),
                    self.let(f"select i1 {swapped}, {self.kind} {value}, {self.kind} {zero}"),
                )
            else:
                parts = (
                    self.read(self.integer("add", place, self.real), self.part),
                    self.read(self.integer("add", place, self.imag), self.part),
                )
            self._put_value(self._slot("0", signal, element), parts)

    def _store(self, first: str, count: str, base: str) -> None:
        with self._each(count, self.stored) as i:
            signal, element = self._place(i, count, self.stored)
            batch = self.unravel(self.integer("add", first, signal), self.sizes, self.kernel.wide)
            value = self._value(self._slot(base, signal, element))
            if self.kernel.twisted:
                value = self._times(
                    value, self._root(self.all_roots, self.integer("mul", element, batch[-1]))
                )
            place = self.place(self.result, [*batch, element], self.result_steps)
            for offset, part in zip((self.real, self.imag), value, strict=True):
                scaled = self._op("fmul", part, self.scale)
                self.write(self.integer("add", place, offset), self.part, scaled)

    # ---- Passes ----------------------------------------------------------------------------------------------------------

    def _pass(self, factor: str, count: str, base: str, done: str) -> None:
        """One factor of the length; `done` is the product of those before."""
        other = self.integer("sub", self.most, base)
        for radix in RADICES:
            with self.when(self.let(f"icmp eq i64 {factor}, {radix}")):
                self._butterflies(radix, count, (base, other), done)
        with self.when(self.let(f"icmp ugt i64 {factor}, {RADICES[0]}")):
            self._term_by_term(factor, count, (base, other), done)

    def _butterflies(self, radix: int, count: str, bases: tuple[str, str], done: str) -> None:
        each = self._divided(self.length, str(radix))[0]
        step = self._divided(each, done)[0]  # between the roots that are used
        with self._each(count, each) as i:
            signal, j = self._divided(i, each)
            block, within = self._divided(j, done)
            turn = self.integer("mul", within, step)
            values = []
            for k in range(radix):
                at = self.integer("add", j, self.integer("mul", each, k))
                value = self._value(self._slot(bases[0], signal, at))
                if k:
                    value = self._times(value, self._root(self.roots, self.integer("mul", turn, k)))
                values.append(value)
            start = self.integer("add", self.integer("mul", block, self.integer("mul", done, radix)), within)
            for k, value in enumerate(self._small_transform(values)):
                at = self.integer("add", start, self.integer("mul", done, k))
                self._put_value(self._slot(bases[1], signal, at), value)

    def _small_transform(self, values: list[Complex]) -> list[Complex]:
        """The transform of a few numbers; of an even number by its halves."""
        n = len(values)
        if n == 1:
            return values
        if n % 2 == 0:
            even, odd = self._small_transform(values[::2]), self._small_transform(values[1::2])
            turned = [self._turned(each, k, n) for k, each in enumerate(odd)]
            minus = [(self._negative(a), self._negative(b)) for a, b in turned]
            return [self._plus(a, b) for a, b in zip(even * 2, turned + minus, strict=True)]
        results = []
        for k in range(n):
            total = values[0]
            for j in range(1, n):
                total = self._plus(total, self._turned(values[j], j * k % n, n))
            results.append(total)
        return results

    def _turned(self, value: Complex, k: int, n: int) -> Complex:
        """A number times the k-th root of unity of n."""
        if k == 0:
            return value
        if 4 * k == n:
            return value[1], self._negative(value[0])
        root = roots_of_unity(n)[k]
        return self._times(value, (self._literal(root.real), self._literal(root.imag)))

    def _literal(self, number: float) -> str:
        return constant(self.part, int.from_bytes(self.part.numpy.type(number).tobytes(), "little"))

    def _term_by_term(self, factor: str, count: str, bases: tuple[str, str], done: str) -> None:
        """Each thread adds up the terms of elements of the result."""
        each = self._divided(self.length, factor)[0]
        step = self._divided(each, done)[0]
        with self._each(count, self.length) as i:
            signal, element = self._divided(i, self.length)
            k, j = self._divided(element, each)
            block, within = self._divided(j, done)
            turn = self.integer("add", self.integer("mul", within, step), self.integer("mul", k, each))
            total = [self.variable(self.kind, constant(self.part, 0)) for _ in range(2)]
            with self.loop(0, factor) as term:
                at = self.integer("add", j, self.integer("mul", each, term))
                number = self._divided(self.integer("mul", turn, term), self.length)[1]
                value = self._times(
                    self._value(self._slot(bases[0], signal, at)), self._root(self.roots, number)
                )
                for variable, part in zip(total, value, strict=True):
                    self.set(variable, self.kind, self._op("fadd", self.get(variable, self.kind), part))
            start = self.integer("add", self.integer("mul", block, self.integer("mul", done, factor)), within)
            at = self.integer("add", start, self.integer("mul", done, k))
            self._put_value(
                self._slot(bases[1], signal, at),
                (self.get(total[0], self.kind), self.get(total[1], self.kind)),
            )


# ---- Launches --------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def factors(n: int) -> tuple[int, ...] | None:
    """The factors of a length, one for each pass; None if one of them is too large."""
    found = []
    for factor in (*RADICES, *(each for each in range(11, LARGEST_FACTOR + 1, 2))):
        while n % factor == 0:
            found.append(factor)
            n //= factor
    return tuple(found) if n == 1 else None


# Where signals lie: an address, and in bytes the strides along the dims of the batch, and along the signal.
Signals = tuple[int, tuple[int, ...], int]


class Fourier:
    """The transforms of a device."""

    def __init__(self, gpu: Any):
        self._gpu = gpu
        self._launch = functools.lru_cache(maxsize=512)(self._prepare)
        self._roots = functools.lru_cache(maxsize=64)(self._make_roots)

    @staticmethod
    def takes(n: int) -> bool:
        """Whether signals of a length can be transformed."""
        return factors(n) is not None

    def stores_parts(self, n: int, part: DType) -> bool:
        """Whether only the first elements of a transform of this length can be stored."""
        return self.takes(n) and n <= most_elements(part)

    def transform(
        self,
        result: Signals,
        source: Signals,
        sizes: Sequence[int],
        n: int,
        part: DType,
        *,
        real: bool = False,
        forward: bool = True,
        scale: float = 1.0,
        stored: int | None = None,
    ) -> None:
        """Write the transforms of all signals of a batch of these sizes, or the first elements of each, so many. The source may be the result.

        part: of the complex numbers; real: the source has only real parts.
        """
        stored = n if stored is None else stored
        if n <= most_elements(part):
            self._run(result, source, tuple(sizes), n, n, (part, real, False, forward, scale, stored))
            return
        columns, rows = _split(n, most_elements(part))
        itemsize = 2 * part.itemsize
        between = self._gpu.allocate(math.prod(sizes) * n * itemsize)
        steps = _contiguous((*sizes, columns, rows), itemsize)
        # Columns: signals of `columns` elements, `rows` elements apart.
        address, batch, along = source
        to = between.ptr, (*steps[:-2], steps[-1]), steps[-2]
        given = address, (*batch, along), along * rows
        self._run(to, given, (*sizes, rows), columns, n, (part, real, True, forward, 1.0, columns))
        address, batch, along = result
        to = address, (*batch, along), along * columns
        self.transform(
            to,
            (between.ptr, steps[:-1], steps[-1]),
            (*sizes, columns),
            rows,
            part,
            forward=forward,
            scale=scale,
        )

    def _run(
        self, result: Signals, source: Signals, sizes: tuple[int, ...], n: int, whole: int, how: tuple
    ) -> None:
        part = how[0]
        launch: Any = self._launch(result[1:], source[1:], sizes, n, *how)
        roots = self._roots(n, part).ptr
        all_roots = roots if whole == n else self._roots(whole, part).ptr
        launch.entry(result[0], source[0], roots, all_roots, launch.meta, launch.count)

    def _prepare(
        self, result: tuple, source: tuple, sizes: tuple[int, ...], n: int, part: DType, real: bool, twisted: bool, forward: bool, scale: float, stored: int
    ) -> Launch:  # fmt: skip
        signals = math.prod(sizes)
        padding = (1,) * (BATCH_DIMS - len(sizes))
        together = max(1, min(signals, most_elements(part) // n))
        packed = sum(factor << WIDTH * k for k, factor in enumerate(factors(n) or ()))
        offsets = (0, part.itemsize) if forward else (part.itemsize, 0)
        across = bool(sizes) and source[0][-1] < source[1]
        number = int.from_bytes(part.numpy.type(scale).tobytes(), "little")
        words = [signals, n, together, packed, *offsets, number, stored, across, *padding, *sizes]
        for batch, along in (result, source):
            words += [*[0] * len(padding), *batch, along]
        kernel = TransformKernel(part, real, twisted, is_wide(signals))
        gpu = self._gpu
        threads = THREADS * -(-signals // together)
        return gpu.runtime.launch(gpu.runtime.load(transform_ir, kernel), gpu.groups(threads), "pppp", words)

    def _make_roots(self, n: int, part: DType) -> Storage:
        """The roots of unity of a length, on the device."""
        values = roots_of_unity(n).astype(part.to_complex().numpy)
        storage = self._gpu.lasting(values.nbytes)
        self._gpu.write_constant(storage, values.tobytes())
        return storage


def _split(n: int, most: int) -> tuple[int, int]:
    """Two factors of a length. The first is at most so large, and near the root of n, so that signals of neighbouring columns fit as well."""
    wanted = min(most, math.isqrt(n))
    best = 1
    for factor in _divisors(n):
        if best < factor <= wanted:
            best = factor
    return best, n // best


def _divisors(n: int) -> Iterator[int]:
    found = {1}
    for factor in factors(n) or ():
        found |= {factor * each for each in found}
    yield from sorted(found)


def _contiguous(sizes: Sequence[int], itemsize: int) -> tuple[int, ...]:
    steps = [itemsize]
    for size in reversed(sizes[1:]):
        steps.append(steps[-1] * size)
    return tuple(reversed(steps))
