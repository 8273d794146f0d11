"""From a MapKernel to something that can be called with addresses: compiled once, looked up ever after."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.dtype import DType, bool_, float32, float64
from ..core.kernel_names import planned_name
from ..core.symbols import per_plan, trace_of
from ..core.templates import add_atoms
from . import tiers, workers
from .background import at_end_of_warming
from .expr import Expr, postorder
from .host import builtin, compile_ir, entry_ir
from .loops import (
    APART,
    BACKWARDS,
    BROADCAST,
    CONTIGUOUS,
    STRIDED,
    MapKernel,
    Result,
    element_size,
    meta_words,
)
from .map_rows import map_ir
from .memory import FENCE
from .monoid import CARRIED_ROWS, STREAMS, Monoid, block_width, chunk_bytes, chunks, vector_lanes
from .nests import nest_ir
from .reduce import ABREAST, GATHER, META_HEADER, VECTOR, ReduceKernel, chunks_ir, reduce_ir
from .streaming import HAS_STREAMS, STREAMED_BYTES, streaming_loop_ir
from .structured import LOOP, Body, function
from .tiles import SMALLEST, SMALLEST_COPY, regions
from .transposition import transposed_tiles, transposition_ir
from .words import Block, block

# Work for fewer bytes than this (about 100 us) is done before a parked thread has been of use: waking it takes 20 us.
PARALLEL_BYTES = 1 if FENCE else 4 << 20
SHARED_BYTES = 1 if FENCE else 1 << 18  # from here on work is shared with a thread that is awake
# A long run that becomes one number from here on: cutting it takes 3 us in Python. Sums of 0.5 and 1 million float32 take 12 and 25 us
# instead of 18 and 40, with two threads (AMD Zen 5).
CHUNKED_BYTES = 1 if FENCE else 2 << 20
NODES_OF_A_BYTE = 2  # nodes of an expression take about as long as moving a byte


class Launch(NamedTuple):
    """A kernel with its sizes: call `entry(out..., in..., params..., meta, count)`."""

    entry: Callable | None
    meta: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    keepalive: Any  # the memory behind `meta`


@functools.lru_cache(maxsize=1024)
def _flat_block(strides: tuple[int, ...]) -> Block:
    """The meta of loops over one dim. Its size is no part of it: a loop gets where it begins and ends in its outermost dim."""
    return block((1, 0, *strides))


def meta_block(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> Block:
    """Return the meta of a loop."""
    if len(sizes) == 1:
        steps = tuple([row[0] for row in strides])
        if trace_of(steps) is None:
            return _flat_block(steps)
    return block(tuple(meta_words(sizes, strides)))


class Stage(NamedTuple):
    """What a chain of launches needs to know about one of them. A launch keeps it alive, together with the memory of `meta`."""

    loop: int  # the address of the kernel's loop
    row: int  # the address of its row
    letters: str  # the kinds of its arguments before `meta`: "p" for an address, else as in `param_letters`
    outputs: int
    work: int  # bytes
    divisible: bool  # whether the outermost dim may be cut anywhere
    meta: Block
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]  # of each operand, in bytes
    # Of a reduction: sizes and strides of the dims that are reduced, and the Block with them.
    reduced: tuple | None = None

    @property
    def length(self) -> int:
        """Return the size of the outermost dim."""
        return self.sizes[0]

    def reaches(self) -> list[tuple[int, int]]:
        """For each operand its stride along the outermost dim, and how many bytes a step of that dim covers.

        The latter is `sys.maxsize` where a stride is negative, because such a step begins before its first element.
        """
        found = []
        for operand, strides in enumerate(self.strides):
            inner = list(zip(self.sizes[1:], strides[1:]))
            if operand >= self.outputs and self.reduced is not None:
                inner += list(zip(self.reduced[0], self.reduced[1][operand - self.outputs]))
            covered = 1 + sum((size - 1) * stride for size, stride in inner)
            backwards = any(stride < 0 for _, stride in inner)
            found.append((strides[0], sys.maxsize if backwards else covered))
        return found


class Loop(NamedTuple):
    """What a kernel that is no row, and whose work is never shared, keeps alive: its loop, the kinds of its arguments, and its meta."""

    loop: int
    letters: str
    meta: Block
    row: int = 0


class Indexing(NamedTuple):
    """How a kernel follows indices, which are its last inputs.

    Index j of an element adds `index_j * steps[j]` bytes to the addresses of the `displaced` operands.
    """

    sizes: tuple[int, ...]  # of the dimension that each index counts along: an index outside it is a fault
    steps: tuple[int, ...]  # bytes
    displaced: tuple[int, ...]  # operands, outputs counted first
    wrap: bool  # negative indices count from the end
    in_order: bool  # an element may be written twice: the last write in logical order wins
    apart: bool  # different positions in the dims of the output, where its stride is not 0, are different elements


class IndexedLaunch(NamedTuple):
    """A kernel that follows indices: call `entry(out..., in..., index..., table, meta, count)`."""

    entry: Callable
    table: int
    meta: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    keepalive: Any


class Code(NamedTuple):
    call: int  # the machine code of the builtin function that runs all of it
    share: int  # that of one that shares it among the workers
    row: int  # the address of the kernel's row; 0 if its loop is its own
    loop: int  # the address of its loop; all rows with this number of operands share one

    @property
    def entry(self) -> Callable:
        """The builtin function that runs all of it, with the name of the operation that plans."""
        return _entry(self, planned_name())


add_atoms(Code, MapKernel, Monoid, Expr, Result)


@per_plan
@functools.lru_cache(maxsize=4096)
def _entry(code: Code, name: str) -> Callable:
    return builtin(code.call, name, code.row or None)


@functools.lru_cache(maxsize=4096)
def compiled(kernel: MapKernel) -> Code:
    return compile_row(map_ir(kernel), len(kernel.strides), param_letters(kernel.params))


def compile_row(ir: str, operands: int, letters: str, vectorize: bool = True) -> Code:
    """Compile IR that defines `row`; the loop around it and the face for Python are shared."""
    (row,) = tiers.compile_ir(ir, "row", vectorize=vectorize)
    return _in_loop(row, _shared(operands, letters))


def _in_loop(row: int, functions: tuple[int, ...]) -> Code:
    """A row with the loop around it, whose functions are `call`, `share` and `loop`."""
    call, share, loop = functions
    return Code(call, share, row, loop)


@functools.cache
def _shared(operands: int, letters: str) -> tuple[int, ...]:
    declarations: set[str] = set()
    loop = nest_ir("loop", operands, declarations)
    return _compile_shared("\n".join([loop, *sorted(declarations)]), operands, letters)


@functools.cache
def _streaming(operands: int, letters: str) -> tuple[int, ...]:
    return _compile_shared(streaming_loop_ir(operands), operands, letters)


def _compile_shared(loop: str, operands: int, letters: str) -> tuple[int, ...]:
    faces = entry_ir(operands, letters, bound=True)
    return tiers.compile_ir(f"{loop}\n{faces}", "call", "share", "loop", vectorize=False)


def compile_loop(ir: str, operands: int, letters: str, vectorize: bool = True) -> Code:
    """Compile IR that defines `loop`, with functions that Python calls around it. `vectorize`: see `compile_ir`."""
    text = ir + entry_ir(operands, letters)
    call, share, loop = tiers.compile_ir(text, "call", "share", "loop", vectorize=vectorize)
    return Code(call, share, 0, loop)


def loop_code(
    write: Callable[[Body], None],
    operands: int,
    letters: str = "",
    *,
    parts: Sequence[str] = (),
    declarations: set[str] | None = None,
    vectorize: bool = True,
) -> Code:
    """Compile a loop over tasks, whose body `write` fills in. `parts` are other functions of its module, with their declarations."""
    declarations = set() if declarations is None else declarations
    loop = function("loop", LOOP, declarations, write)
    return compile_loop("\n".join([*sorted(declarations), *parts, loop]), operands, letters, vectorize)


def param_letters(params: Sequence[DType]) -> str:
    return "".join({float32: "f", float64: "d"}.get(dtype, "i") for dtype in params)


def stride_class(byte_stride: int, itemsize: int) -> str:
    if abs(byte_stride) == itemsize:
        return CONTIGUOUS if byte_stride > 0 else BACKWARDS
    return BROADCAST if byte_stride == 0 else STRIDED


def stride_classes(size: int, strides: Sequence[Sequence[int]], itemsizes: Sequence[int]) -> str:
    """The class of each operand along the innermost dim, which has this size.

    One element lies anywhere, so the kernel is that of contiguous operands, which longer loops use.
    """
    if size == 1:
        return CONTIGUOUS * len(itemsizes)
    return "".join([stride_class(row[-1], size) for row, size in zip(strides, itemsizes, strict=True)])


def _map_classes(results: int, size: int, strides: Sequence[Sequence[int]], itemsizes: Sequence[int]) -> str:
    """As `stride_classes`, with the classes of inputs whose elements lie apart by a small step."""
    classes = list(stride_classes(size, strides, itemsizes))
    for k in range(results, len(classes)):
        if classes[k] == STRIDED:
            apart = (kind for step, kind in APART.items() if strides[k][-1] == step * itemsizes[k])
            classes[k] = next(apart, STRIDED)
    return "".join(classes)


def prepare_map(
    results, operand_dtypes, params, sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Launch:
    """A launch of the map over `sizes` (outermost first) with `strides` in bytes, one row for each operand."""
    itemsizes = [element_size(result) for result in results] + [dtype.itemsize for dtype in operand_dtypes]
    copy = _is_copy(results, operand_dtypes)
    found = regions(sizes, strides, itemsizes, SMALLEST_COPY if copy else SMALLEST)
    classes = _map_classes(len(results), found[0].sizes[-1], found[0].strides, itemsizes)
    kernel = MapKernel(tuple(results), tuple(operand_dtypes), tuple(params), classes)
    code = compiled(kernel)
    moved = sum(size * _distinct(sizes, row) for row, size in zip(strides, itemsizes, strict=True))
    work = moved + _node_bytes(kernel) * math.prod(sizes)
    entry = sharing(code, work)
    letters = "p" * len(strides) + param_letters(params)
    if HAS_STREAMS and len(results) == len(sizes) == 1 and strides[0][0] == itemsizes[0]:
        if sizes[0] * itemsizes[0] >= STREAMED_BYTES:
            entry = sharing(_in_loop(code.row, _streaming(len(strides), param_letters(params))), work)
    parts = []
    tiled = len(found[0].sizes) == len(sizes) + 2
    if tiled and copy and (tiles := transposed_tiles(found[0], itemsizes[0])):
        meta = meta_block(tiles.sizes, tiles.strides)
        entry_of_tiles = sharing(_transposing(itemsizes[0], tiles.side), work)
        launch = Launch(entry_of_tiles, meta.address, tiles.sizes[0], meta)
        parts.append(_Part(found.pop(0).offsets, launch, tiles.rows))
    for region in found:
        meta = meta_block(region.sizes, region.strides)
        stage = Stage(
            code.loop, code.row, letters, len(results), work, True, meta, region.sizes, region.strides
        )
        parts.append(_Part(region.offsets, Launch(entry, meta.address, region.sizes[0], stage), ()))
    if len(parts) == 1 and not parts[0].numbers:
        return parts[0].launch
    return Launch(_Parts(parts), 0, 0, parts)


@functools.lru_cache(maxsize=4096)
def _node_bytes(kernel: MapKernel) -> int:
    """The work of the expressions for one element, in bytes moved."""
    nodes = len(postorder(tuple([part for result in kernel.results for part in result.parts])))
    return -(-nodes // NODES_OF_A_BYTE)


def _is_copy(results: Sequence[Result], operand_dtypes: Sequence[DType]) -> bool:
    """Whether each element of the result has the bits of its operand."""
    if len(results) != 1 or len(operand_dtypes) != 1 or operand_dtypes[0] is bool_:
        return False
    parts = results[0].parts
    return len(parts) == 1 and parts[0].op == "load" and parts[0].dtype is operand_dtypes[0]


@functools.cache
def _transposing(itemsize: int, side: int) -> Code:
    return compile_row(transposition_ir(itemsize, side), 2, "ii")


class _Part(NamedTuple):
    """A launch in one region."""

    offsets: tuple[int, ...]  # bytes, of each operand
    launch: Launch
    numbers: tuple[int, ...]  # that its kernel gets besides those of the call


class _Parts:
    """The entry of a launch in several regions: the same arguments, the addresses moved for each."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[_Part]):
        self.parts = parts

    def __call__(self, *arguments):
        numbers = arguments[len(self.parts[0].offsets) : -2]
        for offsets, launch, own in self.parts:
            addresses = [address + offset for address, offset in zip(arguments, offsets)]
            launch.entry(*addresses, *numbers, *own, launch.meta, launch.count)
        return arguments[0]


def sharing(code: Code, work: int, grain: int = 1) -> Callable:
    """The entry for so much work (in bytes moved): alone, or shared among the workers.

    It is chosen for each plan. As decisions of the planning code, the limits would need a template for each number of kernels of a
    KernelGraph that are beyond them.
    """
    return _sharing(code, _entry(code, planned_name()), work, grain)


@per_plan
def _sharing(code: Code, alone: Callable, work: int, grain: int) -> Callable:
    return (
        _shared_entry(code, alone.__name__, work >= PARALLEL_BYTES, grain) if work >= SHARED_BYTES else alone
    )


def shared(code: Code, always: bool, grain: int = 1) -> Callable:
    """The entry that shares the loop at multiples of `grain`; unless `always`, only with a worker that is awake."""
    return _shared_entry(code, planned_name(), always, grain)


@per_plan
def _shared_entry(code: Code, name: str, always: bool, grain: int) -> Callable:
    if always:
        optimize(code)
    words = struct.pack("6q", code.row, *workers.share_words(grain, always), code.loop)
    return builtin(code.share, name, words)


def sharing_words(entry: Any) -> tuple[int, ...] | None:
    """The words that an entry made by `shared` has: the address of the row, those of `workers.share_words`, that of the loop."""
    return struct.unpack("6q", entry.__self__) if type(entry.__self__) is bytes else None


def optimize(code: Code) -> None:
    """Let LLVM optimize a kernel before its next call, because there is so much work that waiting for it (10 to 50 ms) pays."""
    tiers.optimize_now(code.row or code.share)


def _distinct(sizes: Sequence[int], strides: Sequence[int]) -> int:
    count = 1
    for size, stride in zip(sizes, strides, strict=True):
        count *= size if stride else 1
    return count


class ReduceLaunch(NamedTuple):
    """A reduction with its sizes: call `entry(out..., in..., reduced, params..., meta, count)`."""

    entry: Callable
    reduced: int
    meta: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    keepalive: Any


# The most elements of a run whose elements are gathered with those of its neighbours. Measured on AMD Zen 4 with 4 million float32: the
# sums of rows of 4 take 1.3 ms of two threads side by side and 2.6 ms one by one, the maxima with indices 3.3 and 80 ms. Longer runs are
# read as vectors: the sums of 65536 rows of 32 take 0.23 ms of one thread instead of 0.84, their maxima 0.32 instead of 1.03.
SHORT_RUN = 31


@functools.lru_cache(maxsize=4096)
def compiled_reduction(kernel: ReduceKernel) -> Code:
    operands = len(kernel.monoid.finish) + len(kernel.operand_dtypes)
    # Reductions are written with vectors. Only the 32 lanes of bytes are folded faster after LLVM has vectorized that, too.
    vectorize = vector_lanes(kernel.monoid) > 16
    return compile_row(reduce_ir(kernel), operands, "i" + param_letters(kernel.params), vectorize)


@functools.lru_cache(maxsize=4096)
def compiled_chunks(kernel: ReduceKernel) -> int:
    """The address of the machine code that reduces chunks of one long run."""
    (address,) = compile_ir(chunks_ir(kernel), "chunks", vectorize=False)
    return address


def prepare_reduction(monoid: Monoid, operand_dtypes, params, kept, reduced, outer: bool) -> ReduceLaunch:
    """A launch of the reduction; see `devices/base.py` for the arguments."""
    outputs = len(monoid.finish)
    sizes, rows = (kept[0], kept[1][outputs:]) if outer else reduced
    classes = stride_classes(sizes[-1], rows, [dtype.itemsize for dtype in operand_dtypes])
    in_columns = outer and STRIDED not in classes
    kernels = _kernels(monoid, tuple(operand_dtypes), tuple(params), classes, in_columns)
    may_be_short = not outer and len(reduced[0]) == 1
    code = _reduction(kernels, kept[0][-1], reduced[0][0] if may_be_short else 0)
    meta = meta_block(*kept)
    words = (*[0] * META_HEADER, *meta_words(*reduced))
    inner = block(words)
    work = operand_dtypes[0].itemsize * math.prod(kept[0]) * math.prod(reduced[0])
    # Blocks of columns must not be cut: which columns share a block is part of the order of the sum.
    divisible = not in_columns or len(kept[0]) > 1
    grain = 1 if divisible else columns_of_block(monoid, kept[0][-1])
    entry = sharing(code, work if kept[0][0] > 1 else 0, grain)
    letters = "p" * (outputs + len(classes)) + "i" + param_letters(params)
    rows = tuple(map(tuple, kept[1]))
    keepalive: Any = Stage(
        code.loop, code.row, letters, outputs, work, divisible, meta, tuple(kept[0]), rows, (*reduced, inner)
    )
    if work >= CHUNKED_BYTES and math.prod(kept[0]) == 1 and len(reduced[0]) == 1 and not in_columns:
        count = chunks(monoid, reduced[0][0])
        if STRIDED not in classes and count > 1:
            share = compiled_chunks(kernels.kernel(1, reduced[0][0]))
            always = work >= PARALLEL_BYTES
            entry = _Chunked(
                _entry(code, planned_name()),
                share,
                outputs,
                len(classes),
                words,
                count,
                chunk_bytes(monoid),
                always,
            )
            keepalive = meta, inner
    return ReduceLaunch(entry, inner.address + 8 * META_HEADER, meta.address, kept[0][0], keepalive)


class _Kernels:
    """The kernels of a reduction of operands with these stride classes. The sizes of a call decide which of them is the fastest."""

    __slots__ = ("parts", "in_columns", "codes")

    def __init__(self, parts: tuple[Monoid, tuple, tuple, str], in_columns: bool):
        self.parts, self.in_columns = (
            parts,
            in_columns,
        )  # monoid, dtypes of operands and params, stride classes
        self.codes: dict[tuple[int, str], Code] = {}

    def compile_all(self) -> None:
        """Compile the kernels for all sizes."""
        lanes = vector_lanes(self.parts[0])
        for results, length in itertools.product((1, max(lanes, ABREAST)), (0, 1, 2 * lanes)):
            self.code(results, length)

    def kernel(self, results: int, length: int) -> ReduceKernel:
        """The kernel for so many neighbouring results; `length`: of a run, 0 for one that is always reduced alone."""
        return self._kernel(*self._form(results, length))

    def code(self, results: int, length: int) -> Code:
        form = self._form(results, length)
        if form not in self.codes:
            self.codes[form] = compiled_reduction(self._kernel(*form))
        return self.codes[form]

    def _kernel(self, columns: int, short: str) -> ReduceKernel:
        return ReduceKernel(*self.parts, columns, short)

    def _form(self, results: int, length: int) -> tuple[int, str]:
        """The columns that are reduced together, and how short runs are read."""
        monoid, *_, classes = self.parts
        if self.in_columns:
            return block_width(monoid, results), ""
        if not length or results < ABREAST:
            return 0, ""
        return 0, _side_by_side(monoid, length, STRIDED in classes)


add_atoms(_Kernels)


@functools.lru_cache(maxsize=4096)
def _kernels(
    monoid: Monoid, operand_dtypes: tuple, params: tuple, classes: str, in_columns: bool
) -> _Kernels:
    kernels = _Kernels((monoid, operand_dtypes, params, classes), in_columns)
    at_end_of_warming(kernels.compile_all)
    return kernels


# Which kernel is the fastest is no decision of the planning code, so that one template serves all sizes.
_reduction = per_plan(_Kernels.code)
columns_of_block = per_plan(block_width)


def _side_by_side(monoid: Monoid, length: int, strided: bool) -> str:
    """How runs of `length` elements are read if neighbouring ones are reduced side by side; empty if each is reduced alone."""
    lanes = vector_lanes(monoid)
    if strided or lanes == 1 or length < 2 * lanes:
        return GATHER if 0 < length <= SHORT_RUN else ""
    return VECTOR if lanes <= ABREAST and length < CARRIED_ROWS * STREAMS * lanes else ""


class _Chunked:
    """The entry of a reduction of one long run: its chunks are shared among the workers, then put together.

    Each call has an array of the words of the reduced dims, of the addresses of the inputs and of the states, and behind them the states.
    """

    __slots__ = ("entry", "chunks", "outputs", "inputs", "words", "array", "always")

    def __init__(
        self,
        entry: Callable,
        chunks: int,
        outputs: int,
        inputs: int,
        words: Sequence[int],
        count: int,
        nbytes: int,
        always: bool,
    ):
        self.entry, self.chunks, self.outputs, self.inputs = entry, chunks, outputs, inputs
        self.words = [count, 0, *words[META_HEADER:]]
        self.always = always
        # An array of ctypes is made in 1 us, one of NumPy in 3 us (AMD Zen 4).
        self.array = ctypes.c_int64 * (len(words) + inputs + 1 + (count * nbytes + 64) // 8)

    def __call__(self, *arguments):
        if workers.get_num_threads() == 1:
            return self.entry(*arguments)
        end, size = self.outputs + self.inputs, len(self.words)
        array = self.array(*self.words, *arguments[self.outputs : end])
        start = ctypes.addressof(array)
        array[1] = array[size + self.inputs] = start + 8 * (size + self.inputs + 1) + 63 & ~63
        meta = start + 8 * META_HEADER
        workers.run(self.chunks, start + 8 * size, meta, self.words[0], self.always)
        return self.entry(*arguments[:end], meta, *arguments[end + 1 :])
