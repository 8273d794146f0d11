"""Products of quantized matrices: exact sums of products of bytes, and results that are made of the sums in the same kernel.

With integers a and w, zero points z and y, the sum over the terms of `(a - z) * (w - y)` is

    sum(a * w) - z * sum(w - y) - y * sum(a)

so a kernel multiplies the integers as they are (`engine/byte_gemm.py`), and subtracts one number for each column and one for each row.

Shapes: a [rows, groups * terms], w [groups * columns, terms] -> [rows, groups * columns]; a group of columns multiplies its own terms of a.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.derivative import nondifferentiable
from ...core.dtype import DType, float32, float64, int8, int32
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, address, empty
from ...engine import scalar as s
from ...engine.byte_tiles import QUAD, Epilogue, shape
from ...engine.depthwise import Places, block_channels, weight_order
from ...engine.expr import load, param
from ...engine.workers import get_num_threads
from ...families.map import Map, Types
from ...ops.assembly.padding import constant_pad
from ...ops.creation.from_data import tensor
from .numbers import RANGES, saturated


class Packed(NamedTuple):
    """Holds the second matrix of products, prepared for many of them."""

    integers: Tensor  # int8 [groups * columns, terms]
    sums: Tensor  # int32 [groups * columns], of the integers without their zero points
    zero_points: Tensor | None  # int32 [groups * columns]; None if all are 0
    lines: Tensor | None  # the integers as the kernel reads them; None if the device has no kernel
    groups: int
    terms: int
    columns: int  # of a group
    taps: Tensor | None = (
        None  # where each group has one channel and column, the integers as `engine/depthwise.py` reads them
    )


class Image(NamedTuple):
    """The first matrix of products that are a convolution: see `engine/byte_convolution.py`, and `engine/depthwise.py` for weights with taps."""

    elements: Tensor  # uint8 or int8 [N, *sizes, channels]
    places: Places


def pack(integers: Tensor, zero_points: Tensor | None = None, groups: int = 1) -> Packed:
    """Prepare an int8 matrix [groups * columns, terms]. zero_points: integers [groups * columns]."""
    integers = readable(integers)
    sums = integers.sum(1, dtype=int32)
    if zero_points is not None:
        zero_points = zero_points.to(int32) if zero_points.any() else None
    if zero_points is not None:
        sums = sums - zero_points * integers.shape[1]
    lines = _in_lines(integers, groups) if "byte_products" in integers.device.backend.extras else None
    columns, terms = integers.shape
    return Packed(integers, sums, zero_points, lines, groups, terms, columns // groups)


def _in_lines(integers: Tensor, groups: int) -> Tensor:
    """Quads of terms of as many columns as a line has lanes, side by side; missing terms and columns are 0."""
    lanes, (all_columns, terms) = shape().lanes, integers.shape
    columns = all_columns // groups
    border = [0, -terms % QUAD, 0, -columns % lanes]
    padded = constant_pad(integers.reshape(groups, columns, terms), border, 0)
    quads = padded.reshape(groups * padded.shape[1] // lanes, lanes, padded.shape[2] // QUAD, QUAD).view(
        int32
    )
    return quads.transpose(1, 2).contiguous()


# ---- Elements of results ---------------------------------------------------------------------------------------------


class Formula(NamedTuple):
    """How an element of the result is made of a sum.

    element: a function of the sum, the elements of vectors with one for each column, the same for rows, and numbers.
    """

    element: Callable
    result: DType
    columns: tuple[DType, ...]
    rows: tuple[DType, ...]
    params: tuple[DType, ...]


def _without_points(total, *given):
    """The sum of the products of differences. given: a vector of sums, zero points and their sums if there are any, the zero point of a."""
    if len(given) == 2:
        sums, zero_point = given
        return total - sums * zero_point
    sums, points, row_sums, zero_point = given
    return total - sums * zero_point - points * row_sums


def _quantized(dtype, total, multiplier, addend, zero_point, least):
    value = s.rint((s.cast(total, float32) + addend) * multiplier) + zero_point
    return saturated(s.where(value < least, least, value), dtype)


def _floating(dtype, total, multiplier, addend, low):
    value = s.fma(s.cast(total, float32), multiplier, addend)
    return s.where(value < low, low, value)


@functools.cache
def _formula(finish: Callable | None, result: DType, shifted: bool) -> Formula:
    """finish: of the dtype of the result, the sum, vectors of float32 for columns, and numbers. shifted: whether columns have zero points."""
    vectors, numbers = {None: (0, 0), _quantized: (2, 2), _floating: (2, 1)}[finish]
    own = (int32,) * (1 + shifted)

    def element(total, *given):
        offsets, given = given[: len(own)], given[len(own) :]
        floats, given = given[:vectors], given[vectors:]
        row_sums, given = given[:shifted], given[shifted:]
        total = _without_points(total, *offsets, *row_sums, given[0])
        return total if finish is None else finish(result, total, *floats, *given[1:])

    return Formula(
        element, result, own + (float32,) * vectors, (int32,) * shifted, (int32, *(float32,) * numbers)
    )


@functools.cache
def _epilogue(formula: Formula, signed: bool) -> Epilogue:
    kinds = (int32, *formula.columns, *formula.rows)
    loads = [load(k, kind) for k, kind in enumerate(kinds)]
    numbers = [param(k, kind) for k, kind in enumerate(formula.params)]
    value = s.cast(formula.element(*loads, *numbers), formula.result)
    return Epilogue(value, formula.columns, formula.rows, formula.params, signed)


@functools.cache
def _step(formula: Formula) -> Map:
    """The formula as an elementwise op, for devices without the kernel. float64 holds all of its operands."""
    kinds = (int32, *formula.columns, *formula.rows, *formula.params)

    def element(*operands):
        return formula.element(*(s.cast(each, kind) for each, kind in zip(operands, kinds, strict=True)))

    return Map(
        "requantized", lambda common: Types(float64, formula.result), element, derivative=nondifferentiable
    )


# ---- Products --------------------------------------------------------------------------------------------------------


def _product(
    a: Tensor | Image,
    zero_point: int,
    packed: Packed,
    finish: Callable | None,
    result: DType,
    vectors: Sequence[Tensor] = (),
    numbers: tuple[float, ...] = (),
) -> Tensor:
    """What `finish` makes of each sum of products of differences.

    a: uint8 or int8 [..., groups * terms], with one zero point; or the sums themselves, int32 [..., groups * columns].
    """
    if isinstance(a, Image):
        kernel = _image_kernel(_formula(finish, result, False), a.elements.spec, a.places, packed)
        return kernel(a.elements, zero_point, vectors, numbers)
    if a.dtype is int32:
        return _step(_formula(finish, result, False))(a, packed.sums, *vectors, 0, *numbers)
    groups, terms, across = packed.groups, packed.terms, a.shape[-1]
    if across != groups * terms:
        raise RuntimeError(
            f"quantized product: {list(a.shape)} has {across} terms in a row, and the weight has {groups * terms}"
        )
    a, of_columns, of_rows = readable(a), [packed.sums], []
    if packed.zero_points is not None:
        of_columns.append(packed.zero_points)
        of_rows.append(a.reshape(math.prod(a.shape[:-1]), groups, terms).sum(2, dtype=int32).t())
    formula = _formula(finish, result, packed.zero_points is not None)
    compute = _by_steps if packed.lines is None else _by_kernel
    return compute(formula, a, zero_point, packed, [*of_columns, *vectors], of_rows, numbers)


def readable(tensor: Tensor) -> Tensor:
    """Return the tensor as kernels read it: elements in order, without a pending negation."""
    if tensor.spec.is_contiguous and not tensor.spec.neg:
        return tensor
    return tensor.contiguous().resolve_neg()


def _by_kernel(
    formula: Formula, a: Tensor, zero_point: int, packed: Packed, of_columns, of_rows, numbers
) -> Tensor:
    kernel = _rows_kernel(formula, a.spec, packed.terms, packed.columns, packed.groups, get_num_threads())
    return kernel(a, packed.lines, zero_point, of_columns, of_rows, numbers)


class RowsKernel(NamedTuple):
    """The kernel for rows with one spec: what is decided before their elements are read."""

    target: Spec
    run: Callable[..., None] | None  # of addresses and numbers; None if the result has no elements
    terms: int
    shift: int  # what the kernel adds to each element

    def __call__(self, a: Tensor, lines: Any, zero_point: int, of_columns, of_rows, numbers) -> Tensor:
        target = empty(self.target)
        if self.run is not None:
            if self.shift:
                of_rows = [each + self.shift * self.terms for each in of_rows]
            operands = target, a, lines, *map(readable, (*of_columns, *of_rows))
            self.run(*map(address, operands), zero_point + self.shift, *numbers)
        return target


@functools.lru_cache(maxsize=1024)
def _rows_kernel(
    formula: Formula, rows: Spec, terms: int, columns: int, groups: int, threads: int
) -> RowsKernel:
    *batch, _ = rows.shape
    target, run = contiguous_spec((*batch, groups * columns), formula.result, rows.device), None
    signed = rows.dtype is int8
    if target.numel:
        sizes = math.prod(batch), terms, columns
        run = rows.device.backend.extras["byte_products"](_epilogue(formula, signed), sizes, groups)
    return RowsKernel(target, run, terms, 128 * signed)


class ImageKernel(NamedTuple):
    """The kernel for convolutions of images with one spec: what is decided before their elements are read."""

    target: Spec
    run: Callable[..., None] | None  # of addresses and numbers; None if the result has no elements
    constants: tuple[Tensor, Tensor]  # the weight as the kernel reads it, and the sums of its columns
    shift: int  # what the kernel adds to each element

    def __call__(
        self, elements: Tensor, zero_point: int, vectors: Sequence[Tensor], numbers: tuple[float, ...]
    ) -> Tensor:
        target = empty(self.target)
        if self.run is not None:
            operands = target, readable(elements), *self.constants, *map(readable, vectors)
            self.run(*map(address, operands), zero_point + self.shift, *numbers)
        return target


def _image_kernel(formula: Formula, elements: Spec, places: Places, packed: Packed) -> ImageKernel:
    """elements: the spec of the elements of an `Image`, which are contiguous when the kernel reads them."""
    (images, *_, channels), columns = elements.shape, packed.groups * packed.columns
    target = contiguous_spec((images, *places.positions, columns), formula.result, elements.device)
    weight = packed.lines if packed.taps is None else packed.taps
    assert weight is not None
    signed, extras = elements.dtype is int8, elements.device.backend.extras
    epilogue, run = _epilogue(formula, signed), None
    if target.numel and packed.taps is None:
        sizes = images, channels, packed.columns, packed.groups
        run = extras["byte_convolution"](epilogue, sizes, places)
    elif target.numel:
        run = extras["depthwise"](epilogue, images, columns, places)
    return ImageKernel(target, run, (weight, readable(packed.sums)), 128 * signed)


def requantizing_kernel(image: Image, packed: Packed, dtype: DType) -> ImageKernel:
    """Return the kernel of `requantized` for all images with the spec of this one."""
    return _image_kernel(_formula(_quantized, dtype, False), image.elements.spec, image.places, packed)


def in_taps(integers: Tensor) -> Tensor:
    """An int8 weight [channels, taps] as `engine/depthwise.py` reads it."""
    channels, taps = integers.shape
    block = block_channels()
    padded = constant_pad(integers, [0, -taps % QUAD, 0, -channels % block], 0)
    quads = padded.reshape(len(padded) // block, block, padded.shape[1] // QUAD, QUAD).view(int32)
    return quads.index_select(1, tensor(weight_order())).transpose(1, 2).contiguous()


def _by_steps(
    formula: Formula, a: Tensor, zero_point: int, packed: Packed, of_columns, of_rows, numbers
) -> Tensor:
    groups, columns = packed.groups, packed.columns
    rows = a.reshape(math.prod(a.shape[:-1]), groups, packed.terms)
    weight = packed.integers.reshape(groups, columns, packed.terms)
    sums = rows.transpose(0, 1).to(int32) @ weight.mT.to(int32)
    vectors = [each.reshape(groups, 1, columns) for each in of_columns]
    vectors += [each.unsqueeze(2) for each in of_rows]
    made = _step(formula)(sums, *vectors, zero_point, *numbers).transpose(0, 1)
    return made.reshape(*a.shape[:-1], groups * columns)


def sums(a: Tensor | Image, zero_point: int, packed: Packed) -> Tensor:
    """Return the sums over the terms of `(a - zero_point) * (w - its zero point)`, int32, which wrap around."""
    return _product(a, zero_point, packed, None, int32)


def requantized(
    a: Tensor | Image,
    zero_point: int,
    packed: Packed,
    multipliers: Tensor,
    addends: Tensor,
    result: tuple[DType, int],
    relu: bool = False,
) -> Tensor:
    """Compute `(sum + addend) * multiplier`, rounded half to even, plus the zero point of the result, clamped.

    multipliers, addends: float32 [groups * columns]. result: dtype and zero point; with `relu`, nothing is below the zero point.
    """
    dtype, point = result
    numbers = clamping(dtype, point, relu)
    return _product(a, zero_point, packed, _quantized, dtype, (multipliers, addends), numbers)


def clamping(dtype: DType, point: int, relu: bool) -> tuple[int, int]:
    """Return the numbers of `requantized`: the zero point and the least integer of the result."""
    low, _ = RANGES[dtype]
    return point, max(low, point) if relu else low


def floating(
    a: Tensor | Image,
    zero_point: int,
    packed: Packed,
    multipliers: Tensor,
    addends: Tensor,
    relu: bool = False,
) -> Tensor:
    """Compute `sum * multiplier + addend`, rounded once to float32, and 0 in place of negative results with `relu`."""
    low = 0.0 if relu else -math.inf
    return _product(a, zero_point, packed, _floating, float32, (multipliers, addends), (low,))
