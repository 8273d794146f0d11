"""Elementwise kernels: each thread computes some elements, then those that lie as many further on as there are threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtype import DType
from ...engine.expr import Expr, postorder
from ...engine.llvm import emit, memory_type
from ...engine.loops import BROADCAST, CONTIGUOUS, Result, element_size
from .kernel import Kernel
from .target import Target

VECTOR_BYTES = 16  # that a thread loads or stores at once


class MapKernel(NamedTuple):
    """Everything that the code of an elementwise kernel depends on.

    Its arguments are the addresses, the scalars, the number of elements, the sizes, and the strides of each operand.
    """

    results: tuple[Result, ...]
    operand_dtypes: tuple[DType, ...]  # of the inputs
    params: int
    dims: int
    classes: str  # of each operand's stride in a loop over one dim: CONTIGUOUS, BROADCAST or STRIDED
    wide: bool  # positions need 64 bits

    @property
    def itemsizes(self) -> list[int]:
        return [*map(element_size, self.results), *(dtype.itemsize for dtype in self.operand_dtypes)]

    @property
    def lanes(self) -> int:
        """How many neighbouring elements a thread computes, so that it loads and stores vectors."""
        if self.dims != 1 or not set(self.classes) <= {CONTIGUOUS, BROADCAST} or self.classes[0] == BROADCAST:
            return 1
        if any(len(result.parts) > 1 for result in self.results) or self._has_parts():
            return 1
        largest = max(size for size, kind in zip(self.itemsizes, self.classes, strict=True))
        return max(1, VECTOR_BYTES // largest)

    def _has_parts(self) -> bool:
        return any(isinstance(leaf.value, tuple) for leaf in self.leaves() if leaf.op == "load")

    def leaves(self) -> list[Expr]:
        parts = tuple([part for result in self.results for part in result.parts])
        return [each for each in postorder(parts) if each.op in ("load", "param")]


def map_ir(target: Target, kernel: MapKernel) -> str:
    """The module of the kernel."""
    return _Map(target, kernel).ir()


class _Map(Kernel):
    def __init__(self, target: Target, kernel: MapKernel):
        super().__init__(target)
        self.kernel = kernel
        self.outputs = len(kernel.results)
        operands = len(kernel.itemsizes)
        self.addresses = self.words("p", operands)
        self.numbers = self.words("x", kernel.params)
        self.count = self.parameter("n")
        self.sizes = self.words("d", kernel.dims)
        self.strides = [self.words(f"s{k}_", kernel.dims) for k in range(operands)]
        self._write()

    def _write(self) -> None:
        first, step = self.first_and_step()
        done: str | int = 0
        if (lanes := self.kernel.lanes) > 1:
            done = self._vectors(first, step, lanes)
        with self.loop(self.integer("add", first, done), self.count, step) as i:
            positions = self.unravel(i, self.sizes, self.kernel.wide)
            places = [
                self.place(address, positions, self._steps(k)) for k, address in enumerate(self.addresses)
            ]
            parts = [part for result in self.kernel.results for part in result.parts]
            values = self.elements(parts, places[self.outputs :], self.numbers)
            self.store(self.kernel.results, places[: self.outputs], values)

    def _steps(self, operand: int) -> Sequence[str | int]:
        kind = self.kernel.classes[operand]
        if kind == CONTIGUOUS:
            return [self.kernel.itemsizes[operand]]
        return [0] if kind == BROADCAST else self.strides[operand]

    def _vectors(self, first: str, step: str, lanes: int) -> str:
        """Compute whole vectors, if all operands are aligned for them. Returns the number of elements computed by all threads."""
        vectors = [k for k, kind in enumerate(self.kernel.classes) if kind == CONTIGUOUS]
        together = "0"
        for k in vectors:
            size = self.kernel.itemsizes[k] * lanes
            together = self.integer("or", together, self.integer("and", self.addresses[k], size - 1))
        aligned = self.let(f"icmp eq i64 {together}, 0")
        all_of_them = self.integer("udiv", self.count, lanes)
        whole = self.let(f"select i1 {aligned}, i64 {all_of_them}, i64 0")
        with self.loop(first, whole, step) as i:
            self._vector(i, lanes)
        return self.integer("mul", whole, lanes)

    def _vector(self, i: str, lanes: int) -> None:
        leaves = self.kernel.leaves()
        loaded = {leaf: self._load_vector(leaf, i, lanes) for leaf in leaves if leaf.op == "load"}
        parts = [result.parts[0] for result in self.kernel.results]
        columns = []
        for lane in range(lanes):
            names = {leaf: self._lane(leaf, vector, lane, lanes) for leaf, vector in loaded.items()} | {
                leaf: self.number(self.numbers[leaf.value], leaf.dtype)
                for leaf in leaves
                if leaf.op == "param"
            }
            columns.append(emit(self, parts, names))
        for k, part in enumerate(parts):
            self._store_vector(k, part.dtype, [values[k] for values in columns], i)

    def _load_vector(self, leaf: Expr, i: str, lanes: int) -> str:
        operand = self.outputs + leaf.value
        if self.kernel.classes[operand] == BROADCAST:
            return self.read(self.addresses[operand], leaf.dtype)
        pointer, size = self._vector_place(operand, leaf.dtype, i, lanes)
        return self.let(
            f"load <{lanes} x {memory_type(leaf.dtype)}>, ptr addrspace(1) {pointer}, align {size}"
        )

    def _vector_place(self, operand: int, dtype: DType, i: str, lanes: int) -> tuple[str, int]:
        size = dtype.itemsize * lanes
        return self.pointer(self.place(self.addresses[operand], [i], [size])), size

    def _lane(self, leaf: Expr, vector: str, lane: int, lanes: int) -> str:
        if self.kernel.classes[self.outputs + leaf.value] == BROADCAST:
            return vector
        kind = memory_type(leaf.dtype)
        element = self.let(f"extractelement <{lanes} x {kind}> {vector}, i32 {lane}")
        return self.let(f"icmp ne i8 {element}, 0") if leaf.dtype.name == "bool" else element

    def _store_vector(self, operand: int, dtype: DType, values: Sequence[str], i: str) -> None:
        kind, lanes = memory_type(dtype), len(values)
        vector = "undef"
        for lane, value in enumerate(values):
            if dtype.name == "bool":
                value = self.let(f"zext i1 {value} to i8")
            vector = self.let(f"insertelement <{lanes} x {kind}> {vector}, {kind} {value}, i32 {lane}")
        pointer, size = self._vector_place(operand, dtype, i, lanes)
        self.do(f"store <{lanes} x {kind}> {vector}, ptr addrspace(1) {pointer}, align {size}")
