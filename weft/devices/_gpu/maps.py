"""Elementwise kernels: each thread computes some elements, then those that lie as many further on as there are threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtype import DType, bool_
from ...engine.expr import Expr, postorder
from ...engine.llvm import emit, memory_type
from ...engine.loops import BROADCAST, CONTIGUOUS, STRIDED, Result, element_size
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
    classes: str  # of each operand's innermost stride: CONTIGUOUS, BROADCAST or STRIDED, see `classes_of`
    wide: bool  # positions need 64 bits

    @property
    def itemsizes(self) -> list[int]:
        return [*map(element_size, self.results), *(dtype.itemsize for dtype in self.operand_dtypes)]

    @property
    def lanes(self) -> int:
        """How many neighbouring elements a thread computes, so that it loads and stores vectors."""
        if not set(self.classes) <= {CONTIGUOUS, BROADCAST} or self.classes[0] == BROADCAST:
            return 1
        if any(len(result.parts) > 1 for result in self.results) or self._has_parts():
            return 1
        return lanes_of(self.classes, self.itemsizes)

    def _has_parts(self) -> bool:
        return any(isinstance(leaf.value, tuple) for leaf in self.leaves() if leaf.op == "load")

    def leaves(self) -> list[Expr]:
        parts = tuple([part for result in self.results for part in result.parts])
        return [each for each in postorder(parts) if each.op in ("load", "param")]


def lanes_of(classes: str, itemsizes: Sequence[int]) -> int:
    """The elements of a vector of VECTOR_BYTES, of the largest of the operands that are read or written as vectors."""
    sizes = [size for size, kind in zip(itemsizes, classes, strict=True) if kind == CONTIGUOUS]
    return max(1, VECTOR_BYTES // max(sizes, default=VECTOR_BYTES))


def classes_of(sizes: Sequence[int], strides: Sequence[Sequence[int]], itemsizes: Sequence[int]) -> str:
    """Return the class of each operand's innermost stride.

    Of several dims all are STRIDED, unless vectors lie at the same places of each row: whole vectors fill a row, and rows lie whole
    vectors apart.
    """
    classes = "".join(
        [
            CONTIGUOUS if row[-1] == size or sizes[-1] == 1 else STRIDED if row[-1] else BROADCAST
            for row, size in zip(strides, itemsizes, strict=True)
        ]
    )
    if len(sizes) == 1:
        return classes
    lanes = lanes_of(classes, itemsizes)
    apart = [
        stride % (lanes * size)
        for row, size, kind in zip(strides, itemsizes, classes, strict=True)
        for stride in row[:-1]
        if kind == CONTIGUOUS
    ]
    return STRIDED * len(strides) if STRIDED in classes or sizes[-1] % lanes or any(apart) else classes


def map_ir(target: Target, kernel: MapKernel) -> str:
    """Write the module of the kernel."""
    body = Kernel(target)
    loop = MapLoop(body, kernel)
    first, step = body.first_and_step()
    loop.write("0", loop.count, first, step)
    return body.ir()


class MapLoop:
    """Writes the loop of an elementwise kernel, for a body."""

    def __init__(self, body: Kernel, kernel: MapKernel):
        self.body, self.kernel = body, kernel
        self.outputs = len(kernel.results)
        operands = len(kernel.itemsizes)
        self.addresses = body.words("p", operands)
        self.numbers = body.words("x", kernel.params)
        self.count = body.parameter("n")
        self.sizes = body.words("d", kernel.dims)
        self.strides = [body.words(f"s{k}", kernel.dims) for k in range(operands)]

    def write(self, begin: str, end: str, first: str, step: str | int) -> None:
        """Compute the elements from `begin` on, before `end`: this thread has number `first` of them, and every `step`-th behind it."""
        body = self.body
        if (lanes := self.kernel.lanes) > 1:
            begin = self._vectors(begin, end, first, step, lanes)
        with body.loop(body.integer("add", begin, first), end, step) as i:
            positions = body.unravel(i, self.sizes, self.kernel.wide)
            places = [
                body.place(address, positions, self._steps(k)) for k, address in enumerate(self.addresses)
            ]
            parts = [part for result in self.kernel.results for part in result.parts]
            values = body.elements(parts, places[self.outputs :], self.numbers)
            body.store(self.kernel.results, places[: self.outputs], values)

    def _steps(self, operand: int, lanes: int = 1) -> list[str | int]:
        """Return the strides of an operand, along the innermost dim those of vectors."""
        kind, strides = self.kernel.classes[operand], self.strides[operand]
        if kind == CONTIGUOUS:
            return [*strides[:-1], self.kernel.itemsizes[operand] * lanes]
        return [*strides[:-1], 0] if kind == BROADCAST else [*strides]

    def _vectors(self, begin: str, end: str, first: str, step: str | int, lanes: int) -> str:
        """Compute whole vectors, if all operands are aligned for them. Returns the first element that no thread has computed."""
        body = self.body
        together = body.integer("and", begin, lanes - 1)
        for k, kind in enumerate(self.kernel.classes):
            if kind == CONTIGUOUS:
                rest = body.integer("and", self.addresses[k], self.kernel.itemsizes[k] * lanes - 1)
                together = body.integer("or", together, rest)
        aligned = body.let(f"icmp eq i64 {together}, 0")
        start = body.integer("sdiv", begin, lanes)
        stop = body.let(f"select i1 {aligned}, i64 {body.integer('sdiv', end, lanes)}, i64 {start}")
        sizes = [*self.sizes[:-1], body.integer("sdiv", self.sizes[-1], lanes)]
        with body.loop(body.integer("add", start, first), stop, step) as i:
            positions = body.unravel(i, sizes, self.kernel.wide)
            places = [
                body.place(address, positions, self._steps(k, lanes))
                for k, address in enumerate(self.addresses)
            ]
            self._vector(places, lanes)
        done = body.integer("mul", body.integer("sub", stop, start), lanes)
        return body.integer("add", begin, done)

    def _vector(self, places: Sequence[str], lanes: int) -> None:
        body = self.body
        leaves = self.kernel.leaves()
        loaded = {leaf: self._load_vector(places, leaf, lanes) for leaf in leaves if leaf.op == "load"}
        numbers = {
            leaf: body.number(self.numbers[leaf.value], leaf.dtype) for leaf in leaves if leaf.op == "param"
        }
        parts = [result.parts[0] for result in self.kernel.results]
        columns = [
            emit(
                body,
                parts,
                {leaf: self._lane(leaf, vector, lane, lanes) for leaf, vector in loaded.items()} | numbers,
            )
            for lane in range(lanes)
        ]
        for k, part in enumerate(parts):
            self._store_vector(places[k], part.dtype, [values[k] for values in columns])

    def _load_vector(self, places: Sequence[str], leaf: Expr, lanes: int) -> str:
        operand = self.outputs + leaf.value
        if self.kernel.classes[operand] == BROADCAST:
            return self.body.read(places[operand], leaf.dtype)
        kind, size = memory_type(leaf.dtype), leaf.dtype.itemsize * lanes
        pointer = self.body.pointer(places[operand])
        return self.body.let(f"load <{lanes} x {kind}>, ptr addrspace(1) {pointer}, align {size}")

    def _lane(self, leaf: Expr, vector: str, lane: int, lanes: int) -> str:
        if self.kernel.classes[self.outputs + leaf.value] == BROADCAST:
            return vector
        return self.body.lane_of(vector, leaf.dtype, lane, lanes)

    def _store_vector(self, place: str, dtype: DType, values: Sequence[str]) -> None:
        body, kind, lanes = self.body, memory_type(dtype), len(values)
        vector = "undef"
        for lane, value in enumerate(values):
            if dtype is bool_:
                value = body.let(f"zext i1 {value} to i8")
            vector = body.let(f"insertelement <{lanes} x {kind}> {vector}, {kind} {value}, i32 {lane}")
        pointer = body.pointer(place)
        body.do(
            f"store <{lanes} x {kind}> {vector}, ptr addrspace(1) {pointer}, align {dtype.itemsize * lanes}"
        )
