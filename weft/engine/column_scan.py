"""Scans of neighbouring rows side by side, as LLVM IR: lane k of every vector belongs to row k.

Each row is scanned in order, as if it were alone, so that the bits are the same. A single row waits for each addition before the next one;
several rows do not wait for each other. Where neighbouring rows are neighbours in memory, vectors are also loaded and stored as they are.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ..core.dtype import DType, bool_
from .expr import Expr, postorder
from .llvm import constant, emit, memory_type, value_type
from .loops import CONTIGUOUS, element_size
from .monoid import Monoid, index
from .structured import Body, function
from .vectors import splat

# Rows side by side where they are neighbours in memory, and elsewhere, where each of them is another stream through memory. Measured on AMD
# Zen 4, one thread, cumsum of float32 [1024, 1024]: along dim 0 it takes 0.33 ms, one row after the other 13 ms. Along dim 1 it takes 0.42 ms
# with 4 rows, 0.99 ms with one, and 2.4 ms with 8, whose addresses compete for the same lines of the cache.
NEIGHBOURS, STREAMS = 32, 4


class ColumnScan(NamedTuple):
    """Everything that the machine code depends on; its innermost loop runs along a dim that is not scanned."""

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]
    strides: str  # a class for each output, then each input, along the innermost loop

    @property
    def lanes(self) -> int:
        return NEIGHBOURS if set(self.strides) == {CONTIGUOUS} else STREAMS

    def ir(self) -> str:
        """The IR of `row`. Its parameter is the address of the length of the scan and of each operand's stride along it."""
        return _Writer(self).text()


class _Writer:
    def __init__(self, kernel: ColumnScan):
        self.kernel, self.monoid = kernel, kernel.monoid
        self.operands = range(len(kernel.strides))
        self.declarations: set[str] = set()

    def text(self) -> str:
        widths = [width for width in (NEIGHBOURS, STREAMS, 1) if width <= self.kernel.lanes]
        pointers = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in self.operands)
        parts = [
            function(
                f"scan{width}",
                f"{pointers}, ptr %meta",
                self.declarations,
                functools.partial(self._write, lanes=width),
                "internal",
            )
            for width in widths
        ]

        def write(body: Body) -> None:
            meta = body.let("load ptr, ptr %params")
            done = "0"
            for width in widths:
                last = body.integer("add", body.integer("sub", "%n", width), 1)
                after = body.variable("i64", done)
                with body.loop(done, last, width) as first:
                    given = [
                        f"ptr {body.place(f'%p{k}', (f'%s{k}', first))}, i64 %s{k}" for k in self.operands
                    ]
                    body.do(f"call void @scan{width}({', '.join(given)}, ptr {meta})")
                    body.set(after, "i64", body.integer("add", first, width))
                done = body.get(after, "i64")

        row = function("row", f"{pointers}, ptr %params, i64 %n", self.declarations, write)
        return "\n".join([*sorted(self.declarations), *parts, row])

    def _write(self, body: Body, lanes: int) -> None:
        """Scan `lanes` rows."""
        length = body.let("load i64, ptr %meta")
        steps = [body.let(f"load i64, ptr {body.at('%meta', 8 * (k + 1))}") for k in self.operands]
        kinds = [value_type(each.dtype, lanes) for each in self.monoid.identity]
        states = [
            body.variable(kind, constant(each.dtype, each.value, lanes))
            for kind, each in zip(kinds, self.monoid.identity, strict=True)
        ]
        with body.loop(0, length) as i:
            places = [body.place(f"%p{k}", (i, step)) for k, step in enumerate(steps)]
            element = self._element(body, places, i, lanes)
            before = [body.get(state, kind) for state, kind in zip(states, kinds, strict=True)]
            names = dict(zip(self.monoid.left, before, strict=True))
            names |= zip(self.monoid.right, element, strict=True)
            after = emit(body, self.monoid.append, names, lanes)
            for state, kind, value in zip(states, kinds, after, strict=True):
                body.set(state, kind, value)
            self._store(body, after, places, lanes)

    def _element(self, body: Body, places: list[str], position: str, lanes: int) -> list[str]:
        """Return the state of one element of each row."""
        outputs = len(self.monoid.finish)
        names: dict[Expr, str] = {}
        for leaf in postorder(self.monoid.to_state):
            if leaf is index():
                names[leaf] = splat(body, "i64", lanes, position)
            elif leaf.op == "load":
                operand, part = leaf.value if isinstance(leaf.value, tuple) else (leaf.value, 0)
                k = outputs + operand
                size = self.kernel.operand_dtypes[operand].itemsize
                names[leaf] = self._load(
                    body, k, places[k], part * leaf.dtype.itemsize, leaf.dtype, size, lanes
                )
        return emit(body, self.monoid.to_state, names, lanes)

    def _load(
        self, body: Body, operand: int, place: str, offset: int, dtype: DType, size: int, lanes: int
    ) -> str:
        kind = memory_type(dtype)
        vector = kind if lanes == 1 else f"<{lanes} x {kind}>"
        if lanes == 1 or (self.kernel.strides[operand] == CONTIGUOUS and size == dtype.itemsize):
            value = body.let(f"load {vector}, ptr {body.at(place, offset)}, align {dtype.itemsize}")
        else:
            value = "poison"
            for lane, address in enumerate(self._lanes_of(body, operand, place, offset, lanes)):
                one = body.let(f"load {kind}, ptr {address}, align {dtype.itemsize}")
                value = body.let(f"insertelement {vector} {value}, {kind} {one}, i32 {lane}")
        return body.let(f"icmp ne {vector} {value}, zeroinitializer") if dtype is bool_ else value

    def _store(self, body: Body, state: list[str], places: list[str], lanes: int) -> None:
        parts = [part for result in self.monoid.finish for part in result.parts]
        values = iter(emit(body, parts, dict(zip(self.monoid.left, state, strict=True)), lanes))
        for operand, result in enumerate(self.monoid.finish):
            offset = 0
            for part in result.parts:
                alone = element_size(result) == part.dtype.itemsize
                self._store_part(
                    body, operand, places[operand], offset, part.dtype, next(values), alone, lanes
                )
                offset += part.dtype.itemsize

    def _store_part(
        self,
        body: Body,
        operand: int,
        place: str,
        offset: int,
        dtype: DType,
        value: str,
        alone: bool,
        lanes: int,
    ) -> None:
        kind = memory_type(dtype)
        vector = kind if lanes == 1 else f"<{lanes} x {kind}>"
        if dtype is bool_:
            value = body.let(f"zext {value_type(bool_, lanes)} {value} to {vector}")
        if lanes == 1 or (alone and self.kernel.strides[operand] == CONTIGUOUS):
            body.do(f"store {vector} {value}, ptr {body.at(place, offset)}, align {dtype.itemsize}")
            return
        for lane, address in enumerate(self._lanes_of(body, operand, place, offset, lanes)):
            one = body.let(f"extractelement {vector} {value}, i32 {lane}")
            body.do(f"store {kind} {one}, ptr {address}, align {dtype.itemsize}")

    @staticmethod
    def _lanes_of(body: Body, operand: int, place: str, offset: int, lanes: int) -> list[str]:
        return [body.at(body.place(place, (f"%s{operand}", lane)), offset) for lane in range(lanes)]
