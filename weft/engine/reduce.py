"""Reductions as LLVM IR: many elements to one, in an order fixed by their number alone.

A kernel has the interface of `loops.py` over the *kept* dims; its first parameter is the
address of a second meta for the *reduced* dims, whose operands are the inputs. Along one run of the innermost reduced
dim elements are taken in vectors; float sums are cascaded (four levels of partial sums), so that the error grows with
the logarithm of the length, and follow PyTorch's single-thread order, so that the bits agree.

Two ways through memory:
    inner   the reduced dim runs fastest: one output at a time, `lanes` partial results side by side
    outer   a kept dim runs fastest: a block of columns at a time, one partial result per column
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..core.dtype import DType, bool_, int64
from .expr import Expr, node, postorder
from .llvm import Block, constant, emit, memory_type, value_type
from .loops import BROADCAST, MEMSET, STRIDED, Result, nest_ir

LEVELS = 4  # of partial sums in a cascade
STREAMS = 4  # independent rows of a vector register's width
HEADER = 24  # bytes before a state: the position of the next element, the number of chunks done, their address
META_HEADER = 2  # words before the meta of the reduced dims: the number of chunks done and their address
CHUNK_ROWS = 4096  # rows of a chunk where rounding does not depend on the order


class Monoid(NamedTuple):
    """How elements become one value. States are tuples of expressions."""

    lift: tuple[Expr, ...]  # the state of one element: made of loads and `index()`
    left: tuple[Expr, ...]  # the parameters of `combine`: two states
    right: tuple[Expr, ...]
    combine: tuple[Expr, ...]  # of `left` and `right`
    identity: tuple[Expr, ...]  # constants
    cascade: bool  # rounding depends on the order: keep levels of partial results
    finish: tuple[Result, ...]  # of `left` and the params: what is stored


class ReduceKernel(NamedTuple):
    """All that a reduction's machine code depends on."""

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]  # of the inputs
    params: tuple[DType, ...]  # of the finish
    classes: str  # the stride class of each input along the vectorised dim
    block: int  # columns that are reduced together; 0 where the reduced dim runs fastest


def index() -> Expr:
    """The position of the element along the reduced dims, for ops that return one."""
    return node("load", int64, (), "index")


def state_leaf(side: str, position: int, dtype: DType) -> Expr:
    return node("load", dtype, (), f"{side}{position}")


def monoid(
    lift: Callable[..., tuple[Expr, ...]],
    elements: tuple[Expr, ...],
    combine: Callable,
    identity: tuple[Expr, ...],
    finish: Callable,
    cascade: bool = False,
) -> Monoid:
    """A Monoid from Python functions on states."""
    left = tuple(state_leaf("l", k, each.dtype) for k, each in enumerate(identity))
    right = tuple(state_leaf("r", k, each.dtype) for k, each in enumerate(identity))
    return Monoid(lift(*elements), left, right, combine(left, right), identity, cascade, finish(*left))


def vector_lanes(monoid: Monoid) -> int:
    """Elements in 32 bytes of state: the width that PyTorch's order is defined with."""
    return max(1, 32 // max(each.dtype.itemsize for each in monoid.identity))


def chunks(monoid: Monoid, length: int) -> int:
    """How many chunks of a contiguous run of `length` elements may be reduced apart without changing a bit.

    A chunk is what the cascade carries into its highest level at once.
    """
    rows = length // (STREAMS * vector_lanes(monoid))
    if not monoid.cascade:
        return rows // CHUNK_ROWS
    power = max(4, max(rows - 1, 0).bit_length() // LEVELS)
    return rows >> (LEVELS - 1) * power


def chunk_bytes(monoid: Monoid) -> int:
    """The size of a chunk's state."""
    return _slot_bytes(STREAMS * vector_lanes(monoid)) * len(monoid.identity)


def _slot_bytes(width: int) -> int:
    return 64 * ((width * 8 + 63) // 64)


def block_width(monoid: Monoid, columns: int) -> int:
    """How many columns to reduce together: four registers' worth, or four where not even one register fills."""
    lanes = vector_lanes(monoid)
    return STREAMS * lanes if columns >= lanes else STREAMS


def reduce_ir(kernel: ReduceKernel) -> str:
    """The IR of `row` for this reduction: it runs along the innermost kept dim."""
    return _Writer(kernel).text()


class _Writer:
    def __init__(self, kernel: ReduceKernel):
        self.kernel = kernel
        self.monoid = kernel.monoid
        self.inputs = len(kernel.operand_dtypes)
        self.outputs = len(kernel.monoid.finish)
        self.declarations: set[str] = set()
        self.lanes = vector_lanes(kernel.monoid)
        self.width = kernel.block or STREAMS * self.lanes
        self.strided = STRIDED in kernel.classes
        self.loads = [e for e in postorder(self.monoid.lift) if e.op == "load" and e.value != "index"]
        self.uses_index = any(e.value == "index" for e in postorder(self.monoid.lift) if e.op == "load")

    def text(self) -> str:
        parts = [self._reduce_one("one", scalar=True), self._run("run", self._scalar_run())]
        parts.append(nest_ir("reduced", "run", self.inputs, "internal"))
        if self.kernel.block:
            parts += [self._reduce_one("block", scalar=False), self._run("run_block", self._block_run())]
            parts.append(nest_ir("reduced_block", "run_block", self.inputs, "internal"))
        if not self.kernel.block and not self.strided:
            parts.append(self._chunk_loop())
        parts += [self._kept_row(), MEMSET]
        return "\n".join([*sorted(self.declarations), *parts]) + "\n"

    # -- states in memory: one slot of `width` lanes for each component --------------------------------------------

    def _kinds(self, lanes: int) -> list[str]:
        return [value_type(each.dtype, lanes) for each in self.monoid.identity]

    def _identity(self, lanes: int) -> list[str]:
        return [constant(each.dtype, each.value, lanes) for each in self.monoid.identity]

    def _combine(self, block: Block, a: list[str], b: list[str], lanes: int) -> list[str]:
        names = dict(zip(self.monoid.left, a, strict=True)) | dict(zip(self.monoid.right, b, strict=True))
        return emit(block, self.monoid.combine, names, lanes)

    def _slot_bytes(self) -> int:
        return _slot_bytes(self.width)

    def _state_address(self, block: Block, base: str, component: int) -> str:
        return block.let(f"getelementptr i8, ptr {base}, i64 {HEADER + component * self._slot_bytes()}")

    def _load_state(self, block: Block, base: str, lanes: int) -> list[str]:
        found = []
        for component, kind in enumerate(self._kinds(lanes)):
            address = self._state_address(block, base, component)
            found.append(block.let(f"load {kind}, ptr {address}, align 8"))
        return found

    def _store_state(self, block: Block, base: str, values: list[str], lanes: int) -> None:
        for component, (kind, value) in enumerate(zip(self._kinds(lanes), values, strict=True)):
            address = self._state_address(block, base, component)
            block.do(f"store {kind} {value}, ptr {address}, align 8")

    # -- one output (or one block of outputs) ----------------------------------------------------------------------

    def _reduce_one(self, name: str, scalar: bool) -> str:
        """`name(outputs..., inputs..., params)`: start a state, run over the reduced dims, finish and store."""
        lanes = 1 if scalar else self.width
        block = Block(self.declarations)
        pointers = [f"ptr %o{k}, i64 %so{k}" for k in range(self.outputs)] + [
            f"ptr %p{k}" for k in range(self.inputs)
        ]
        # Operands of the reduced nest: input addresses, then the state: position of the next element, components.
        total = 8 * self.inputs + HEADER + self._slot_bytes() * len(self.monoid.identity)
        block.do(f"%ops = alloca [{total} x i8], align 64")
        for k in range(self.inputs):
            slot = block.let(f"getelementptr i64, ptr %ops, i64 {k}")
            block.do(f"store ptr %p{k}, ptr {slot}")
        state = block.let(f"getelementptr i64, ptr %ops, i64 {self.inputs}")
        block.do(f"store i64 0, ptr {state}")
        self._store_state(block, state, self._identity(lanes), lanes)
        meta = block.let("load ptr, ptr %params")
        for word in (1, 2):  # chunks that other threads have done: how many, and where their states are
            source = block.let(f"getelementptr i64, ptr {meta}, i64 {word - 3}")
            given = block.let(f"load i64, ptr {source}")
            target = block.let(f"getelementptr i64, ptr {state}, i64 {word}")
            block.do(f"store i64 {given}, ptr {target}")
        size = block.let(f"getelementptr i64, ptr {meta}, i64 1")
        count = block.let(f"load i64, ptr {size}")
        nest = "reduced" if scalar else "reduced_block"
        block.do(f"call void @{nest}(ptr %ops, ptr {meta}, i64 0, i64 {count})")
        self._finish(block, self._load_state(block, state, lanes), lanes)
        lines = "\n".join(block.lines)
        return f"define internal void @{name}({', '.join(pointers)}, ptr %params) noinline #0 {{\n{lines}\nret void\n}}"

    def _finish(self, block: Block, state: list[str], lanes: int) -> None:
        names = dict(zip(self.monoid.left, state, strict=True))
        roots = [part for result in self.monoid.finish for part in result.parts]
        for leaf in postorder(tuple(roots)):
            if leaf.op == "param":
                address = block.let(f"getelementptr i64, ptr %params, i64 {leaf.value + 1}")
                value = block.let(f"load {memory_type(leaf.dtype)}, ptr {address}")
                names[leaf] = self._splat(block, value, leaf.dtype, lanes)
        values = emit(block, roots, names, lanes)
        position = 0
        for operand, result in enumerate(self.monoid.finish):
            offset = 0
            for part in result.parts:
                self._store_lanes(block, operand, part.dtype, values[position], offset, lanes)
                offset += part.dtype.itemsize
                position += 1

    def _store_lanes(
        self, block: Block, operand: int, dtype: DType, value: str, offset: int, lanes: int
    ) -> None:
        for lane in range(lanes):
            one = value
            if lanes > 1:
                one = block.let(f"extractelement {value_type(dtype, lanes)} {value}, i32 {lane}")
            if dtype is bool_:
                one = block.let(f"zext i1 {one} to i8")
            place = block.let(f"mul i64 %so{operand}, {lane}")
            place = block.let(f"add i64 {place}, {offset}")
            address = block.let(f"getelementptr i8, ptr %o{operand}, i64 {place}")
            block.do(f"store {memory_type(dtype)} {one}, ptr {address}, align {dtype.itemsize}")

    def _splat(self, block: Block, value: str, dtype: DType, lanes: int) -> str:
        if lanes == 1:
            return value
        kind = value_type(dtype, lanes)
        first = block.let(f"insertelement {kind} poison, {value_type(dtype)} {value}, i32 0")
        return block.let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    # -- one run along the innermost reduced dim -------------------------------------------------------------------

    def _run(self, name: str, body: list[str]) -> str:
        arguments = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in range(self.inputs))
        lines = "\n".join(body)
        return f"define internal void @{name}({arguments}, ptr %state, i64 %n) noinline #0 {{\n{lines}\nret void\n}}"

    def _element(
        self, block: Block, lanes: int, address: Callable[[int], str], how: str, position: str
    ) -> list[str]:
        """The states of `lanes` elements. `address(k)` is where input k's first element lies."""
        names: dict[Expr, str] = {}
        for leaf in self.loads:
            operand, part = leaf.value if isinstance(leaf.value, tuple) else (leaf.value, None)
            names[leaf] = self._load(block, operand, part, leaf.dtype, lanes, address(operand), how)
        if self.uses_index:
            names[index()] = position
        return emit(block, self.monoid.lift, names, lanes)

    def _load(self, block, operand, part, dtype, lanes, address, how) -> str:
        kind, itemsize = memory_type(dtype), dtype.itemsize
        if lanes == 1 or self.kernel.classes[operand] == BROADCAST and how != "gather":
            if part:
                address = block.let(f"getelementptr i8, ptr {address}, i64 {itemsize}")
            value = block.let(f"load {kind}, ptr {address}, align {itemsize}")
            value = block.let(f"icmp ne i8 {value}, 0") if dtype is bool_ else value
            return self._splat(block, value, dtype, lanes)
        if how == "gather":
            value = self._gather(block, operand, part, dtype, lanes, address)
        elif part is None:
            value = block.let(f"load <{lanes} x {kind}>, ptr {address}, align {itemsize}")
        else:  # complex: real and imaginary parts alternate
            both = block.let(f"load <{2 * lanes} x {kind}>, ptr {address}, align {itemsize}")
            mask = ", ".join(f"i32 {2 * lane + part}" for lane in range(lanes))
            pair = f"<{2 * lanes} x {kind}>"
            value = block.let(f"shufflevector {pair} {both}, {pair} poison, <{lanes} x i32> <{mask}>")
        if dtype is bool_:
            return block.let(f"icmp ne <{lanes} x i8> {value}, zeroinitializer")
        return value

    def _gather(self, block, operand, part, dtype, lanes, address) -> str:
        kind = memory_type(dtype)
        value = "poison"
        for lane in range(lanes):
            place = block.let(f"mul i64 %s{operand}, {lane}")
            if part:
                place = block.let(f"add i64 {place}, {dtype.itemsize}")
            at = block.let(f"getelementptr i8, ptr {address}, i64 {place}")
            one = block.let(f"load {kind}, ptr {at}, align {dtype.itemsize}")
            value = block.let(f"insertelement <{lanes} x {kind}> {value}, {kind} {one}, i32 {lane}")
        return value

    def _scalar_run(self) -> list[str]:
        """A run for one output: streams of vectors (or of single elements), the rest, then lane by lane."""
        lanes = 1 if self.strided or self.kernel.block else self.lanes
        how = "gather" if self.strided or self.kernel.block else "vector"
        width = STREAMS * lanes
        block = Block(self.declarations, "a")
        block.do("%base = load i64, ptr %state")
        block.do("%end = add i64 %base, %n")
        block.do("store i64 %end, ptr %state")
        if lanes > 1:  # fewer elements than lanes: singly, as a strided run would take them
            block.do(f"%short = icmp slt i64 %n, {lanes}")
            block.do("br i1 %short, label %few, label %many")
            block.do("few:")
            few = self._pass(block, 1, "gather", "f")
            state = self._load_state(block, "%state", 1)
            self._store_state(block, "%state", self._combine(block, state, few, 1), 1)
            block.do("ret void")
            block.do("many:")
        folded = self._pass(block, lanes, how, "m")
        state = self._load_state(block, "%state", 1)
        if lanes > 1:
            folded = self._sum_lanes(block, folded, lanes, width)
        self._store_state(block, "%state", self._combine(block, state, folded, 1), 1)
        return block.lines

    def _pass(self, block: Block, lanes: int, how: str, tag: str) -> list[str]:
        """Cascade over rows of STREAMS * lanes elements, left-over rows to stream 0, streams folded: `lanes` states."""
        width = STREAMS * lanes
        block.do(f"%{tag}rows = sdiv i64 %n, {width}")
        resume = how == "vector"
        wide = self._cascade(block, width, f"%{tag}rows", self._stepper(width, how), tag, lanes_step=width, resume=resume)
        block.do(f"%{tag}done = mul i64 %{tag}rows, {width}")
        first = [
            self._part(block, value, kind.dtype, width, 0, lanes)
            for value, kind in zip(wide, self.monoid.identity)
        ]
        first = self._rest_rows(block, first, lanes, f"%{tag}done", how, tag + "r")
        for stream in range(1, STREAMS):
            part = [
                self._part(block, value, each.dtype, width, stream, lanes)
                for value, each in zip(wide, self.monoid.identity, strict=True)
            ]
            first = self._combine(block, first, part, lanes)
        return first

    def _part(self, block, value, dtype, width, stream, lanes) -> str:
        kind = value_type(dtype, width)
        if lanes == 1:
            return block.let(f"extractelement {kind} {value}, i32 {stream}")
        mask = ", ".join(f"i32 {stream * lanes + lane}" for lane in range(lanes))
        return block.let(f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{mask}>")

    def _stepper(self, width: int, how: str) -> Callable:
        """Addresses of row `i` of `width` consecutive elements of the run."""

        def addresses(block: Block, i: str) -> Callable[[int], str]:
            found = {}
            for k in range(self.inputs):
                step = block.let(f"mul i64 %s{k}, {width}")
                offset = block.let(f"mul i64 {step}, {i}")
                found[k] = block.let(f"getelementptr i8, ptr %p{k}, i64 {offset}")
            return found.__getitem__

        return lambda block, i: (addresses(block, i), how)

    def _positions(self, block: Block, start: str, lanes: int, along: bool) -> str:
        """Indices of `lanes` elements from `start`; `along`: consecutive, else all the same."""
        if not self.uses_index:
            return ""
        vector = self._splat(block, start, int64, lanes)
        if lanes == 1 or not along:
            return vector
        steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return block.let(f"add <{lanes} x i64> {vector}, <{steps}>")

    def _cascade(self, block, width, count, row, tag, lanes_step, resume=False, chunk=None) -> list[str]:
        """Combine `count` rows of `width` states; `row(block, i)` gives addresses and the way to load.

        PyTorch's order: rows add up in level 0; after every `step` rows a level is carried into the next one.
        `resume`: the first chunks may be done already. `chunk`: do this one only.
        """
        t = f"{tag}c"
        kinds, identity = self._kinds(width), self._identity(width)
        levels = LEVELS if self.monoid.cascade else 1
        for level in range(levels):
            for component, kind in enumerate(kinds):
                block.do(f"%{t}l{level}_{component} = alloca {kind}, align 64")
                block.do(f"store {kind} {identity[component]}, ptr %{t}l{level}_{component}, align 64")
        self.declarations.add("declare i64 @llvm.ctlz.i64(i64, i1)")
        self.declarations.add("declare i64 @llvm.smax.i64(i64, i64)")
        if self.monoid.cascade:
            block.do(f"%{t}m1 = sub i64 {count}, 1")
            block.do(f"%{t}z = call i64 @llvm.ctlz.i64(i64 %{t}m1, i1 false)")
            block.do(f"%{t}log = sub i64 64, %{t}z")
            block.do(f"%{t}quarter = sdiv i64 %{t}log, {LEVELS}")
            block.do(f"%{t}power = call i64 @llvm.smax.i64(i64 %{t}quarter, i64 4)")
            block.do(f"%{t}step = shl i64 1, %{t}power")
            block.do(f"%{t}carried = mul i64 %{t}power, {LEVELS - 1}")
            block.do(f"%{t}size = shl i64 1, %{t}carried")
        else:
            block.do(f"%{t}step = call i64 @llvm.smax.i64(i64 {count}, i64 1)")
            block.do(f"%{t}size = add i64 0, {CHUNK_ROWS}")
        first = "0"
        if chunk is not None:
            first = block.let(f"mul i64 {chunk}, %{t}size")
            count = block.let(f"add i64 {first}, %{t}size")
        if resume:
            first = self._chunks_done(block, kinds, width, t, levels - 1)
        block.do(f"%{t}mask = sub i64 %{t}step, 1")
        before = self._fresh_label(block, f"{t}e")
        block.do(f"br label %{t}outer")
        block.do(f"{t}outer:")
        block.do(f"%{t}start = phi i64 [{first}, {before}], [%{t}stop, %{t}next]")
        block.do(f"%{t}stop = add i64 %{t}start, %{t}step")
        block.do(f"%{t}fits = icmp sle i64 %{t}stop, {count}")
        block.do(f"br i1 %{t}fits, label %{t}fill, label %{t}tail")
        self._accumulate(block, width, f"{t}fill", f"%{t}start", f"%{t}stop", row, t, f"{t}carry", lanes_step)
        block.do(f"{t}carry:")
        for level in range(1, levels):
            self._carry(block, kinds, width, identity, t, level)
            if level + 1 < levels:
                block.do(f"%{t}sh{level} = mul i64 %{t}power, {level}")
                block.do(f"%{t}mk{level} = shl i64 %{t}mask, %{t}sh{level}")
                block.do(f"%{t}an{level} = and i64 %{t}stop, %{t}mk{level}")
                block.do(f"%{t}st{level} = icmp ne i64 %{t}an{level}, 0")
                block.do(f"br i1 %{t}st{level}, label %{t}next, label %{t}carry{level + 1}")
                block.do(f"{t}carry{level + 1}:")
        block.do(f"br label %{t}next")
        block.do(f"{t}next:")
        block.do(f"br label %{t}outer")
        self._accumulate(
            block, width, f"{t}tail", f"%{t}start", count, row, t + "t", f"{t}end", lanes_step, into=t
        )
        block.do(f"{t}end:")
        total = self._read_level(block, kinds, t, 0)
        for level in range(1, levels):
            total = self._combine(block, total, self._read_level(block, kinds, t, level), width)
        return total

    def _chunks_done(self, block, kinds, width, t, top) -> str:
        """Put the chunks that are done into the highest level, in order; returns the first row after them."""
        for word, name in ((1, "count"), (2, "states")):
            address = block.let(f"getelementptr i64, ptr %state, i64 {word}")
            block.do(f"%{t}{name} = load {'ptr' if word == 2 else 'i64'}, ptr {address}")
        before = self._fresh_label(block, f"{t}a")
        block.do(f"br label %{t}again")
        block.do(f"{t}again:")
        block.do(f"%{t}k = phi i64 [0, {before}], [%{t}k1, %{t}add]")
        block.do(f"%{t}left = icmp slt i64 %{t}k, %{t}count")
        block.do(f"br i1 %{t}left, label %{t}add, label %{t}added")
        block.do(f"{t}add:")
        held = self._read_level(block, kinds, t, top)
        given = self._load_chunk(block, kinds, f"%{t}states", f"%{t}k")
        for component, value in enumerate(self._combine(block, held, given, width)):
            block.do(f"store {kinds[component]} {value}, ptr %{t}l{top}_{component}, align 64")
        block.do(f"%{t}k1 = add i64 %{t}k, 1")
        block.do(f"br label %{t}again")
        block.do(f"{t}added:")
        return block.let(f"mul i64 %{t}count, %{t}size")

    def _chunk_address(self, block, base, number, component) -> str:
        skip = block.let(f"mul i64 {number}, {chunk_bytes(self.monoid)}")
        skip = block.let(f"add i64 {skip}, {component * self._slot_bytes()}")
        return block.let(f"getelementptr i8, ptr {base}, i64 {skip}")

    def _load_chunk(self, block, kinds, base, number) -> list[str]:
        return [
            block.let(f"load {kind}, ptr {self._chunk_address(block, base, number, c)}, align 64")
            for c, kind in enumerate(kinds)
        ]

    def _chunk_loop(self) -> str:
        """`chunks(operands, meta, begin, end)`: the states of some chunks of one contiguous run.

        Operands are the inputs and where the states go; meta is that of the reduced dims, which must be one.
        """
        block = Block(self.declarations, "c")
        for k in range(self.inputs):
            slot = block.let(f"getelementptr ptr, ptr %operands, i64 {k}")
            block.do(f"%p{k} = load ptr, ptr {slot}")
            word = block.let(f"getelementptr i64, ptr %meta, i64 {2 + k}")
            block.do(f"%s{k} = load i64, ptr {word}")
        slot = block.let(f"getelementptr ptr, ptr %operands, i64 {self.inputs}")
        block.do(f"%states = load ptr, ptr {slot}")
        word = block.let("getelementptr i64, ptr %meta, i64 1")
        block.do(f"%n = load i64, ptr {word}")
        block.do("%base = add i64 0, 0")
        block.do(f"%rows = sdiv i64 %n, {self.width}")
        before = self._fresh_label(block, "go")
        block.do("br label %each")
        block.do("each:")
        block.do(f"%number = phi i64 [%begin, {before}], [%following, %store]")
        block.do("%inside = icmp slt i64 %number, %end")
        block.do("br i1 %inside, label %body, label %finished")
        block.do("body:")
        block.do("call void @one_chunk(" + self._chunk_arguments() + ")")
        block.do("br label %store")
        block.do("store:")
        block.do("%following = add i64 %number, 1")
        block.do("br label %each")
        block.do("finished:")
        loop = "\n".join(block.lines)
        return (
            f"{self._one_chunk()}\n"
            f"define void @chunks(ptr %operands, ptr %meta, i64 %begin, i64 %end) #0 {{\n{loop}\nret void\n}}"
        )

    def _chunk_arguments(self) -> str:
        pointers = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in range(self.inputs))
        return f"{pointers}, i64 %base, i64 %rows, i64 %number, ptr %states"

    def _one_chunk(self) -> str:
        block = Block(self.declarations, "o")
        total = self._cascade(
            block, self.width, "%rows", self._stepper(self.width, "vector"), "q", self.width, chunk="%number"
        )
        for component, (kind, value) in enumerate(zip(self._kinds(self.width), total, strict=True)):
            address = self._chunk_address(block, "%states", "%number", component)
            block.do(f"store {kind} {value}, ptr {address}, align 64")
        body = "\n".join(block.lines)
        return f"define internal void @one_chunk({self._chunk_arguments()}) noinline #0 {{\n{body}\nret void\n}}"

    def _read_level(self, block, kinds, t, level) -> list[str]:
        return [block.let(f"load {kind}, ptr %{t}l{level}_{c}, align 64") for c, kind in enumerate(kinds)]

    def _carry(self, block, kinds, width, identity, t, level) -> None:
        below, own = self._read_level(block, kinds, t, level - 1), self._read_level(block, kinds, t, level)
        for component, value in enumerate(self._combine(block, own, below, width)):
            block.do(f"store {kinds[component]} {value}, ptr %{t}l{level}_{component}, align 64")
            block.do(
                f"store {kinds[component]} {identity[component]}, ptr %{t}l{level - 1}_{component}, align 64"
            )

    def _accumulate(self, block, width, label, start, stop, row, t, after, lanes_step, into=None) -> None:
        """Level 0 += rows start..stop, in registers."""
        into = into or t
        kinds = self._kinds(width)
        block.do(f"{label}:")
        begin = self._read_level(block, kinds, into, 0)
        block.do(f"%{t}none = icmp sge i64 {start}, {stop}")
        block.do(f"br i1 %{t}none, label %{label}x, label %{label}b")
        block.do(f"{label}b:")
        block.do(f"%{t}i = phi i64 [{start}, %{label}], [%{t}i1, %{label}b]")
        held = []
        for component, kind in enumerate(kinds):
            block.do(
                f"%{t}h{component} = phi {kind} [{begin[component]}, %{label}], [%{t}g{component}, %{label}b]"
            )
            held.append(f"%{t}h{component}")
        (address, how) = row(block, f"%{t}i")
        place = block.let(f"mul i64 %{t}i, {lanes_step}")
        place = block.let(f"add i64 {place}, %base")
        position = self._positions(block, place, width, along=lanes_step > 1)
        lifted = self._element(block, width, address, how, position)
        for component, value in enumerate(self._combine(block, held, lifted, width)):
            block.do(f"%{t}g{component} = {_copy(kinds[component], value)}")
        block.do(f"%{t}i1 = add i64 %{t}i, 1")
        block.do(f"%{t}more = icmp slt i64 %{t}i1, {stop}")
        block.do(f"br i1 %{t}more, label %{label}b, label %{label}x")
        block.do(f"{label}x:")
        for component, kind in enumerate(kinds):
            block.do(
                f"%{t}e{component} = phi {kind} [{begin[component]}, %{label}], [%{t}g{component}, %{label}b]"
            )
        for component, kind in enumerate(kinds):
            block.do(f"store {kind} %{t}e{component}, ptr %{into}l0_{component}, align 64")
        block.do(f"br label %{after}")

    def _rest_rows(self, block, state, lanes, done, how, tag) -> list[str]:
        """Add the rows of `lanes` elements after `done` to a state of `lanes`."""
        return self._serial(block, state, lanes, done, f"%{tag}limit", how, tag, lanes)

    def _serial(self, block, state, lanes, done, limit, how, tag, step) -> list[str]:
        kinds = self._kinds(lanes)
        if limit == f"%{tag}limit":
            block.do(f"%{tag}whole = sdiv i64 %n, {step}")
            block.do(f"%{tag}limit = mul i64 %{tag}whole, {step}")
        before = self._fresh_label(block, tag)
        block.do(f"%{tag}no = icmp sge i64 {done}, {limit}")
        block.do(f"br i1 %{tag}no, label %{tag}x, label %{tag}b")
        block.do(f"{tag}b:")
        block.do(f"%{tag}i = phi i64 [{done}, {before}], [%{tag}i1, %{tag}b]")
        held = []
        for component, kind in enumerate(kinds):
            block.do(
                f"%{tag}h{component} = phi {kind} [{state[component]}, {before}], [%{tag}g{component}, %{tag}b]"
            )
            held.append(f"%{tag}h{component}")
        found = {}
        for k in range(self.inputs):
            offset = block.let(f"mul i64 %s{k}, %{tag}i")
            found[k] = block.let(f"getelementptr i8, ptr %p{k}, i64 {offset}")
        place = block.let(f"add i64 %{tag}i, %base")
        lifted = self._element(
            block, lanes, found.__getitem__, how, self._positions(block, place, lanes, along=True)
        )
        for component, value in enumerate(self._combine(block, held, lifted, lanes)):
            kind = kinds[component]
            block.do(f"%{tag}g{component} = {_copy(kind, value)}")
        block.do(f"%{tag}i1 = add i64 %{tag}i, {step}")
        block.do(f"%{tag}more = icmp slt i64 %{tag}i1, {limit}")
        block.do(f"br i1 %{tag}more, label %{tag}b, label %{tag}x")
        block.do(f"{tag}x:")
        result = []
        for component, kind in enumerate(kinds):
            block.do(
                f"%{tag}e{component} = phi {kind} [{state[component]}, {before}], [%{tag}g{component}, %{tag}b]"
            )
            result.append(f"%{tag}e{component}")
        return result

    def _fresh_label(self, block: Block, tag: str) -> str:
        block.do(f"br label %{tag}s")
        block.do(f"{tag}s:")
        return f"%{tag}s"

    def _sum_lanes(self, block, folded, lanes, width) -> list[str]:
        """The elements after the last whole vector, then the lanes, one after the other."""
        block.do(f"%whole = sdiv i64 %n, {lanes}")
        block.do(f"%behind = mul i64 %whole, {lanes}")
        total = self._serial(block, self._identity(1), 1, "%behind", "%n", "gather", "tail", 1)
        for lane in range(lanes):
            one = [
                block.let(f"extractelement {value_type(each.dtype, lanes)} {value}, i32 {lane}")
                for value, each in zip(folded, self.monoid.identity, strict=True)
            ]
            total = self._combine(block, total, one, 1)
        return total

    def _block_run(self) -> list[str]:
        """A run for a block of columns: row i is `width` neighbours at the i-th step of the reduced dim."""
        block = Block(self.declarations, "a")
        block.do("%base = load i64, ptr %state")
        block.do("%end = add i64 %base, %n")
        block.do("store i64 %end, ptr %state")

        def row(block, i):
            found = {}
            for k in range(self.inputs):
                offset = block.let(f"mul i64 %s{k}, {i}")
                found[k] = block.let(f"getelementptr i8, ptr %p{k}, i64 {offset}")
            return found.__getitem__, "vector"

        total = self._cascade(block, self.width, "%n", row, "k", lanes_step=1)
        state = self._load_state(block, "%state", self.width)
        self._store_state(block, "%state", self._combine(block, state, total, self.width), self.width)
        return block.lines

    # -- the innermost kept dim ------------------------------------------------------------------------------------

    def _kept_row(self) -> str:
        """`row(outputs and inputs with strides, params, n)`: blocks of columns where possible, then one by one."""
        operands = self.outputs + self.inputs
        arguments = ", ".join(f"ptr %b{k}, i64 %t{k}" for k in range(operands))
        block = Block(self.declarations, "r")
        block.do("br label %first")
        block.do("first:")
        begin, before = "0", "%first"
        if self.kernel.block:
            block.do(f"%blocks = sdiv i64 %n, {self.width}")
            block.do(f"%covered = mul i64 %blocks, {self.width}")
            block.do("%any = icmp sgt i64 %blocks, 0")
            block.do("br i1 %any, label %wide, label %rest")
            block.do("wide:")
            block.do("%j = phi i64 [0, %first], [%j1, %wide]")
            self._call(block, "block", "%j")
            block.do(f"%j1 = add i64 %j, {self.width}")
            block.do("%jmore = icmp slt i64 %j1, %covered")
            block.do("br i1 %jmore, label %wide, label %rest")
            block.do("rest:")
            begin, before = "%covered", "%rest"
        block.do(f"%enough = icmp sge i64 {begin}, %n")
        block.do("br i1 %enough, label %done, label %single")
        block.do("single:")
        block.do(f"%i = phi i64 [{begin}, {before}], [%i1, %single]")
        self._call(block, "one", "%i")
        block.do("%i1 = add i64 %i, 1")
        block.do("%more = icmp slt i64 %i1, %n")
        block.do("br i1 %more, label %single, label %done")
        block.do("done:")
        lines = "\n".join(block.lines)
        return f"define void @row({arguments}, ptr %params, i64 %n) #0 {{\n{lines}\nret void\n}}"

    def _call(self, block: Block, name: str, position: str) -> None:
        given = []
        for k in range(self.outputs + self.inputs):
            offset = block.let(f"mul i64 %t{k}, {position}")
            pointer = block.let(f"getelementptr i8, ptr %b{k}, i64 {offset}")
            given.append(f"ptr {pointer}, i64 %t{k}" if k < self.outputs else f"ptr {pointer}")
        block.do(f"call void @{name}({', '.join(given)}, ptr %params)")


def _copy(kind: str, value: str) -> str:
    """The value under a new name (LLVM IR has no such instruction): a select, which costs nothing."""
    return f"select i1 true, {kind} {value}, {kind} {value}"
