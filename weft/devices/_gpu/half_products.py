"""Matrix products of bfloat16 and float16 by small products of warps (`fragments.py`), where cuBLAS is not installed.

A group computes a square of the result. Its warps, four above each other and two side by side, read their operands from memory of the group.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...core.spec import Spec
from ...engine.kernel import Launch
from .cublas import matrix
from .fragments import COLUMNS, DTYPES, ITEMSIZE, ROWS, TERMS, Fragments, Matrix, Side, Tile
from .kernel import THREADS
from .target import Target

DOWN, ACROSS = 4, 2  # warps of a group
AT_ONCE = 2 * TERMS  # terms that are in memory of the group
SMALL, LARGE = 64, 128  # rows, and columns, of the square of a group
WAVES = 2  # large squares for each multiprocessor, from which on squares are large


class HalfProductKernel(NamedTuple):
    """Everything that the code of a product depends on.

    Arguments: the addresses, the number of products, rows, terms, columns, the sizes of the batch, then for each operand its strides along
    the batch and from one row, or column, to the next, all in bytes.
    """

    dtype: DType
    result: DType  # the same, or float32
    batch_dims: int
    by_columns: tuple[
        bool, bool
    ]  # whether the elements of a column of the operand are neighbours, and not those of a row
    side: int
    tensor_cores: bool


def half_product_ir(target: Target, kernel: HalfProductKernel) -> str:
    """Write the module of the kernel."""
    body = _HalfProduct(target, kernel)
    body.write_all()
    return body.ir()


class _HalfProduct(Fragments):
    def __init__(self, target: Target, kernel: HalfProductKernel):
        super().__init__(target, kernel.dtype, kernel.tensor_cores)
        self.kernel = kernel
        self.addresses = self.words("p", 3)
        self.count, self.rows, self.terms, self.columns = (
            self.parameter(name) for name in ("count", "rows", "terms", "columns")
        )
        self.batch = self.words("d", kernel.batch_dims)
        self.strides = [self.words(f"s{k}", kernel.batch_dims + 1) for k in range(3)]

    def write_all(self) -> None:
        side = self.kernel.side
        tall, wide = (
            self.integer("udiv", self.integer("add", size, side - 1), side)
            for size in (self.rows, self.columns)
        )
        each = self.integer("mul", tall, wide)
        tiles = [self._tile(terms_in_rows) for terms_in_rows in self._terms_in_rows]
        down, across = self._own(DOWN, "udiv"), self._own(ACROSS, "urem")
        left_side = self.left_side(tiles[0], self._terms_in_rows[0], down)
        right_side = self.right_side(tiles[1], self._terms_in_rows[1], across)
        with self.loop(self.group(), self.integer("mul", each, self.count), self.groups()) as turn:
            number, square = self.integer("udiv", turn, each), self.integer("urem", turn, each)
            row = self.integer("mul", self.integer("udiv", square, wide), side)
            column = self.integer("mul", self.integer("urem", square, wide), side)
            result, *operands = self._matrices(number)
            sums = [self.new_sums(side // ACROSS) for _ in range(side // DOWN // ROWS)]
            with self.loop(0, self.terms, AT_ONCE) as first:
                self.barrier()
                for k, line in enumerate((row, column)):
                    corner = (line, first) if self._terms_in_rows[k] else (first, line)
                    self.fetch(tiles[k], operands[k], *corner)
                self.barrier()
                self._multiply_tiles(sums, left_side, right_side)
            for k, own in enumerate(sums):
                start = self.integer("add", row, self.integer("add", down, ROWS * k))
                left = self.integer("add", column, across)
                self.store_sums(result, start, left, self.sums_of(own), self.kernel.result)

    @property
    def _terms_in_rows(self) -> tuple[bool, bool]:
        """Whether the rows of the tiles of A and B have terms."""
        a, b = self.kernel.by_columns
        return not a, b

    def _tile(self, terms_in_rows: bool) -> Tile:
        sizes = self.kernel.side, AT_ONCE
        return self.tile(*(sizes if terms_in_rows else reversed(sizes)))

    def _own(self, warps: int, part: str) -> str:
        """The first row, or column, of this warp in the square."""
        return self.integer("mul", self.integer(part, self.warp, ACROSS), self.kernel.side // warps)

    def _matrices(self, number: str) -> list[Matrix]:
        """The result and the operands of a product of the batch, as they lie in memory."""
        positions = self.unravel(number, self.batch, wide=True)
        sizes = [(self.rows, self.columns), (self.rows, self.terms), (self.terms, self.columns)]
        found = []
        turned = (False, *self.kernel.by_columns)
        for address, (*batch, step), size, by_columns in zip(
            self.addresses, self.strides, sizes, turned, strict=True
        ):
            rows, columns = reversed(size) if by_columns else size
            found.append(Matrix(self.place(address, positions, batch), step, rows, columns))
        return found

    def _multiply_tiles(self, sums: list[list[list[str]]], left_side: Side, right_side: Side) -> None:
        for term in range(0, AT_ONCE, TERMS):
            right = self.right(right_side, COLUMNS * len(sums[0]), term)
            for k, own in enumerate(sums):
                self.multiply(own, self.left(left_side, ROWS * k, term), right)


def takes(gpu: Any, spec: Spec) -> bool:
    """Whether the kernels multiply these elements on this device."""
    return gpu.runtime.small_products is not None and spec.dtype in DTYPES and not spec.neg


def prepare_half_product(gpu: Any, a: Spec, b: Spec, result: Spec) -> Launch:
    """The product of stacks of matrices that `cublas.matrix` describes; the result is contiguous."""
    left, right = matrix(a), matrix(b)
    assert left is not None and right is not None
    runtime, batch, (rows, columns) = gpu.runtime, result.shape[:-2], result.shape[-2:]
    products = math.prod(batch)

    def squares(side: int) -> int:
        return products * -(-rows // side) * -(-columns // side)

    side = LARGE if squares(LARGE) >= WAVES * runtime.multiprocessors else SMALL
    turned, tensor_cores = (left.by_columns, right.by_columns), runtime.small_products == "tensor cores"
    kernel = HalfProductKernel(a.dtype, result.dtype, len(batch), turned, side, tensor_cores)
    words = [products, rows, a.shape[-1], columns, *batch, *result.byte_stride[:-1]]
    for each in (left, right):
        outer = (*[0] * (len(batch) - len(each.steps)), *each.steps, each.leading)
        words += [ITEMSIZE * step for step in outer]
    loaded = runtime.load(half_product_ir, kernel)
    return runtime.launch(loaded, gpu.groups(squares(side) * THREADS), "ppp", words)
