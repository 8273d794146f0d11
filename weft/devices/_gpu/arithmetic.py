"""Arithmetic of kernels of linear algebra, with real and complex numbers: a real number is one value, and a complex one two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import DType
from ...engine.complexes import Complex
from ...engine.expr import Expr, absolute, fma, load
from ...engine.llvm import constant, emit, value_type
from .kernel import THREADS, Kernel
from .target import Target

Number = tuple[str, ...]  # the parts of a number: the real part, and of a complex one the imaginary part


class Arithmetic(Kernel):
    """A kernel that computes with numbers of one dtype."""

    def __init__(self, target: Target, dtype: DType):
        super().__init__(target)
        self.part = dtype.to_real()
        self.parts = dtype.itemsize // self.part.itemsize
        self.kind = value_type(self.part)

    def compute(self, formula: Callable[..., Any], *operands: Number) -> Any:
        """Return the value of a formula of Exprs and `Complex` pairs, a Number. Of a formula that returns a tuple, return a list of them."""
        names: dict[Expr, str] = {}
        given: list[Any] = []
        for operand in operands:
            leaves = [load(len(names) + k, self.part) for k in range(len(operand))]
            names.update(zip(leaves, operand, strict=True))
            given.append(Complex(*leaves) if len(leaves) == 2 else leaves[0])
        result = formula(*given)
        if isinstance(result, tuple):
            return [tuple(emit(self, _parts(each), names)) for each in result]
        return tuple(emit(self, _parts(result), names))

    def test(self, formula: Callable[..., Any], *operands: Number) -> str:
        """Return the value of a condition, an i1."""
        (value,) = self.compute(formula, *operands)
        return value

    def literal(self, value: float) -> str:
        """Return a constant of the real type."""
        return constant(self.part, int.from_bytes(self.part.numpy.type(value).tobytes(), "little"))

    def number_of(self, value: float) -> Number:
        """Return a constant as a Number."""
        return (self.literal(value), *[self.literal(0)] * (self.parts - 1))

    # ---- Variables, memory of the device, memory of the group ------------------------------------------------------------

    def new_number(self, initial: Number) -> list[str]:
        """Return variables for the parts of a number."""
        return [self.variable(self.kind, part) for part in initial]

    def zeros(self) -> list[str]:
        """Return variables for the parts of a number that is zero."""
        return self.new_number(self.number_of(0))

    def get_number(self, variables: Sequence[str]) -> Number:
        return tuple(self.get(variable, self.kind) for variable in variables)

    def set_number(self, variables: Sequence[str], number: Number) -> None:
        for variable, part in zip(variables, number, strict=True):
            self.set(variable, self.kind, part)

    def read_number(self, address: str) -> Number:
        return tuple(self.read(address, self.part, k * self.part.itemsize) for k in range(self.parts))

    def write_number(self, address: str, number: Number) -> None:
        for k, part in enumerate(number):
            self.write(address, self.part, part, k * self.part.itemsize)

    def room(self, count: int) -> list[str]:
        """Return memory of the group for so many numbers: parts of one kind lie side by side."""
        return [self.shared(self.part, count) for _ in range(self.parts)]

    def take_number(self, room: Sequence[str], position: str) -> Number:
        return tuple(self.take(memory, self.part, position) for memory in room)

    def put_number(self, room: Sequence[str], position: str, number: Number) -> None:
        for memory, part in zip(room, number, strict=True):
            self.put(memory, self.part, position, part)

    # ---- Conditions ------------------------------------------------------------------------------------------------------

    def less(self, a: str | int, b: str | int) -> str:
        """Return whether an int64 is less than another one."""
        return self.let(f"icmp slt i64 {a}, {b}")

    def equal(self, a: str | int, b: str | int) -> str:
        """Return whether two int64 are equal."""
        return self.let(f"icmp eq i64 {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.let(f"and i1 {a}, {b}")

    # ---- What a group computes together ----------------------------------------------------------------------------------

    def halved(self, thread: str, count: str, join: Callable[[str], None]) -> None:
        """Write code that joins what the first `count` threads have in memory of the group: thread i what it has to what thread j has, `join(j)`.

        This goes on, in a tree of fixed order, until thread 0 has all. No thread has anything behind `count`.
        """
        distance = THREADS // 2
        while distance:
            with self.when(self.less(distance, count)):  # the same for all threads
                self.barrier()
                with self.when(self.less(thread, distance)):
                    join(self.integer("add", thread, distance))
            distance //= 2
        self.barrier()


# ---- Formulas ------------------------------------------------------------------------------------------------------------


def _parts(value: Any) -> list[Expr]:
    return [value.real, value.imag] if isinstance(value, Complex) else [value]


def conjugate(a: Any) -> Any:
    return Complex(a.real, -a.imag) if isinstance(a, Complex) else a


def plus_product(c: Any, a: Any, b: Any) -> Any:
    """Return c + a b."""
    if isinstance(c, Complex):
        real = fma(-a.imag, b.imag, fma(a.real, b.real, c.real))
        return Complex(real, fma(a.imag, b.real, fma(a.real, b.imag, c.imag)))
    return fma(a, b, c) if c.dtype.kind == "f" else c + a * b


def less_product(c: Any, a: Any, b: Any) -> Any:
    """Return c - a b."""
    return plus_product(c, -a, b)


def scaled(a: Any, factor: Expr) -> Any:
    """Return a number multiplied by a real one."""
    return Complex(a.real * factor, a.imag * factor) if isinstance(a, Complex) else a * factor


def shrunk(a: Any, divisor: Expr) -> Any:
    """Return a number divided by a real one."""
    return Complex(a.real / divisor, a.imag / divisor) if isinstance(a, Complex) else a / divisor


def size_of(a: Any) -> Expr:
    """Return the magnitude by which LAPACK compares numbers."""
    return absolute(a.real) + absolute(a.imag) if isinstance(a, Complex) else absolute(a)
