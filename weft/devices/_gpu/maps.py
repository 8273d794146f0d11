"""Elementwise kernels: each thread computes some elements, then those that lie as many further on as there are threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtype import DType, bool_
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
    body = Kernel(target)
    loop = MapLoop(body, kernel)
    first, step = body.first_and_step()
    loop.write("0", loop.count, first, step)
    return body.ir()


class MapLoop:
    """The loop of an elementwise kernel, for a body."""

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

    def _steps(self, operand: int) -> Sequence[str | int]:
        kind = self.kernel.classes[operand]
        if kind == CONTIGUOUS:
            return [self.kernel.itemsizes[operand]]
        return [0] if kind == BROADCAST else self.strides[operand]

    def _vectors(self, begin: str, end: str, first: str, step: str | int, lanes: int) -> str:
        """Compute whole vectors, if all operands are aligned for them. Returns the first element that no thread has computed."""
        body = self.body
        starts = {
            k: body.place(self.addresses[k], [begin], [self.kernel.itemsizes[k]])
            for k, kind in enumerate(self.kernel.classes)
            if kind == CONTIGUOUS
        }
        together = "0"
        for k, start in starts.items():
            rest = body.integer("and", start, self.kernel.itemsizes[k] * lanes - 1)
            together = body.integer("or", together, rest)
        aligned = body.let(f"icmp eq i64 {together}, 0")
        vectors = body.integer("sdiv", body.integer("sub", end, begin), lanes)
        whole = body.let(f"select i1 {aligned}, i64 {vectors}, i64 0")
        with body.loop(first, whole, step) as i:
            self._vector(starts, i, lanes)
        return body.integer("add", begin, body.integer("mul", whole, lanes))

    def _vector(self, starts: dict[int, str], i: str, lanes: int) -> None:
        body = self.body
        leaves = self.kernel.leaves()
        loaded = {leaf: self._load_vector(starts, leaf, i, lanes) for leaf in leaves if leaf.op == "load"}
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
            self._store_vector(starts[k], part.dtype, [values[k] for values in columns], i)

    def _load_vector(self, starts: dict[int, str], leaf: Expr, i: str, lanes: int) -> str:
        operand = self.outputs + leaf.value
        if operand not in starts:
            return self.body.read(self.addresses[operand], leaf.dtype)
        size = leaf.dtype.itemsize * lanes
        pointer = self.body.pointer(self.body.place(starts[operand], [i], [size]))
        kind = memory_type(leaf.dtype)
        return self.body.let(f"load <{lanes} x {kind}>, ptr addrspace(1) {pointer}, align {size}")

    def _lane(self, leaf: Expr, vector: str, lane: int, lanes: int) -> str:
        if self.kernel.classes[self.outputs + leaf.value] == BROADCAST:
            return vector
        kind = memory_type(leaf.dtype)
        element = self.body.let(f"extractelement <{lanes} x {kind}> {vector}, i32 {lane}")
        return self.body.let(f"icmp ne i8 {element}, 0") if leaf.dtype is bool_ else element

    def _store_vector(self, start: str, dtype: DType, values: Sequence[str], i: str) -> None:
        body, kind, lanes = self.body, memory_type(dtype), len(values)
        vector = "undef"
        for lane, value in enumerate(values):
            if dtype is bool_:
                value = body.let(f"zext i1 {value} to i8")
            vector = body.let(f"insertelement <{lanes} x {kind}> {vector}, {kind} {value}, i32 {lane}")
        size = dtype.itemsize * lanes
        pointer = body.pointer(body.place(start, [i], [size]))
        body.do(f"store <{lanes} x {kind}> {vector}, ptr addrspace(1) {pointer}, align {size}")
