"""Convolutions without copies of patches: each element of the input is read where the window finds it.

A group of threads computes a square of the result from squares of the weight and of the source in its memory, of float16 and bfloat16 by tensor
cores where there are some (`squares.py`). Rows are channels of the result,
columns its positions in all images, terms channels of the source, one place of the window after the other. With few rows most of a square
would be empty, so each thread computes an element by itself.

The names of `ops/nn/conv_products.py`: `sums` are a convolution, or its adjoint in the input; `products` are its adjoint in the weight.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, bfloat16, compute_type, float16, float32, float64
from ...engine.convert import convert
from ...engine.expr import fma, load
from ...engine.kernel import Launch
from ...engine.llvm import constant, emit, value_type
from . import fragments
from .kernel import THREADS, Kernel, is_wide
from .products import TERMS, TILE, Tiles, read_wide
from .squares import SMALL, Element, FragmentSquares, Squares, Warps, large_or_small, squares_of
from .target import Target

assert SMALL == TILE  # so that as many small squares of warps cover the sums as squares of threads
DTYPES = (float32, float64, float16, bfloat16)
FEWEST = 16  # rows of a group of channels for which squares are computed
# How a convolution is computed.
ELEMENTS = "elements"  # each thread by itself
PLACES = "places"  # squares whose terms are channels at one place of the window
CHANNELS = "channels"  # squares whose terms are channels at all places, for few channels


class Window:
    """How the window moves, for a body: the words for it, and where it finds elements."""

    def __init__(self, body: Kernel, dims: int, adjoint: bool):
        self.body, self.adjoint = body, adjoint
        self.sizes, self.source, self.kernel, self.stride, self.dilation, self.before = (
            body.words(name, dims) for name in ("to", "from", "kernel", "stride", "dilation", "before")
        )

    def found(
        self, start: str, steps: Sequence[str], positions: Sequence[str], tap: Sequence[str]
    ) -> tuple[str, str]:
        """The address of the element that a position of the result finds at a place of the window, and whether there is one."""
        body, coordinates, inside = self.body, [], "true"
        for at, k, gap, stride, before, size in zip(
            positions, tap, self.dilation, self.stride, self.before, self.source, strict=True
        ):
            moved = body.integer("sub", body.integer("mul", k, gap), before)
            if self.adjoint:  # the positions of the window that cover this element
                whole = body.integer("sub", at, moved)
                place = body.integer("sdiv", whole, stride)
                exact = body.let(f"icmp eq i64 {body.integer('mul', place, stride)}, {whole}")
                inside = body.let(f"and i1 {inside}, {exact}")
            else:
                place = body.integer("add", body.integer("mul", at, stride), moved)
            inside = body.let(f"and i1 {inside}, {body.let(f'icmp ult i64 {place}, {size}')}")
            coordinates.append(place)
        return body.place(start, coordinates, steps), inside


def write_narrow(body: Kernel, address: str, dtype: DType, value: str) -> None:
    """Store what was computed, rounded to a dtype."""
    leaf = load(0, compute_type(dtype))
    body.write(address, dtype, emit(body, [convert(leaf, dtype)], {leaf: value})[0])


def sum_of(body: Kernel, dtype: DType, before: str, a: str, b: str) -> str:
    """Return `before + a * b`, rounded once."""
    leaves = [load(k, dtype) for k in range(3)]
    return emit(body, [fma(leaves[1], leaves[2], leaves[0])], dict(zip(leaves, (before, a, b), strict=True)))[
        0
    ]


class SumsKernel(NamedTuple):
    """Everything that the code of a convolution, or of its adjoint in the input, depends on.

    Arguments: the addresses of the result, the source, the weight and the bias; images, groups, rows and terms of a group, places of the window,
    columns of an image; the steps of the weight along groups, rows, terms and places; the words of `Window`; for squares of the adjoint the
    phases of all dims, and the columns of a phase along each dim; then the strides of the result and of the source along images, channels and the
    other dims, all steps and strides in bytes.

    An element of the adjoint is covered by places of the window whose distance is a multiple of the stride. So all columns of a square have one
    *phase*, the remainder of their position: they are covered by the same places, and other places are left out.
    """

    dtype: DType
    dims: int
    adjoint: bool
    has_bias: bool
    form: str  # ELEMENTS, PLACES or CHANNELS
    wide: bool  # positions need 64 bits
    warps: Warps | None  # that compute squares; None: threads do

    @property
    def has_phases(self) -> bool:
        return self.adjoint and self.form != ELEMENTS


class _Sums:
    """The words of a convolution, and what both of its forms do, for a body."""

    def __init__(self, body: Kernel, kernel: SumsKernel):
        self.body, self.kernel, self.compute = body, kernel, compute_type(kernel.dtype)
        self.result, self.source, self.weight, self.bias = body.words("p", 4)
        self.images, self.groups, self.rows, self.terms, self.taps, self.columns = (
            body.parameter(name) for name in ("images", "groups", "rows", "terms", "taps", "columns")
        )
        self.weight_steps = body.words("w", 4)
        self.window = Window(body, kernel.dims, kernel.adjoint)
        if kernel.has_phases:
            self.phases, self.folded = body.parameter("phases"), body.words("folded", kernel.dims)
        self.result_steps, self.source_steps = (body.words(name, kernel.dims + 2) for name in ("r", "s"))

    def tap(self, number: str) -> list[str]:
        return self.body.unravel(number, self.window.kernel, wide=False)

    def channel(self, group: str, row: str) -> str:
        """A channel of the result."""
        return self.body.integer("add", self.body.integer("mul", group, self.rows), row)

    def start(self, image: str, group: str) -> str:
        """The address of the first element that a group of channels reads of an image."""
        first = self.body.integer("mul", group, self.terms)
        return self.body.place(self.source, [image, first], self.source_steps[:2])

    def store(self, group: str, row: str, image: str, at: Sequence[str], value: str) -> None:
        """Add the bias, and store an element."""
        body, dtype, channel = self.body, self.kernel.dtype, self.channel(group, row)
        if self.kernel.has_bias:
            bias = read_wide(body, body.place(self.bias, [channel], [dtype.itemsize]), dtype)
            value = body.let(f"fadd {value_type(self.compute)} {value}, {bias}")
        write_narrow(body, body.place(self.result, [image, channel, *at], self.result_steps), dtype, value)


def sums_ir(target: Target, kernel: SumsKernel) -> str:
    """Return the module of the kernel."""
    if kernel.form != ELEMENTS:
        squares: _SumsBySquares
        if kernel.warps is None:
            squares = _SumsByTiles(target, compute_type(kernel.dtype))
        else:
            squares = _SumsByWarps(target, kernel.dtype, kernel.warps, (True, False))
        squares.write_all(kernel)
        return squares.ir()
    body = Kernel(target)
    _sums_by_elements(body, _Sums(body, kernel))
    return body.ir()


def _sums_by_elements(body: Kernel, sums: _Sums) -> None:
    """Each thread computes elements of the result."""
    dtype, compute, kind = sums.kernel.dtype, sums.compute, value_type(sums.compute)
    first, step = body.first_and_step()
    channels = body.integer("mul", sums.groups, sums.rows)
    count = body.integer("mul", channels, body.integer("mul", sums.images, sums.columns))
    with body.loop(first, count, step) as i:
        sizes = [sums.images, channels, *sums.window.sizes]
        image, channel, *at = body.unravel(i, sizes, sums.kernel.wide)
        group, row = body.integer("udiv", channel, sums.rows), body.integer("urem", channel, sums.rows)
        start, total = sums.start(image, group), body.variable(kind, constant(compute, 0))
        with body.loop(0, sums.taps) as tap:
            found, inside = sums.window.found(start, sums.source_steps[2:], at, sums.tap(tap))
            with body.when(inside), body.loop(0, sums.terms) as term:
                weight = body.place(sums.weight, [group, row, term, tap], sums.weight_steps)
                a = read_wide(body, weight, dtype)
                b = read_wide(body, body.place(found, [term], sums.source_steps[1:2]), dtype)
                body.set(total, kind, sum_of(body, compute, body.get(total, kind), a, b))
        sums.store(group, row, image, at, body.get(total, kind))


class _SumsBySquares(Squares):
    def write_all(self, kernel: SumsKernel) -> None:
        self.kernel, self.words_of = kernel, _Sums(self, kernel)
        self.all_columns = self.integer("mul", self.words_of.images, self.words_of.columns)
        own = self.words_of
        sizes = [own.groups, self.squares(self.all_columns), self.squares(own.rows)]
        if self.kernel.has_phases:
            sizes = [own.phases, *sizes]
        count = functools.reduce(lambda a, b: self.integer("mul", a, b), sizes)
        with self.loop(self.group(), count, self.groups()) as turn:
            # Neighbouring groups of threads have the same columns, so that they find the same elements of the source in the cache.
            *phase, group, across, tall = self.unravel(turn, sizes, wide=False)
            phases = self.unravel(phase[0], own.window.stride, wide=False) if phase else []
            row, column = (self.integer("mul", each, self.side) for each in (tall, across))
            sums = self.new_square()
            self._add_up(sums, group, (row, column), phases)
            store = functools.partial(self._store, group, phases)
            self.each_of_square(sums, (row, column), (own.rows, self.all_columns), store)

    def _positions(self, column: str, phases: Sequence[str]) -> tuple[str, list[str], str]:
        """The image of a column, its position there, and whether it is one: the last column of a phase may lie beyond the edge."""
        window = self.words_of.window
        sizes = self.words_of.folded if phases else window.sizes
        image, *at = self.unravel(column, [self.words_of.images, *sizes], self.kernel.wide)
        inside = self.let(f"icmp slt i64 {column}, {self.all_columns}")
        if phases:
            at = [
                self.integer("add", self.integer("mul", place, stride), phase)
                for place, stride, phase in zip(at, window.stride, phases, strict=True)
            ]
            for place, size in zip(at, window.sizes, strict=True):
                inside = self.let(f"and i1 {inside}, {self.let(f'icmp slt i64 {place}, {size}')}")
        return image, at, inside

    def _store(self, group: str, phases: Sequence[str], row: str, column: str, values: Sequence[str]) -> None:
        image, at, inside = self._positions(column, phases)
        with self.when(inside):
            self.words_of.store(group, row, image, at, values[0])

    def _add_up(self, sums: Any, group: str, first: tuple[str, str], phases: Sequence[str]) -> None:
        own = self.words_of
        row, column = first
        self.mine, self.lane = (self.integer(how, self.own, self.side) for how in ("urem", "udiv"))
        # The column that this thread copies.
        image, at, exists = self._positions(self.integer("add", column, self.mine), phases)
        start = own.start(image, group)
        weight = self.place(own.weight, [group, row], own.weight_steps[:2])
        rows = self.integer("sub", own.rows, row)
        if self.kernel.form == CHANNELS:
            terms = self.integer("mul", own.taps, own.terms)
            with self.loop(0, terms, self.at_once) as begin:
                self._square(
                    sums, (weight, rows), begin, terms, lambda term: self._anywhere(start, at, exists, term)
                )
            return
        with self.loop(0, own.taps) as tap:
            places = own.tap(tap)
            found, inside = own.window.found(start, own.source_steps[2:], at, places)
            inside = self.let(f"and i1 {inside}, {exists}")
            here = self.place(weight, [tap], own.weight_steps[3:])
            with self.when(self._covers(places, phases)), self.loop(0, own.terms, self.at_once) as begin:
                self._square(
                    sums,
                    (here, rows),
                    begin,
                    own.terms,
                    lambda term: (self.place(found, [term], own.source_steps[1:2]), inside),
                )

    def _covers(self, places: Sequence[str], phases: Sequence[str]) -> str:
        """Whether a place of the window covers the elements of a phase. All threads of a group find the same."""
        window, fits = self.words_of.window, "true"
        for k, gap, stride, before, phase in zip(
            places, window.dilation, window.stride, window.before, phases, strict=False
        ):
            whole = self.integer("sub", self.integer("add", phase, before), self.integer("mul", k, gap))
            rest = self.integer("srem", whole, stride)
            fits = self.let(f"and i1 {fits}, {self.let(f'icmp eq i64 {rest}, 0')}")
        return fits

    def _anywhere(self, start: str, at: Sequence[str], exists: str, number: str) -> tuple[str, str]:
        """The element that a term, a channel at some place of the window, finds for this thread's column."""
        own = self.words_of
        tap, term = self.integer("udiv", number, own.terms), self.integer("urem", number, own.terms)
        found, inside = own.window.found(start, own.source_steps[2:], at, own.tap(tap))
        return self.place(found, [term], own.source_steps[1:2]), self.let(f"and i1 {inside}, {exists}")

    def _square(self, sums: Any, weight: tuple[str, str], begin: str, end: str, find: Callable) -> None:
        """Copy the terms from `begin` on, and add up their products. weight: the address of the first row, and how many rows are left."""
        elements = []
        for j in range(self.side * self.at_once // THREADS):
            elements.append(self._weight(*weight, begin, end, self.integer("add", self.own, THREADS * j)))
            term = self.integer("add", self.lane, j * THREADS // self.side)
            at = self.integer("add", begin, term)
            place, inside = find(at)
            inside = self.let(f"and i1 {inside}, {self.let(f'icmp slt i64 {at}, {end}')}")
            elements.append(Element(1, self.mine, term, place, inside, self.words_of.source))
        self.add_elements(sums, self.kernel.dtype, elements)

    def _weight(self, start: str, rows: str, begin: str, end: str, element: str) -> Element:
        own = self.words_of
        row, term = (self.integer(how, element, self.at_once) for how in ("udiv", "urem"))
        at = self.integer("add", begin, term)
        inside = [self.let(f"icmp slt i64 {each}, {limit}") for each, limit in ((row, rows), (at, end))]
        _, of_row, of_term, of_tap = own.weight_steps
        if self.kernel.form == CHANNELS:
            tap, number = self.integer("udiv", at, own.terms), self.integer("urem", at, own.terms)
            place = self.place(start, [row, number, tap], [of_row, of_term, of_tap])
        else:
            place = self.place(start, [row, at], [of_row, of_term])
        return Element(0, row, term, place, self.let(f"and i1 {inside[0]}, {inside[1]}"), own.weight)


class _SumsByTiles(_SumsBySquares, Tiles):
    """Squares of the result of which threads compute the elements."""


class _SumsByWarps(_SumsBySquares, FragmentSquares):
    """Squares of a result of narrow numbers, by small products of warps."""


class ProductsKernel(NamedTuple):
    """Everything that the code of the adjoint of a convolution in the weight depends on.

    Arguments: the addresses of the sums, the input and the cotangent; images, images of a part, parts, groups, rows and channels of a group, places
    of the window, positions of an image; the words of `Window`; then the strides of the input and of the cotangent in bytes. The sums of each
    part are contiguous, [parts, groups * rows, channels, *kernel], in the dtype that is computed in.
    """

    dtype: DType
    dims: int
    by_squares: bool
    wide: bool
    warps: Warps | None  # that compute squares; None: threads do


class _Products:
    """The words of a sum of products, and what both of its forms do, for a body. A column is a place of the window and a channel."""

    def __init__(self, body: Kernel, kernel: ProductsKernel):
        self.body, self.kernel, self.compute = body, kernel, compute_type(kernel.dtype)
        self.result, self.input, self.cotangent = body.words("p", 3)
        names = "images", "together", "parts", "groups", "rows", "channels", "taps", "count"
        (
            self.images,
            self.together,
            self.parts,
            self.groups,
            self.rows,
            self.channels,
            self.taps,
            self.count,
        ) = (body.parameter(name) for name in names)
        self.window = Window(body, kernel.dims, adjoint=False)
        self.input_steps, self.cotangent_steps = (body.words(name, kernel.dims + 2) for name in ("i", "c"))

    def columns(self) -> str:
        return self.body.integer("mul", self.taps, self.channels)

    def terms(self, part: str) -> tuple[str, str]:
        """The first image of a part, and how many positions all its images have."""
        body, first = self.body, self.body.integer("mul", part, self.together)
        images = body.minimum(self.together, body.integer("sub", self.images, first))
        return first, body.integer("mul", images, self.count)

    def term(self, first: str, number: str) -> tuple[str, list[str]]:
        """The image and the position of a term."""
        image, *at = self.body.unravel(number, [self.images, *self.window.sizes], self.kernel.wide)
        return self.body.integer("add", first, image), at

    def column(self, number: str) -> tuple[str, str]:
        """The place of the window and the channel of a column."""
        return self.body.integer("udiv", number, self.channels), self.body.integer(
            "urem", number, self.channels
        )

    def of_cotangent(self, group: str, row: str, image: str, at: Sequence[str]) -> str:
        """Return the address of an element of the cotangent."""
        channel = self.body.integer("add", self.body.integer("mul", group, self.rows), row)
        return self.body.place(self.cotangent, [image, channel, *at], self.cotangent_steps)

    def of_input(self, group: str, image: str, at: Sequence[str], tap: str, channel: str) -> tuple[str, str]:
        """The address of an element of the input, and whether there is one."""
        body = self.body
        channel = body.integer("add", body.integer("mul", group, self.channels), channel)
        start = body.place(self.input, [image, channel], self.input_steps[:2])
        places = body.unravel(tap, self.window.kernel, wide=False)
        return self.window.found(start, self.input_steps[2:], at, places)

    def store(self, part: str, group: str, row: str, column: str, value: str) -> None:
        body, (tap, channel) = self.body, self.column(column)
        at = part
        for size, place in (
            (self.groups, group),
            (self.rows, row),
            (self.channels, channel),
            (self.taps, tap),
        ):
            at = body.integer("add", body.integer("mul", at, size), place)
        body.write(body.place(self.result, [at], [self.compute.itemsize]), self.compute, value)


def products_ir(target: Target, kernel: ProductsKernel) -> str:
    """Return the module of the kernel."""
    if kernel.by_squares:
        squares: _ProductsBySquares
        if kernel.warps is None:
            squares = _ProductsByTiles(target, compute_type(kernel.dtype))
        else:
            squares = _ProductsByWarps(target, kernel.dtype, kernel.warps, (True, True))
        squares.write_all(kernel)
        return squares.ir()
    body = Kernel(target)
    _products_by_groups(body, _Products(body, kernel))
    return body.ir()


def _products_by_groups(body: Kernel, own: _Products) -> None:
    """Each group of threads adds up the products of one element of the weight, in a fixed tree."""
    dtype, compute, kind = own.kernel.dtype, own.compute, value_type(own.compute)
    room, thread = body.shared(compute, THREADS), body.thread()
    sizes = [own.parts, own.groups, own.rows, own.columns()]
    count = functools.reduce(lambda a, b: body.integer("mul", a, b), sizes)
    with body.loop(body.group(), count, body.groups()) as turn:
        part, group, row, column = body.unravel(turn, sizes, own.kernel.wide)
        (first, terms), (tap, channel) = own.terms(part), own.column(column)
        total = body.variable(kind, constant(compute, 0))
        with body.loop(thread, terms, THREADS) as number:
            image, at = own.term(first, number)
            found, inside = own.of_input(group, image, at, tap, channel)
            with body.when(inside):
                a = read_wide(body, own.of_cotangent(group, row, image, at), dtype)
                b = read_wide(body, found, dtype)
                body.set(total, kind, sum_of(body, compute, body.get(total, kind), a, b))
        half = THREADS // 2
        body.barrier()  # the sum of the turn before is read
        body.put(room, compute, thread, body.get(total, kind))
        while half:
            body.barrier()
            with body.when(body.let(f"icmp slt i64 {thread}, {half}")):
                other = body.take(room, compute, body.integer("add", thread, half))
                body.set(total, kind, body.let(f"fadd {kind} {body.get(total, kind)}, {other}"))
                body.put(room, compute, thread, body.get(total, kind))
            half //= 2
        with body.when(body.let(f"icmp eq i64 {thread}, 0")):
            own.store(part, group, row, column, body.get(total, kind))


class _ProductsBySquares(Squares):
    def write_all(self, kernel: ProductsKernel) -> None:
        self.stored, self.words_of = kernel.dtype, _Products(self, kernel)
        own = self.words_of
        sizes = [own.parts, own.groups, self.squares(own.rows), self.squares(own.columns())]
        count = functools.reduce(lambda a, b: self.integer("mul", a, b), sizes)
        with self.loop(self.group(), count, self.groups()) as turn:
            part, group, tall, across = self.unravel(turn, sizes, wide=False)
            row, column = (self.integer("mul", each, self.side) for each in (tall, across))
            first, terms = own.terms(part)
            sums = self.new_square()
            with self.loop(0, terms, self.at_once) as start:
                elements = self._elements(group, row, column, first, (start, terms))
                self.add_elements(sums, self.stored, elements)

            def store(
                at: str, place: str, values: Sequence[str], where: tuple[str, str] = (part, group)
            ) -> None:
                own.store(*where, at, place, values[0])

            self.each_of_square(sums, (row, column), (own.rows, own.columns()), store)

    def _elements(
        self, group: str, row: str, column: str, first: str, terms: tuple[str, str]
    ) -> list[Element]:
        """What this thread copies: elements of one term, so that neighbours read neighbouring positions."""
        own, (start, end) = self.words_of, terms
        term, line = (self.integer(how, self.own, self.at_once) for how in ("urem", "udiv"))
        number = self.integer("add", start, term)
        exists = self.let(f"icmp slt i64 {number}, {end}")
        image, at = own.term(first, number)
        found = []
        for k in range(0, self.side, THREADS // self.at_once):
            i = self.integer("add", line, k)
            mine, place = self.integer("add", row, i), self.integer("add", column, i)
            inside = self.let(f"and i1 {exists}, {self.let(f'icmp slt i64 {mine}, {own.rows}')}")
            address = own.of_cotangent(group, mine, image, at)
            found.append(Element(0, i, term, address, inside, own.cotangent))
            address, there = own.of_input(group, image, at, *own.column(place))
            inside = self.let(f"and i1 {exists}, {self.let(f'icmp slt i64 {place}, {own.columns()}')}")
            inside = self.let(f"and i1 {inside}, {there}")
            found.append(Element(1, i, term, address, inside, own.input))
        return found


class _ProductsByTiles(_ProductsBySquares, Tiles):
    """Squares of the sums of which threads compute the elements."""


class _ProductsByWarps(_ProductsBySquares, FragmentSquares):
    """Squares of the sums of narrow numbers, by small products of warps."""


# ---- Launches --------------------------------------------------------------------------------------------------------------


class Convolutions:
    """The convolutions of a device. `how` is the `Geometry` of `ops/nn/conv_products.py`; channels and made count those of all groups."""

    def __init__(self, gpu: Any):
        self._gpu = gpu
        self._sums = functools.lru_cache(maxsize=512)(self._prepare_sums)
        self._products = functools.lru_cache(maxsize=512)(self._prepare_products)

    def takes(self, dtype: DType, how: Any, channels: int, made: int) -> bool:
        """Whether to compute a convolution here.

        With a library of products, copies of patches are multiplied by it, but for few channels and for narrow numbers, which have tensor cores.
        """
        few = max(channels, made) // how.groups < FEWEST
        here = (
            few or self._gpu.runtime.blas is None or (self._small(dtype) is not None and not how.is_pointwise)
        )
        return dtype in DTYPES and here

    def _small(self, dtype: DType) -> Warps | None:
        """The warps that compute small squares; None if there are none for this dtype.

        Where a thread finds a place of the window for each element, large squares take more registers than it has.
        """
        small_products = self._gpu.runtime.small_products
        if dtype not in fragments.DTYPES or small_products is None:
            return None
        return Warps(SMALL, small_products == "tensor cores")

    def sums(
        self,
        result: tuple[int, Sequence[int]],
        source: tuple[int, Sequence[int]],
        weight: int,
        bias: int | None,
        static: tuple,
    ) -> None:
        """Write a convolution, or its adjoint in the input. Tensors are addresses with strides in bytes; weight and bias are contiguous.

        static: dtype, images, channels and made of the convolution, how, and whether it is the adjoint.
        """
        launch: Any = self._sums(tuple(result[1]), tuple(source[1]), bias is not None, *static)
        launch.entry(
            result[0], source[0], weight, weight if bias is None else bias, launch.meta, launch.count
        )

    def _prepare_sums(
        self, result: tuple, source: tuple, has_bias: bool, dtype: DType, images: int, channels: int, made: int, how: Any, adjoint: bool
    ) -> Launch:  # fmt: skip
        gpu, groups, taps = self._gpu, how.groups, math.prod(how.kernel)
        own, outer = channels // groups, made // groups
        sizes, found, rows, terms = (
            (how.sizes, how.positions, own, outer) if adjoint else (how.positions, how.sizes, outer, own)
        )
        of_outer, of_own = (
            own * taps,
            taps,
        )  # how far channels of the result and of the input are apart in the weight
        steps = (outer * of_outer, *((of_own, of_outer) if adjoint else (of_outer, of_own)), 1)
        form = ELEMENTS if rows < FEWEST else CHANNELS if terms < TERMS else PLACES
        phases, folded = 1, sizes
        if adjoint and form != ELEMENTS:
            phases = math.prod(how.stride)
            folded = [-(-size // stride) for size, stride in zip(sizes, how.stride, strict=True)]
        columns = math.prod(folded)
        warps = None if form == ELEMENTS else self._small(dtype)
        if warps is not None and form == PLACES:
            warps = large_or_small(gpu, rows, images * columns, groups * phases)
        wide = is_wide(images * columns * groups * rows)
        kernel = SumsKernel(dtype, len(how.kernel), adjoint, has_bias, form, wide, warps)
        words = [images, groups, rows, terms, taps, columns, *(step * dtype.itemsize for step in steps)]
        words += self._window(sizes, found, how)
        words += [*([phases, *folded] if kernel.has_phases else ()), *result, *source]
        side = TILE if warps is None else warps.side
        squares = squares_of(side, rows, images * columns) * groups * phases
        threads = images * columns * groups * rows if form == ELEMENTS else squares * THREADS
        return gpu.runtime.launch(gpu.runtime.load(sums_ir, kernel), gpu.groups(threads), "pppp", words)

    def _window(self, sizes: Sequence[int], source: Sequence[int], how: Any) -> list[int]:
        before = [first for first, _ in how.border]
        return [*sizes, *source, *how.kernel, *how.stride, *how.dilation, *before]

    def parts(self, images: int, channels: int, made: int, how: Any) -> int:
        """Into how many parts `products` divides the images, so that all multiprocessors have work."""
        work = self._squares(channels, made, how)
        return max(1, min(images, 2 * self._gpu.runtime.multiprocessors // work))

    def _squares(self, channels: int, made: int, how: Any) -> int:
        """How many groups of threads a part occupies."""
        rows, columns = made // how.groups, channels // how.groups * math.prod(how.kernel)
        if min(rows, columns) < FEWEST:
            return how.groups * rows * columns
        return how.groups * squares_of(TILE, rows, columns)

    def products(
        self,
        result: int,
        input: tuple[int, Sequence[int]],
        cotangent: tuple[int, Sequence[int]],
        static: tuple,
    ) -> None:
        """Write the sums of each part of the images, [parts, *shape of the weight]. static: dtype, images, channels, made, how."""
        launch: Any = self._products(tuple(input[1]), tuple(cotangent[1]), *static)
        launch.entry(result, input[0], cotangent[0], launch.meta, launch.count)

    def _prepare_products(
        self, input: tuple, cotangent: tuple, dtype: DType, images: int, channels: int, made: int, how: Any
    ) -> Launch:
        gpu, groups, taps, count = self._gpu, how.groups, math.prod(how.kernel), math.prod(how.positions)
        parts = self.parts(images, channels, made, how)
        together = -(-images // parts)
        rows, own = made // groups, channels // groups
        by_squares = min(rows, own * taps) >= FEWEST
        warps = self._small(dtype) if by_squares else None
        wide = is_wide(max(images * count, made * own * taps * parts))
        kernel = ProductsKernel(dtype, len(how.kernel), by_squares, wide, warps)
        words = [images, together, parts, groups, rows, own, taps, count]
        words += [*self._window(how.positions, how.sizes, how), *input, *cotangent]
        threads = THREADS * parts * self._squares(channels, made, how)
        return gpu.runtime.launch(gpu.runtime.load(products_ir, kernel), gpu.groups(threads), "ppp", words)
