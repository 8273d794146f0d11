"""Matrix products by tiles: a group computes a square of the result from squares of both operands in its shared memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, compute_type
from ...core.spec import Spec, contiguous_spec, make_spec
from ...engine.convert import convert
from ...engine.expr import load
from ...engine.kernel import Launch
from ...engine.llvm import emit
from . import cublas, narrow_products
from .arithmetic import Arithmetic, Number, plus_product
from .kernel import THREADS, Kernel
from .squares import Element, Squares
from .target import Target

SIDE = 16  # a group is a square of threads
EACH = 4  # rows, and columns, that a thread computes
TILE = SIDE * EACH
TERMS = 16  # that are in shared memory at once
LINE = (
    TILE + 1
)  # elements of a term there; so the threads that store neighbouring terms of a row use different banks of this memory


class ProductKernel(NamedTuple):
    """Everything that the code of a product depends on.

    Arguments: the addresses, the number of products, rows, terms, columns, the sizes of the batch, then for each operand its strides along
    the batch and its two strides, all in bytes.
    """

    dtype: DType
    batch_dims: int


def product_ir(target: Target, kernel: ProductKernel) -> str:
    """Write the module of the kernel."""
    return _Product(target, kernel).ir()


class Tiles(Arithmetic, Squares):
    """Squares of any numbers. Each thread has every SIDE-th row and column of a square."""

    side, at_once = TILE, TERMS

    def __init__(self, target: Target, dtype: DType):
        super().__init__(target, dtype)
        self.rooms = [self.room(LINE * TERMS) for _ in range(2)]
        self.own = self.thread()
        self.down, self.across = self.integer("udiv", self.own, SIDE), self.integer("urem", self.own, SIDE)

    def new_square(self) -> list[str]:
        return [variable for _ in range(EACH * EACH) for variable in self.zeros()]

    def lines_and_terms(self) -> Iterator[tuple[str, str]]:
        """The rows, or columns, and the terms of a square in memory of the group that this thread copies: neighbouring threads have neighbouring rows."""
        for j in range(TILE * TERMS // THREADS):
            element = self.integer("add", self.own, THREADS * j)
            yield self.integer("urem", element, TILE), self.integer("udiv", element, TILE)

    def fill(self, operand: int, i: str, term: str, value: Number) -> None:
        """Store an element of row (operand 0) or column (operand 1) `i` of the tile."""
        slot = self.integer("add", self.integer("mul", term, LINE), i)
        self.put_number(self.rooms[operand], slot, value)

    def fetch_elements(self, dtype: DType, elements: Sequence[Element]) -> None:
        for each in elements:
            (value,) = self.zeros()
            with self.when(each.inside):
                self.set(value, self.kind, read_wide(self, each.place, dtype))
            self.fill(each.operand, each.line, each.term, (self.get(value, self.kind),))

    def multiply_square(self, sums: Sequence[str]) -> None:
        with self.loop(0, TERMS) as term:
            line = self.integer("mul", term, LINE)
            left, right = (
                [
                    self.take_number(room, self.integer("add", line, self.integer("add", start, SIDE * k)))
                    for k in range(EACH)
                ]
                for room, start in zip(self.rooms, (self.down, self.across), strict=True)
            )
            for i in range(EACH):
                for j in range(EACH):
                    mine = self._sum_of(sums, i, j)
                    after = self.compute(plus_product, self.get_number(mine), left[i], right[j])
                    self.set_number(mine, after)

    def _sum_of(self, sums: Sequence[str], i: int, j: int) -> Sequence[str]:
        return sums[(i * EACH + j) * self.parts : (i * EACH + j + 1) * self.parts]

    def each_of_square(
        self, sums: Sequence[str], first: tuple[str, str], ends: tuple[str, str], store: Callable
    ) -> None:
        for i in range(EACH):
            for j in range(EACH):
                row, column = (
                    self.integer("add", start, self.integer("add", own, SIDE * k))
                    for start, own, k in zip(first, (self.down, self.across), (i, j), strict=True)
                )
                inside = [
                    self.let(f"icmp slt i64 {at}, {end}") for at, end in zip((row, column), ends, strict=True)
                ]
                with self.when(self.let(f"and i1 {inside[0]}, {inside[1]}")):
                    store(row, column, self.get_number(self._sum_of(sums, i, j)))


def read_wide(body: Kernel, address: str, dtype: DType) -> str:
    """The element at an address, in the dtype that it is computed in."""
    leaf = load(0, dtype)
    return emit(body, [convert(leaf, compute_type(dtype))], {leaf: body.read(address, dtype)})[0]


class _Product(Tiles):
    def __init__(self, target: Target, kernel: ProductKernel):
        super().__init__(target, kernel.dtype)
        self.result, *self.operands = self.words("p", 3)
        self.count, self.rows, self.terms, self.columns = (
            self.parameter(name) for name in ("count", "rows", "terms", "columns")
        )
        self.batch = self.words("d", kernel.batch_dims)
        self.strides = [self.words(f"s{k}", kernel.batch_dims + 2) for k in range(3)]
        self._write()

    def _write(self) -> None:
        tall, wide = self.squares(self.rows), self.squares(self.columns)
        each = self.integer("mul", tall, wide)
        with self.loop(self.group(), self.integer("mul", each, self.count), self.groups()) as turn:
            batch, tile = self.integer("udiv", turn, each), self.integer("urem", turn, each)
            row = self.integer("mul", self.integer("udiv", tile, wide), TILE)
            column = self.integer("mul", self.integer("urem", tile, wide), TILE)
            positions = self.unravel(batch, self.batch, wide=True)
            result, *operands = (
                self.place(address, positions, strides[:-2])
                for address, strides in zip([self.result, *self.operands], self.strides, strict=True)
            )
            sums = self.square_of(self.terms, functools.partial(self._fetch, operands, row, column))
            self.each_of_square(
                sums, (row, column), (self.rows, self.columns), functools.partial(self._store, result)
            )

    def _fetch(self, operands: Sequence[str], row: str, column: str, first: str) -> None:
        """Copy the squares of both operands, with zeros beyond their edges."""
        for j in range(TILE * TERMS // THREADS):
            element = self.integer("add", self.own, THREADS * j)
            i, term = self.integer("udiv", element, TERMS), self.integer("urem", element, TERMS)
            self._fetch_one(0, operands[0], (row, i, self.rows), (first, term, self.terms), i, term)
            i, term = self.integer("urem", element, TILE), self.integer("udiv", element, TILE)
            self._fetch_one(1, operands[1], (first, term, self.terms), (column, i, self.columns), i, term)

    def _fetch_one(
        self,
        operand: int,
        start: str,
        down: tuple[str, str, str],
        across: tuple[str, str, str],
        i: str,
        term: str,
    ) -> None:
        position = [self.integer("add", first, step) for first, step, _ in (down, across)]
        inside = [
            self.let(f"icmp slt i64 {at}, {size}")
            for at, (_, _, size) in zip(position, (down, across), strict=True)
        ]
        values = self.zeros()
        with self.when(self.let(f"and i1 {inside[0]}, {inside[1]}")):
            place = self.place(start, position, self.strides[operand + 1][-2:])
            self.set_number(values, self.read_number(place))
        self.fill(operand, i, term, self.get_number(values))

    def _store(self, result: str, row: str, column: str, value: Number) -> None:
        self.write_number(self.place(result, [row, column], self.strides[0][-2:]), value)


def operand(gpu: Any, spec: Spec) -> Spec:
    """The spec that an operand has to be copied to; its own if it need not."""
    if _by_library(gpu, spec) or narrow_products.takes(gpu, spec):
        fits = cublas.matrix(_matrices(spec, is_row=False)) is not None
        return spec if fits else contiguous_spec(spec.shape, spec.dtype, spec.device)
    dtype = compute_type(spec.dtype)
    if dtype is spec.dtype and not spec.conj and not spec.neg:
        return spec
    return contiguous_spec(spec.shape, dtype, spec.device)


def prepare_product(gpu: Any, a: Spec, b: Spec, result: Spec) -> Launch:
    """See `devices/base.py`. As in NumPy, an operand with one dim is a row on the left and a column on the right."""
    left, right = _matrices(a, is_row=True), _matrices(b, is_row=False)
    to = contiguous_spec(
        (
            *result.shape[: len(result.shape) - (len(a.shape) > 1) - (len(b.shape) > 1)],
            left.shape[-2],
            right.shape[-1],
        ),
        result.dtype,
        result.device,
    )
    if _by_library(gpu, a):
        return gpu.runtime.blas.prepare(left, right, to)
    if narrow_products.takes(gpu, a):
        return narrow_products.prepare_narrow_product(gpu, left, right, to)
    return _by_tiles(gpu, left, right, to)


def _by_library(gpu: Any, spec: Spec) -> bool:
    return gpu.runtime.blas is not None and cublas.takes(spec)


def _matrices(spec: Spec, is_row: bool) -> Spec:
    """Return the spec itself, or that of a vector as a matrix of one row or one column."""
    if len(spec.shape) > 1:
        return spec
    (size,), (step,) = spec.shape, spec.stride
    sizes, strides = ((1, size), (step * size, step)) if is_row else ((size, 1), (step, 1))
    return make_spec(sizes, strides, spec.dtype, spec.device)


def _by_tiles(gpu: Any, a: Spec, b: Spec, result: Spec) -> Launch:
    batch = result.shape[:-2]
    rows, columns, terms = result.shape[-2], result.shape[-1], a.shape[-1]
    kernel = ProductKernel(a.dtype, len(batch))
    words = [math.prod(batch), rows, terms, columns, *batch]
    for each in (result, a, b):
        own = [0 if size == 1 else step for size, step in zip(each.shape, each.byte_stride, strict=True)]
        words += [*[0] * (len(result.shape) - len(own)), *own]
    tiles = -(-rows // TILE) * -(-columns // TILE) * math.prod(batch)
    runtime = gpu.runtime
    loaded = runtime.load(product_ir, kernel)
    return runtime.launch(loaded, gpu.groups(tiles * THREADS), "ppp", words)
