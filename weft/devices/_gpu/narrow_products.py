"""Matrix products of narrow numbers by small products of warps (`fragments.py`): float8 and int8, and where cuBLAS is not installed also bfloat16
and float16.

An *epilogue* scales the sums and adds a bias before they are rounded, so that they are written once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, float32, int8
from ...core.spec import Spec
from ...engine.convert import convert
from ...engine.expr import Expr, load
from ...engine.kernel import Launch
from ...engine.llvm import emit
from . import cublas
from .fragments import BYTES, DTYPES, ITEMSIZE, Matrix
from .kernel import THREADS
from .squares import FragmentSquares, Warps, large_or_small, squares_of
from .target import Target


class Epilogue(NamedTuple):
    """What is done with a sum: it is multiplied by the scales of its row and of its column, then the bias of its column is added."""

    scaled: bool = False  # by float32
    bias: DType | None = None

    @property
    def operands(self) -> list[tuple[str, DType]]:
        """Whether each operand belongs to a "row" or a "column", and its dtype: the scales of rows, those of columns, the bias."""
        found = [("row", float32), ("column", float32)] if self.scaled else []
        return found if self.bias is None else [*found, ("column", self.bias)]


class NarrowProductKernel(NamedTuple):
    """Everything that the code of a product depends on.

    Arguments: the addresses, also of the operands of the epilogue, the number of products, rows, terms (words), columns, the sizes of the batch,
    then for each operand its strides along the batch and from one row, or column, to the next, and the steps of the operands of the epilogue,
    all in bytes.
    """

    dtype: DType
    right: DType  # of the right operand: the same, or another float8
    result: DType  # float32 or int32, as sums are; that of the operands; with an epilogue any
    batch_dims: int
    by_columns: tuple[
        bool, bool
    ]  # whether the elements of a column of the operand are neighbours, and not those of a row
    warps: Warps
    epilogue: Epilogue = Epilogue()


def narrow_product_ir(target: Target, kernel: NarrowProductKernel) -> str:
    """Write the module of the kernel."""
    body = _NarrowProduct(target, kernel)
    body.write_all()
    return body.ir()


class _NarrowProduct(FragmentSquares):
    def __init__(self, target: Target, kernel: NarrowProductKernel):
        a, b = kernel.by_columns
        super().__init__(target, kernel.dtype, kernel.warps, (not a, b), kernel.right)
        self.kernel = kernel
        self.addresses = self.words("p", 3)
        further = self.words("e", len(kernel.epilogue.operands))
        self.count, self.rows, self.terms, self.columns = (
            self.parameter(name) for name in ("count", "rows", "terms", "columns")
        )
        self.batch = self.words("d", kernel.batch_dims)
        self.strides = [self.words(f"s{k}", kernel.batch_dims + 1) for k in range(3)]
        self.further = list(zip(further, self.words("t", len(further)), strict=True))

    def write_all(self) -> None:
        tall, wide = self.squares(self.rows), self.squares(self.columns)
        each = self.integer("mul", tall, wide)
        with self.loop(self.group(), self.integer("mul", each, self.count), self.groups()) as turn:
            number, square = self.integer("udiv", turn, each), self.integer("urem", turn, each)
            row = self.integer("mul", self.integer("udiv", square, wide), self.side)
            column = self.integer("mul", self.integer("urem", square, wide), self.side)
            result, *operands = self._matrices(number)
            copy = functools.partial(self._copy, operands, (row, column))
            sums = self.square_of(self.terms, copy)
            if self.kernel.epilogue.operands:
                ends = self.rows, self.columns
                self.each_of_square(sums, (row, column), ends, self._finisher(result))
            else:
                for start, left, values in self.corners(sums, row, column):
                    self.store_sums(result, start, left, values, self.kernel.result)

    def _copy(self, operands: Sequence[Matrix], lines: tuple[str, str], first: str) -> None:
        for tile, operand, line, terms_in_rows in zip(
            self.both, operands, lines, self.terms_in_rows, strict=True
        ):
            self.fetch(tile, operand, *((line, first) if terms_in_rows else (first, line)))

    def _finisher(self, result: Matrix) -> Callable[[str, str, Sequence[str]], None]:
        """Code that computes an element of the result from a sum and stores it."""
        scaled, bias = self.kernel.epilogue

        def store(row: str, column: str, values: Sequence[str]) -> None:
            at = {"row": row, "column": column}
            names = {load(0, self.sum_dtype): values[0]}
            operands: list[Expr] = []
            for (line, dtype), (address, step) in zip(
                self.kernel.epilogue.operands, self.further, strict=True
            ):
                leaf = load(len(names), dtype)
                names[leaf] = self.read(self.place(address, [at[line]], [step]), dtype)
                operands.append(convert(leaf, float32))
            finished = convert(load(0, self.sum_dtype), float32)
            for scale in operands[: 2 * scaled]:
                finished = finished * scale
            if bias is not None:
                finished = finished + operands[-1]
            (rounded,) = emit(self, [convert(finished, self.kernel.result)], names)
            place = self.place(result.start, [row, column], [result.step, self.kernel.result.itemsize])
            self.write(place, self.kernel.result, rounded)

        return store

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


# ---- Launches --------------------------------------------------------------------------------------------------------------


def takes(gpu: Any, spec: Spec) -> bool:
    """Whether the kernels multiply these elements on this device."""
    return gpu.runtime.small_products is not None and spec.dtype in DTYPES and not spec.neg


def prepare_narrow_product(
    gpu: Any,
    a: Spec,
    b: Spec,
    result: Spec,
    scales: tuple[Spec, Spec] | None = None,
    bias: Spec | None = None,
) -> Launch:
    """The product of stacks of matrices that `cublas.matrix` describes; the result is contiguous.

    The entry takes (result, a, b, scales of rows, scales of columns, bias), as far as they are given. Scales are one float32, or one for each row
    or column. In matrices of bytes the terms are neighbours, and their number, all steps from one row or column to the next and all addresses are
    even.
    """
    left, right = cublas.matrix(a), cublas.matrix(b)
    if a.dtype in BYTES:  # the terms of a single column are neighbours, too
        right = cublas.Matrix(b.stride[-1], True, ())
    assert left is not None and right is not None
    runtime, batch, (rows, columns) = gpu.runtime, result.shape[:-2], result.shape[-2:]
    products = math.prod(batch)
    warps = large_or_small(gpu, rows, columns, products)
    turned = left.by_columns, right.by_columns
    epilogue = Epilogue(scales is not None, None if bias is None else bias.dtype)
    kernel = NarrowProductKernel(a.dtype, b.dtype, result.dtype, len(batch), turned, warps, epilogue)
    itemsize = a.dtype.itemsize
    words = [products, rows, a.shape[-1] * itemsize // ITEMSIZE, columns, *batch, *result.byte_stride[:-1]]
    for each in (left, right):
        outer = (*[0] * (len(batch) - len(each.steps)), *each.steps, each.leading)
        words += [itemsize * step for step in outer]
    for each in (*(scales or ()), *(() if bias is None else (bias,))):
        words.append(each.dtype.itemsize if each.numel > 1 else 0)
    loaded = runtime.load(narrow_product_ir, kernel)
    letters = "p" * (3 + len(epilogue.operands))
    return runtime.launch(
        loaded, gpu.groups(products * squares_of(warps.side, rows, columns) * THREADS), letters, words
    )


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernels that ops ask for by name."""
    if gpu.runtime.small_products is None:
        return {}
    named: dict[str, Callable] = {
        "takes_bytes": functools.partial(takes_bytes, gpu),
        "byte_product": functools.partial(prepare_narrow_product, gpu),
    }
    if gpu.runtime.blas is None:
        named["product_with_bias"] = functools.partial(prepare_product_with_bias, gpu)
    return named


def takes_bytes(gpu: Any, a: DType, b: DType) -> bool:
    """Whether the kernels multiply bytes of these dtypes: int8, and float8 where the device has instructions for it."""
    if a is b is int8:
        return True
    has_float8 = gpu.runtime.small_products != "tensor cores" or gpu.runtime.capability >= (8, 9)
    return has_float8 and {a, b} <= {*BYTES} - {int8}


def prepare_product_with_bias(gpu: Any, a: Spec, b: Spec, bias: Spec, result: Spec) -> Launch | None:
    """The product of matrices plus a bias of the columns, rounded once: `entry(result, a, b, bias, meta, count)`. None if no kernel computes it."""
    if not takes(gpu, a) or min(a.ndim, b.ndim) < 2 or bias.shape != result.shape[-1:] or bias.neg:
        return None
    if not result.numel or not bias.is_contiguous or cublas.matrix(a) is None or cublas.matrix(b) is None:
        return None
    return prepare_narrow_product(gpu, a, b, result, bias=bias)
