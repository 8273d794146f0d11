"""Maps whose operands follow indices: gathers, and scatters whose elements do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtype import DType, int64
from ...engine.expr import Expr
from ...engine.loops import Result
from .kernel import Kernel
from .target import Target


class IndexedKernel(NamedTuple):
    """Everything that the code of a map whose operands follow indices depends on.

    Arguments: the addresses, a word that is not used, other addresses of some kernels, the address of the word for faults, the number of
    elements of the parallel dims and of the serial dims, the sizes, the strides of each operand, then for each index the size of the dim that it
    counts along and its step in bytes.
    """

    results: tuple[Result, ...]
    operand_dtypes: tuple[DType, ...]  # of the inputs; the indices come last
    dims: int
    serial: int  # the last dims, whose elements one thread computes in their order
    indices: int
    displaced: tuple[int, ...]
    wrap: bool
    wide: bool


def indexed_ir(target: Target, kernel: IndexedKernel) -> str:
    """Write the module of the kernel."""
    return Displaced(target, kernel).ir()


class Displaced(Kernel):
    """Each thread computes elements that meet no others; along the serial dims it takes them in their order."""

    rooms = 0  # other addresses

    def __init__(self, target: Target, kernel: IndexedKernel):
        super().__init__(target)
        self.kernel = kernel
        self.outputs = len(kernel.results)
        operands = self.outputs + len(kernel.operand_dtypes)
        self.addresses = self.words("p", operands)
        self.parameter("unused")  # the place of a table, which the host's loops read
        self.others = self.words("room", self.rooms)
        self.faults = self.parameter("faults")
        self.count, self.turns = self.parameter("n"), self.parameter("turns")
        self.sizes = self.words("d", kernel.dims)
        self.strides = [self.words(f"s{k}", kernel.dims) for k in range(operands)]
        self.limits = self.words("limit", kernel.indices)
        self.steps = self.words("step", kernel.indices)
        self.parallel = kernel.dims - kernel.serial
        bad = self.variable("i64", "0")
        self.write_all(bad)
        with self.when(self.let(f"icmp ne i64 {self.get(bad, 'i64')}, 0")):
            self.write(self.faults, int64, "1")

    def write_all(self, bad: str) -> None:
        """Write the code, which sets the variable `bad` where an index is out of range."""
        first, step = self.first_and_step()
        with self.loop(first, self.count, step) as i:
            positions = self.unravel(i, self.sizes[: self.parallel], self.kernel.wide)
            if not self.kernel.serial:
                self.compute(positions, self.displacement(positions, bad))
            else:
                with self.loop(0, self.turns) as turn:
                    place = [*positions, *self.rest(turn)]
                    self.compute(place, self.displacement(place, bad))

    def rest(self, turn: str) -> list[str]:
        """The position along the serial dims of an element that is computed in its turn."""
        return self.unravel(turn, self.sizes[self.parallel :], self.kernel.wide)

    def displacement(self, positions: Sequence[str], bad: str) -> str:
        """Return by how many bytes the indices of an element displace it."""
        moved = zip(self.found(positions, bad), self.steps, strict=True)
        return self.place("0", *map(list, zip(*moved, strict=True)))

    def found(self, positions: Sequence[str], bad: str) -> list[str]:
        """The indices of an element; one that is out of range is 0 and makes `bad` true."""
        first = len(self.addresses) - self.kernel.indices
        dtypes = self.kernel.operand_dtypes[len(self.kernel.operand_dtypes) - self.kernel.indices :]
        return [
            self._index(self.place(address, positions, strides), dtype, limit, bad)
            for address, strides, dtype, limit in zip(
                self.addresses[first:], self.strides[first:], dtypes, self.limits, strict=True
            )
        ]

    def _index(self, address: str, dtype: DType, limit: str, bad: str) -> str:
        index = self.read(address, dtype)
        if dtype.itemsize < 8:
            extend = "sext" if dtype.kind == "i" else "zext"
            index = self.let(f"{extend} i{8 * dtype.itemsize} {index} to i64")
        if self.kernel.wrap:
            negative = self.let(f"icmp slt i64 {index}, 0")
            around = self.integer("add", index, limit)
            index = self.let(f"select i1 {negative}, i64 {around}, i64 {index}")
        fine = self.let(f"icmp ult i64 {index}, {limit}")
        self.set(bad, "i64", self.let(f"select i1 {fine}, i64 {self.get(bad, 'i64')}, i64 1"))
        return self.let(f"select i1 {fine}, i64 {index}, i64 0")

    def places(self, positions: Sequence[str], displacement: str) -> list[str]:
        """The addresses of the operands of an element."""
        places = [
            self.place(address, positions, strides)
            for address, strides in zip(self.addresses, self.strides, strict=True)
        ]
        for k in self.kernel.displaced:
            places[k] = self.integer("add", places[k], displacement)
        return places

    def compute(self, positions: Sequence[str], displacement: str) -> None:
        """Compute and store an element."""
        places, results = self.places(positions, displacement), self.kernel.results
        values = self.elements(self.parts(), places[self.outputs :], ())
        self.store(results, places[: self.outputs], values)

    def parts(self) -> list[Expr]:
        """The parts of the results."""
        return [part for result in self.kernel.results for part in result.parts]
