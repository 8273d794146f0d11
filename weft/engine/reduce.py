"""Reductions as LLVM IR. The order in which elements are combined depends on their number only, not on the threads.

A kernel has the interface of `loops.py` over the *kept* dims. Its first parameter is the address of a second meta for the
*reduced* dims, whose operands are the inputs. A run is one pass along the innermost reduced dim; its elements are combined in
vectors. Sums of floats are cascaded: four levels of partial sums make the error grow with the logarithm of the length. The order is
that of PyTorch on one thread, so that the bits agree.

There are three ways through memory:
    inner   the reduced dim has the smallest stride: one output at a time, `lanes` partial results side by side
    short   the same with few elements in a run: neighbouring outputs side by side
    outer   a kept dim has the smallest stride: blocks of columns, one partial result per column, several blocks side by side
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.dtype import DType, bool_, int64
from .expr import Expr, postorder
from .llvm import constant, emit, memory_type, value_type
from .loops import BROADCAST, CONTIGUOUS, STRIDED
from .monoid import CHUNK_ROWS, LEVELS, PANEL, STREAMS, Monoid, chunk_bytes, index, slot_bytes, vector_lanes
from .nests import nest_ir
from .source import Source, source_of
from .structured import Body, function
from .vectors import has_masks, splat, transposed

# A state in memory: the position of its next element, how many chunks are done and where their states are, how many
# blocks of columns there are, and the components (of each block).
HEADER = 32
META_HEADER = (
    2  # words before the meta of the reduced dims: the number of chunks done and the address of their states
)

ABREAST = (
    16  # neighbouring outputs of runs of few elements that are reduced together: a vector register of float32
)

# Operations of the state of an element, above which two rows are computed side by side.
_FEW = 4

# How the elements of a vector are read.
VECTOR, GATHER = "vector", "gather"

# The addresses of the first element of row `i`, one for each input.
Addresses = Callable[[Body, str], Sequence[str]]


class ReduceKernel(NamedTuple):
    """Everything that the machine code of a reduction depends on."""

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]  # of the inputs
    params: tuple[DType, ...]  # of the finish
    classes: str  # the stride class of each input along the vectorised dim
    block: int  # columns that are reduced together; 0 where the reduced dim runs fastest
    short: str = ""  # how runs of few elements are read if neighbouring outputs are reduced side by side: GATHER or VECTOR


def _in_any_order_ir(kernel: ReduceKernel) -> str:
    return _InAnyOrder(kernel).text()


def _baseline(kernel: ReduceKernel) -> Source:
    """One kernel for all ways through memory if the order does not matter, because wide vectors take LLVM long.

    Short runs are reduced one by one, in the same order.
    """
    if not kernel.monoid.has_any_order:
        return Source(_writer_ir, kernel._replace(short=""))
    classes = STRIDED * len(kernel.classes)
    return Source(_in_any_order_ir, kernel._replace(classes=classes, block=0, short=""))


def _writer_ir(kernel: ReduceKernel) -> str:
    return _Writer(kernel).text()


@functools.partial(source_of, baseline=_baseline)
def reduce_ir(kernel: ReduceKernel) -> str:
    """Return the IR of `row` for this reduction: it runs along the innermost kept dim."""
    return _Writer(kernel).text()


@source_of
def chunks_ir(kernel: ReduceKernel) -> str:
    """The IR of `chunks`, which computes the states of chunks of one long run. Only large reductions need this code."""
    return _Writer(kernel).chunks_text()


class _Writer:
    def __init__(self, kernel: ReduceKernel):
        self.kernel = kernel
        self.monoid = kernel.monoid
        self.inputs = range(len(kernel.operand_dtypes))
        self.outputs = range(len(kernel.monoid.finish))
        self.declarations: set[str] = {
            "declare i64 @llvm.ctlz.i64(i64, i1)",
            "declare i64 @llvm.smax.i64(i64, i64)",
            "declare i64 @llvm.smin.i64(i64, i64)",
        }
        self.lanes = vector_lanes(self.monoid)
        self.width = kernel.block or STREAMS * self.lanes  # states side by side
        leaves = [leaf for leaf in postorder(self.monoid.to_state) if leaf.op == "load"]
        self.loads = [leaf for leaf in leaves if leaf is not index()]
        self.uses_index = index() in leaves

    def text(self) -> str:
        parts = [self._one(), self._run("run", self._scalar_run)]
        parts.append(nest_ir("reduced", len(self.inputs), self.declarations, "run", "internal", True))
        if self.kernel.block:
            parts += [self._panel(), self._run("run_panel", self._panel_run)]
            parts.append(
                nest_ir("reduced_panel", len(self.inputs), self.declarations, "run_panel", "internal", True)
            )
        if self.kernel.short == GATHER:
            parts.append(self._abreast(self._in_order))
        if self.kernel.short == VECTOR:
            parts += [self._vectors(), self._abreast(self._from_vectors)]
        parts.append(self._row())
        return self._module(parts)

    def chunks_text(self) -> str:
        return self._module([self._chunks()])

    def _module(self, parts: list[str]) -> str:
        return "\n".join([*sorted(self.declarations), *parts]) + "\n"

    # -- States ----------------------------------------------------------------------------------------------------

    def _kinds(self, lanes: int) -> list[str]:
        return [value_type(each.dtype, lanes) for each in self.monoid.identity]

    def _identity(self, lanes: int) -> list[str]:
        return [constant(each.dtype, each.value, lanes) for each in self.monoid.identity]

    def _combine(self, body: Body, a: list[str], b: list[str], lanes: int) -> list[str]:
        names = dict(zip(self.monoid.left, a, strict=True)) | dict(zip(self.monoid.right, b, strict=True))
        return emit(body, self.monoid.combine, names, lanes)

    def _append(self, body: Body, variables: list[str], element: list[str], lanes: int) -> None:
        """Add an element whose position is behind those of the state."""
        state = self._get(body, variables, lanes)
        names = dict(zip(self.monoid.left, state, strict=True))
        names |= zip(self.monoid.right, element, strict=True)
        self._set(body, variables, emit(body, self.monoid.append, names, lanes), lanes)

    def _variables(self, body: Body, lanes: int) -> list[str]:
        """Variables that hold a state, initialized with the identity."""
        return [body.variable(k, i) for k, i in zip(self._kinds(lanes), self._identity(lanes), strict=True)]

    def _get(self, body: Body, variables: list[str], lanes: int) -> list[str]:
        return [body.get(v, kind) for v, kind in zip(variables, self._kinds(lanes), strict=True)]

    def _set(self, body: Body, variables: list[str], values: list[str], lanes: int) -> None:
        for variable, kind, value in zip(variables, self._kinds(lanes), values, strict=True):
            body.set(variable, kind, value)

    def _add(self, body: Body, variables: list[str], values: list[str], lanes: int) -> None:
        self._set(
            body, variables, self._combine(body, self._get(body, variables, lanes), values, lanes), lanes
        )

    @property
    def _state_bytes(self) -> int:
        return slot_bytes(self.width) * len(self.monoid.identity)

    def _slots(self, body: Body, first: str) -> list[str]:
        """The addresses of the components of a state, whose first component lies at `first`."""
        return [body.at(first, k * slot_bytes(self.width)) for k in range(len(self.monoid.identity))]

    def _chunk_slots(self, body: Body, states: str, number: str) -> list[str]:
        return self._slots(body, body.place(states, (number, chunk_bytes(self.monoid))))

    # -- One output, or a panel of outputs -------------------------------------------------------------------------

    def _one(self) -> str:
        """`one(outputs, inputs, params)`: reduce to a single output."""

        def write(body: Body) -> None:
            state = self._start(body, "reduced", "run", 1, blocks="1")
            self._finish(body, self._load_slots(body, self._slots(body, state), 1), 1, "0")

        return function("one", self._one_parameters(), self.declarations, write, "internal")

    def _panel(self) -> str:
        """`panel(outputs, inputs, params, blocks)`: reduce `blocks` blocks of `width` columns each."""

        def write(body: Body) -> None:
            state = self._start(body, "reduced_panel", "run_panel", PANEL, blocks="%blocks")
            with body.loop(0, "%blocks") as block:
                slots = self._slots(body, body.place(state, (block, self._state_bytes)))
                first = body.integer("mul", block, self.width)
                self._finish(body, self._load_slots(body, slots, self.width), self.width, first)

        return function(
            "panel", self._one_parameters() + ", i64 %blocks", self.declarations, write, "internal"
        )

    def _one_parameters(self) -> str:
        outputs = [f"ptr %o{k}, i64 %so{k}" for k in self.outputs]
        return ", ".join([*outputs, *(f"ptr %p{k}" for k in self.inputs), "ptr %params"])

    def _start(self, body: Body, nest: str, run: str, states: int, blocks: str) -> str:
        """Combine all elements of the reduced dims, starting from the identity; returns the addresses of the final states."""
        # Operands of the nest over the reduced dims: the input addresses; its parameters: the state.
        header = 8 * len(self.inputs)
        room = header + HEADER + 64 + self._state_bytes * states
        operands = body.room(room)
        for k in self.inputs:
            body.do(f"store ptr %p{k}, ptr {body.at(operands, 8 * k)}")
        state = body.at(operands, header)
        body.do(f"store i64 0, ptr {state}")
        meta = body.let("load ptr, ptr %params")
        for word in range(META_HEADER):
            given = body.let(f"load i64, ptr {body.at(meta, 8 * (word - META_HEADER))}")
            body.do(f"store i64 {given}, ptr {body.at(state, 8 * (word + 1))}")
        body.do(f"store i64 {blocks}, ptr {body.at(state, 24)}")
        lanes = 1 if states == 1 else self.width
        with body.loop(0, blocks) as block:
            slots = self._slots(
                body,
                body.at(state, body.integer("add", body.integer("mul", block, self._state_bytes), HEADER)),
            )
            self._store_slots(body, slots, self._identity(lanes), lanes)
        count = body.let(f"load i64, ptr {body.at(meta, 8)}")
        nested = body.let(f"icmp ne i64 {body.let(f'load i64, ptr {meta}')}, 1")
        with body.when(nested):
            body.do(f"call void @{nest}(ptr {operands}, ptr {meta}, i64 0, i64 {count})")
        with body.unless(nested):
            strides = [body.let(f"load i64, ptr {body.at(meta, 16 + 8 * k)}") for k in self.inputs]
            inputs = ", ".join(f"ptr %p{k}, i64 {stride}" for k, stride in zip(self.inputs, strides))
            body.do(f"call void @{run}({inputs}, ptr {state}, i64 {count})")
        return body.at(state, HEADER)

    def _load_slots(self, body: Body, slots: list[str], lanes: int) -> list[str]:
        return [
            body.let(f"load {kind}, ptr {slot}, align 8")
            for slot, kind in zip(slots, self._kinds(lanes), strict=True)
        ]

    def _store_slots(self, body: Body, slots: list[str], values: list[str], lanes: int) -> None:
        for slot, kind, value in zip(slots, self._kinds(lanes), values, strict=True):
            body.do(f"store {kind} {value}, ptr {slot}, align 8")

    def _finish(self, body: Body, state: list[str], lanes: int, first: str) -> None:
        """Compute the results from the final state, and store them in `lanes` neighbours from output `first` on."""
        names = dict(zip(self.monoid.left, state, strict=True))
        roots = [part for result in self.monoid.finish for part in result.parts]
        for leaf in postorder(tuple(roots)):
            if leaf.op == "param":
                value = body.let(
                    f"load {memory_type(leaf.dtype)}, ptr {body.at('%params', 8 * (leaf.value + 1))}"
                )
                names[leaf] = splat(body, value_type(leaf.dtype), lanes, value)
        values = iter(emit(body, roots, names, lanes))
        for k, result in enumerate(self.monoid.finish):
            offset = 0
            for part in result.parts:
                self._store(body, k, part.dtype, next(values), offset, lanes, first)
                offset += part.dtype.itemsize

    def _store(
        self, body: Body, operand, dtype: DType, value: str, offset: int, lanes: int, first: str
    ) -> None:
        base = body.place(f"%o{operand}", (f"%so{operand}", first))
        for lane in range(lanes):
            one = value
            if lanes > 1:
                one = body.let(f"extractelement {value_type(dtype, lanes)} {value}, i32 {lane}")
            if dtype is bool_:
                one = body.let(f"zext i1 {one} to i8")
            place = body.integer("add", body.integer("mul", f"%so{operand}", lane), offset)
            address = body.at(base, place)
            body.do(f"store {memory_type(dtype)} {one}, ptr {address}, align {dtype.itemsize}")

    # -- Short runs side by side -----------------------------------------------------------------------------------

    @property
    def _outputs_abreast(self) -> int:
        return self.lanes if self.kernel.short == VECTOR else ABREAST

    def _abreast(self, combined: Callable[[Body, str, list[str]], list[str]]) -> str:
        """Write `abreast(outputs, inputs with strides, params)`: some neighbouring outputs, each of one short run.

        Lane k of every vector belongs to output k. Each lane combines its elements in the order of `_scalar_run`.
        """
        inputs = [f"ptr %p{k}, i64 %s{k}" for k in self.inputs]
        outputs = [f"ptr %o{k}, i64 %so{k}" for k in self.outputs]

        def write(body: Body) -> None:
            meta = body.let("load ptr, ptr %params")
            count = body.let(f"load i64, ptr {body.at(meta, 8)}")
            steps = [body.let(f"load i64, ptr {body.at(meta, 16 + 8 * k)}") for k in self.inputs]
            self._finish(body, combined(body, count, steps), self._outputs_abreast, "0")

        parameters = ", ".join([*outputs, *inputs, "ptr %params"])
        return function("abreast", parameters, self.declarations, write, "internal")

    def _add_elements(
        self, body: Body, total: list[str], steps: list[str], start: str, stop: str, step: str | int
    ) -> None:
        """Add the elements start, start + step, ... of the runs; `steps` are the strides along the runs."""
        lanes = self._outputs_abreast
        with body.loop(start, stop, step) as i:
            places = [body.place(f"%p{k}", (i, size)) for k, size in enumerate(steps)]
            position = self._positions(body, i, lanes, consecutive=False)
            self._append(body, total, self._element(body, lanes, places, GATHER, position), lanes)

    def _in_order(self, body: Body, count: str, steps: list[str]) -> list[str]:
        """The state of a run of `count` elements, combined as a run of one output combines its lanes and streams."""
        few = body.let(f"icmp slt i64 {count}, {self.lanes}")
        lanes = "1" if self._single else body.let(f"select i1 {few}, i64 1, i64 {self.lanes}")
        width = body.integer("mul", lanes, STREAMS)
        rows = body.integer("mul", body.integer("sdiv", count, width), width)
        whole = body.integer("mul", body.integer("sdiv", count, lanes), lanes)
        total = self._variables(body, ABREAST)
        self._add_elements(body, total, steps, whole, count, 1)
        with body.loop(0, lanes) as lane:
            first = self._variables(body, ABREAST)
            self._add_elements(body, first, steps, lane, rows, width)
            self._add_elements(body, first, steps, body.integer("add", rows, lane), whole, lanes)
            with body.loop(1, STREAMS) as number:
                other = self._variables(body, ABREAST)
                start = body.integer("add", body.integer("mul", number, lanes), lane)
                self._add_elements(body, other, steps, start, rows, width)
                self._add(body, first, self._get(body, other, ABREAST), ABREAST)
            self._add(body, total, self._get(body, first, ABREAST), ABREAST)
        with body.when(body.let(f"icmp ne i64 {lanes}, 1")):
            self._set(body, total, self._onto_identity(body, total, ABREAST), ABREAST)
        return self._get(body, total, ABREAST)

    def _onto_identity(self, body: Body, total: list[str], lanes: int) -> list[str]:
        """The state of a run of one output is the identity and then the run: 1 times a complex number may be another number."""
        return self._combine(body, self._identity(lanes), self._get(body, total, lanes), lanes)

    def _vectors(self) -> str:
        """Write `vectors(inputs, n, out)`: the partial results of the lanes of one short run."""
        inputs = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in self.inputs)

        def write(body: Body) -> None:
            body.do("%base = add i64 0, 0")
            self._store_slots(
                body,
                self._lane_slots(body, "%out"),
                self._streams(body, self.lanes, VECTOR, cascade=False),
                self.lanes,
            )

        return function("vectors", f"{inputs}, i64 %n, ptr %out", self.declarations, write, "internal")

    def _lane_slots(self, body: Body, first: str) -> list[str]:
        return [body.at(first, k * slot_bytes(self.lanes)) for k in range(len(self.monoid.identity))]

    def _from_vectors(self, body: Body, count: str, steps: list[str]) -> list[str]:
        """As many runs as a vector has lanes are combined in vectors. Their partial results are transposed and added up lane by lane."""
        lanes = self.lanes
        size = slot_bytes(lanes) * len(self.monoid.identity)
        room = body.room(lanes * size)
        with body.loop(0, lanes) as run:
            given = [
                f"ptr {body.place(f'%p{k}', (f'%s{k}', run))}, i64 {step}" for k, step in enumerate(steps)
            ]
            out = body.place(room, (run, size))
            body.do(f"call void @vectors({', '.join(given)}, i64 {count}, ptr {out})")
        total = self._variables(body, lanes)
        whole = body.integer("mul", body.integer("sdiv", count, lanes), lanes)
        self._add_elements(body, total, steps, whole, count, 1)
        runs = [
            self._load_slots(body, self._lane_slots(body, body.at(room, run * size)), lanes)
            for run in range(lanes)
        ]
        components = [
            transposed(body, value_type(each.dtype, lanes), component)
            for each, component in zip(self.monoid.identity, zip(*runs, strict=True), strict=True)
        ]
        for state in zip(*components, strict=True):
            self._add(body, total, list(state), lanes)
        return self._onto_identity(body, total, lanes)

    # -- Elements --------------------------------------------------------------------------------------------------

    def _element(
        self, body: Body, lanes: int, addresses: Sequence[str], how: str, position: str
    ) -> list[str]:
        """Return the states of `lanes` elements."""
        names: dict[Expr, str] = {}
        for leaf in self.loads:
            operand, part = leaf.value if isinstance(leaf.value, tuple) else (leaf.value, None)
            names[leaf] = self._load(body, operand, part, leaf.dtype, lanes, addresses[operand], how)
        if self.uses_index:
            names[index()] = position
        return emit(body, self.monoid.to_state, names, lanes)

    def _load(self, body, operand, part, dtype, lanes, address, how) -> str:
        kind, itemsize = memory_type(dtype), dtype.itemsize
        if lanes == 1 or (self.kernel.classes[operand] == BROADCAST and how == VECTOR):
            value = body.let(f"load {kind}, ptr {body.at(address, (part or 0) * itemsize)}, align {itemsize}")
            value = body.let(f"icmp ne i8 {value}, 0") if dtype is bool_ else value
            return splat(body, value_type(dtype), lanes, value)
        if how == GATHER:
            value = self._gather(body, operand, part, dtype, lanes, address)
        elif part is None:
            value = body.let(f"load <{lanes} x {kind}>, ptr {address}, align {itemsize}")
        else:  # complex: real and imaginary parts alternate
            pair = f"<{2 * lanes} x {kind}>"
            both = body.let(f"load {pair}, ptr {address}, align {itemsize}")
            value = self._shuffle(body, pair, both, range(part, 2 * lanes, 2))
        if dtype is bool_:
            return body.let(f"icmp ne <{lanes} x i8> {value}, zeroinitializer")
        return value

    def _gather(self, body, operand, part, dtype, lanes, address) -> str:
        kind, value = memory_type(dtype), "poison"
        for lane in range(lanes):
            place = body.integer("mul", f"%s{operand}", lane)
            at = body.at(body.at(address, place), (part or 0) * dtype.itemsize)
            one = body.let(f"load {kind}, ptr {at}, align {dtype.itemsize}")
            value = body.let(f"insertelement <{lanes} x {kind}> {value}, {kind} {one}, i32 {lane}")
        return value

    @staticmethod
    def _shuffle(body: Body, kind: str, value: str, lanes: range) -> str:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return body.let(f"shufflevector {kind} {value}, {kind} poison, <{len(lanes)} x i32> <{mask}>")

    def _positions(self, body: Body, first: str, lanes: int, consecutive: bool) -> str:
        """Return the positions of `lanes` elements: consecutive from `first`, or all the same."""
        if not self.uses_index:
            return ""
        vector = splat(body, value_type(int64), lanes, first)
        if lanes == 1 or not consecutive:
            return vector
        steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return body.let(f"add <{lanes} x i64> {vector}, <{steps}>")

    def _along(self, step: int) -> Addresses:
        """Row i begins `step * i` elements into the run."""

        def addresses(body: Body, i: str) -> list[str]:
            element = body.integer("mul", i, step)
            return [body.place(f"%p{k}", (self._stride(k), element)) for k in self.inputs]

        return addresses

    def _stride(self, operand: int) -> str:
        """The stride of an input along a run: a constant for contiguous inputs, so that addresses cost no multiplication.

        The classes may be those of the kept dim: for kernels with blocks, and if one of the inputs is strided.
        """
        classes = self.kernel.classes
        if self.kernel.block or STRIDED in classes or classes[operand] != CONTIGUOUS:
            return f"%s{operand}"
        return str(self.kernel.operand_dtypes[operand].itemsize)

    # -- Runs along the innermost reduced dim ----------------------------------------------------------------------

    def _run(self, name: str, write_run: Callable[[Body], None]) -> str:
        """`name(inputs, state, n)`: combine a run of `n` elements into the state."""
        parameters = ", ".join([*(f"ptr %p{k}, i64 %s{k}" for k in self.inputs), "ptr %state", "i64 %n"])

        def write(body: Body) -> None:
            body.do("%base = load i64, ptr %state")
            body.do(f"store i64 {body.integer('add', '%base', '%n')}, ptr %state")
            write_run(body)

        return function(name, parameters, self.declarations, write, "internal")

    def _scalar_run(self, body: Body) -> None:
        """A run for one output. Strided elements, and fewer elements than lanes, are combined one by one."""
        slots = self._slots(body, body.at("%state", HEADER))
        if self._single:
            self._add_slots(body, slots, self._streams(body, 1, GATHER))
            return
        few = body.let(f"icmp slt i64 %n, {self.lanes}")
        with body.when(few):  # fewer than 32 elements, which never fill a level of a cascade
            self._add_slots(body, slots, self._streams(body, 1, GATHER, cascade=False))
        with body.unless(few):
            folded = self._streams(body, self.lanes, VECTOR)
            self._add_slots(body, slots, self._fold_lanes(body, folded))

    @property
    def _single(self) -> bool:
        """Whether runs for one output combine elements one by one."""
        return bool(self.kernel.block) or STRIDED in self.kernel.classes or self.lanes == 1

    def _panel_run(self, body: Body) -> None:
        """A run for blocks of columns: row i is `width` neighbours of each block at step i of the reduced dim.

        The loop reads as many rows of one block as fill a level, then those of the next block, so that it reads a few rows of memory
        at a time.
        """
        blocks = body.let(f"load i64, ptr {body.at('%state', 24)}")
        above = LEVELS - 1 if self.monoid.cascade else 1
        room = body.zeros(above * PANEL * self._state_bytes)

        def levels(block: str) -> list[list[str]]:
            """Level 0 in registers, the others in memory."""
            own = body.place(room, (block, above * self._state_bytes))
            higher = [self._slots(body, body.at(own, k * self._state_bytes)) for k in range(above)]
            return [self._variables(body, self.width), *higher]

        with body.loop(0, blocks) as block:
            for level in levels(block)[1:]:
                self._set(body, level, self._identity(self.width), self.width)
        step, power = self._step(body, "%n") if self.monoid.cascade else ("16", "4")
        after = body.variable("i64", "0")
        with body.loop(0, body.integer("add", body.integer("sub", "%n", step), 1), step) as start:
            stop = body.integer("add", start, step)
            with body.loop(0, blocks) as block:
                held = levels(block)
                self._add_rows(body, held[0], start, stop, self._column(block), VECTOR, self.width, 1)
                self._carry(body, held, 1, stop, power, self.width)
            body.set(after, "i64", stop)
        rest = body.get(after, "i64")
        with body.loop(0, blocks) as block:
            held = levels(block)
            self._add_rows(body, held[0], rest, "%n", self._column(block), VECTOR, self.width, 1)
            for level in held[1:]:
                self._add(body, held[0], self._get(body, level, self.width), self.width)
            first = body.at(
                "%state", body.integer("add", body.integer("mul", block, self._state_bytes), HEADER)
            )
            slots = self._slots(body, first)
            total = self._get(body, held[0], self.width)
            before = self._load_slots(body, slots, self.width)
            self._store_slots(body, slots, self._combine(body, before, total, self.width), self.width)

    def _column(self, block: str) -> Addresses:
        """Compute row i of a block of columns."""

        def addresses(body: Body, i: str) -> list[str]:
            found = []
            for k, dtype in enumerate(self.kernel.operand_dtypes):
                row = body.place(f"%p{k}", (f"%s{k}", i))
                wide = 0 if self.kernel.classes[k] == BROADCAST else self.width * dtype.itemsize
                found.append(body.place(row, (block, wide)))
            return found

        return addresses

    def _add_slots(self, body: Body, slots: list[str], values: list[str]) -> None:
        held = self._load_slots(body, slots, 1)
        self._store_slots(body, slots, self._combine(body, held, values, 1), 1)

    def _streams(self, body: Body, lanes: int, how: str, cascade: bool = True) -> list[str]:
        """Combine rows of STREAMS * lanes elements, add the left-over rows of `lanes` to stream 0, then add up the streams."""
        width = STREAMS * lanes
        rows = body.integer("sdiv", "%n", width)
        along = self._along(width)
        if cascade:
            first = self._chunks_done(body) if how == VECTOR else None
            wide = self._cascade(body, width, "0", rows, along, how, width, first)
        else:
            level = self._variables(body, width)
            self._add_rows(body, level, "0", rows, along, how, width, 1, width)
            wide = self._get(body, level, width)
        total = self._variables(body, lanes)
        self._set(body, total, self._stream(body, wide, 0, lanes), lanes)
        whole = body.integer("mul", body.integer("sdiv", "%n", lanes), lanes)
        self._add_rows(
            body, total, body.integer("mul", rows, width), whole, self._along(1), how, lanes, lanes
        )
        for number in range(1, STREAMS):
            self._add(body, total, self._stream(body, wide, number, lanes), lanes)
        return self._get(body, total, lanes)

    def _stream(self, body: Body, wide: list[str], number: int, lanes: int) -> list[str]:
        if lanes == 1:
            return [
                body.let(f"extractelement {kind} {value}, i32 {number}")
                for value, kind in zip(wide, self._kinds(STREAMS), strict=True)
            ]
        chosen = range(number * lanes, (number + 1) * lanes)
        kinds = self._kinds(STREAMS * lanes)
        return [self._shuffle(body, kind, value, chosen) for value, kind in zip(wide, kinds, strict=True)]

    def _fold_lanes(self, body: Body, folded: list[str]) -> list[str]:
        """Combine the elements after the last whole vector, then the lanes, one after the other."""
        total = self._variables(body, 1)
        behind = body.integer("mul", body.integer("sdiv", "%n", self.lanes), self.lanes)
        self._add_rows(body, total, behind, "%n", self._along(1), GATHER, 1, 1)
        for lane in range(self.lanes):
            one = [
                body.let(f"extractelement {kind} {value}, i32 {lane}")
                for value, kind in zip(folded, self._kinds(self.lanes), strict=True)
            ]
            self._add(body, total, one, 1)
        return self._get(body, total, 1)

    def _add_rows(
        self, body: Body, total, start: str, stop: str, addresses: Addresses, how: str, lanes: int, step: int,
        elements: int = 1,
    ) -> None:  # fmt: skip
        """total += rows start, start + step, ... before stop; row i starts at element `i * elements` of the run."""
        with body.loop(start, stop, step) as i:
            first = body.integer("add", body.integer("mul", i, elements), "%base")
            position = self._positions(body, first, lanes, consecutive=elements > 1 or step > 1)
            self._append(body, total, self._element(body, lanes, addresses(body, i), how, position), lanes)

    def _takes_pairs(self, how: str) -> bool:
        """Whether two neighbouring rows are computed side by side: where registers are many and the state of an element is not just loaded.

        torch.norm(x, 3) of 10^6 float32 takes 0.65 ms of one thread instead of 0.96, logsumexp of 64 x 16384 0.16 instead of 0.18 (AMD Zen 5).
        """
        plain = how == VECTOR and STRIDED not in self.kernel.classes and not self.kernel.block
        return plain and has_masks() and sum(bool(e.args) for e in postorder(self.monoid.to_state)) > _FEW

    def _add_pairs(self, body: Body, total, start: str, stop: str, addresses: Addresses, lanes: int) -> None:
        """As `_add_rows`, of an even number of neighbouring rows."""
        with body.loop(start, stop, 2) as i:
            first = body.integer("add", body.integer("mul", i, lanes), "%base")
            position = self._positions(body, first, 2 * lanes, consecutive=True)
            both = self._element(body, 2 * lanes, addresses(body, i), VECTOR, position)
            for row in (range(lanes), range(lanes, 2 * lanes)):
                kinds = self._kinds(2 * lanes)
                one = [self._shuffle(body, kind, value, row) for value, kind in zip(both, kinds, strict=True)]
                self._append(body, total, one, lanes)

    # -- The cascade -----------------------------------------------------------------------------------------------

    def _cascade(
        self, body: Body, width: int, first: str, rows: str, addresses: Addresses, how: str, elements: int, done=None,
        total_rows: str | None = None,
    ) -> list[str]:  # fmt: skip
        """Combine the rows first..rows of `width` states each; row i starts at element `i * elements` of the run.

        PyTorch's order: rows add up in level 0; after every `step` rows a level is carried into the next one.
        `done` = (rows, state variables): chunks that other threads have done. `total_rows` decides the step.
        """
        total = self._variables(body, width)
        step, power = self._step(body, total_rows or rows)
        many = body.let(f"icmp sge i64 {rows}, {step}")
        after = body.variable("i64", first)
        higher = [self._variables(body, width) for _ in range(1, LEVELS if self.monoid.cascade else 1)]
        with body.when(many):
            levels = [total, *higher]
            start = first if done is None else self._take_chunks(body, levels[-1], done, power)
            last = body.integer("add", body.integer("sub", rows, step), 1)
            body.set(after, "i64", start)
            with body.loop(start, last, step) as begin:
                stop = body.integer("add", begin, step)
                if higher and elements == width and self._takes_pairs(how):
                    self._add_pairs(body, total, begin, stop, addresses, width)
                else:
                    self._add_rows(body, total, begin, stop, addresses, how, width, 1, elements)
                if higher:
                    self._carry(body, levels, 1, stop, power, width)
                body.set(after, "i64", stop)
        self._add_rows(body, total, body.get(after, "i64"), rows, addresses, how, width, 1, elements)
        with body.when(many):  # else level 0 has everything
            for level in higher:
                self._add(body, total, self._get(body, level, width), width)
        return self._get(body, total, width)

    def _step(self, body: Body, rows: str) -> tuple[str, str]:
        """The number of rows that a level takes before it is carried, and the base-2 logarithm of that number."""
        if not self.monoid.cascade:
            return body.let(f"call i64 @llvm.smax.i64(i64 {rows}, i64 1)"), "0"
        zeros = body.let(f"call i64 @llvm.ctlz.i64(i64 {body.integer('sub', rows, 1)}, i1 false)")
        quarter = body.integer("sdiv", body.integer("sub", 64, zeros), LEVELS)
        power = body.let(f"call i64 @llvm.smax.i64(i64 {quarter}, i64 4)")
        return body.integer("shl", 1, power), power

    def _carry(self, body: Body, levels, level: int, stop: str, power: str, width: int) -> None:
        """Add a level to the one above, and carry that one too if `stop` rows fill it."""
        self._add(body, levels[level], self._get(body, levels[level - 1], width), width)
        self._set(body, levels[level - 1], self._identity(width), width)
        if level + 1 < len(levels):
            filled = body.integer("shl", 1, body.integer("mul", power, level + 1))
            rest = body.integer("and", stop, body.integer("sub", filled, 1))
            with body.when(body.let(f"icmp eq i64 {rest}, 0")):
                self._carry(body, levels, level + 1, stop, power, width)

    # -- Chunks of one long contiguous run, which workers share ----------------------------------------------------

    def _chunk_rows(self, body: Body, power: str) -> str:
        if not self.monoid.cascade:
            return str(CHUNK_ROWS)
        return body.integer("shl", 1, body.integer("mul", power, LEVELS - 1))

    def _chunks_done(self, body: Body) -> tuple[str, str]:
        """From the state's header: how many chunks are done, and where their states are."""
        count = body.let(f"load i64, ptr {body.at('%state', 8)}")
        return count, body.let(f"load ptr, ptr {body.at('%state', 16)}")

    def _take_chunks(self, body: Body, level: list[str], done: tuple[str, str], power: str) -> str:
        """Combine finished chunks, in order, into the highest level; returns the first row after them."""
        count, states = done
        with body.loop(0, count) as number:
            given = self._load_slots(body, self._chunk_slots(body, states, number), self.width)
            self._add(body, level, given, self.width)
        return body.integer("mul", count, self._chunk_rows(body, power))

    def _chunks(self) -> str:
        """`chunks(operands, meta, begin, end)`: the states of some chunks of a run.

        Operands are the inputs and the address for the states; meta is that of the reduced dims, which must be a single dim.
        """
        inputs = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in self.inputs)

        def write_one(body: Body) -> None:
            body.do(f"%rows = sdiv i64 %n, {self.width}")
            size = self._chunk_rows(body, self._step(body, "%rows")[1])
            first = body.integer("mul", "%number", size)
            last = body.integer("add", first, size)
            along = self._along(self.width)
            total = self._cascade(
                body, self.width, first, last, along, VECTOR, self.width, total_rows="%rows"
            )
            self._store_slots(body, self._chunk_slots(body, "%states", "%number"), total, self.width)

        def write_all(body: Body) -> None:
            for k in self.inputs:
                body.do(f"%p{k} = load ptr, ptr {body.at('%operands', 8 * k)}")
                body.do(f"%s{k} = load i64, ptr {body.at('%meta', 16 + 8 * k)}")
            states = body.let(f"load ptr, ptr {body.at('%operands', 8 * len(self.inputs))}")
            length = body.let(f"load i64, ptr {body.at('%meta', 8)}")
            with body.loop("%begin", "%end") as number:
                body.do(f"call void @chunk({inputs}, i64 0, i64 {length}, ptr {states}, i64 {number})")

        parameters = f"{inputs}, i64 %base, i64 %n, ptr %states, i64 %number"
        one = function("chunk", parameters, self.declarations, write_one, "internal")
        everything = "ptr %operands, ptr %meta, i64 %begin, i64 %end"
        return one + "\n" + function("chunks", everything, self.declarations, write_all)

    # -- The innermost kept dim ------------------------------------------------------------------------------------

    def _row(self) -> str:
        """Write `row(outputs and inputs with strides, params, n)`: blocks of columns, then one by one."""
        operands = [*self.outputs, *(len(self.outputs) + k for k in self.inputs)]
        parameters = ", ".join([*(f"ptr %b{k}, i64 %t{k}" for k in operands), "ptr %params", "i64 %n"])

        def call(body: Body, name: str, position: str, *others: str) -> None:
            given = []
            for k in operands:
                pointer = body.place(f"%b{k}", (f"%t{k}", position))
                strided = k < len(self.outputs) or name == "abreast"
                given.append(f"ptr {pointer}, i64 %t{k}" if strided else f"ptr {pointer}")
            body.do(f"call void @{name}({', '.join([*given, 'ptr %params', *others])})")

        def write(body: Body) -> None:
            covered = "0"
            if self.kernel.block:
                blocks = body.integer("sdiv", "%n", self.width)
                covered = body.integer("mul", blocks, self.width)
                with body.loop(0, blocks, PANEL) as first:
                    left = body.integer("sub", blocks, first)
                    count = body.let(f"call i64 @llvm.smin.i64(i64 {left}, i64 {PANEL})")
                    call(body, "panel", body.integer("mul", first, self.width), f"i64 {count}")
            if self.kernel.short:
                together = self._outputs_abreast
                covered = body.integer("mul", body.integer("sdiv", "%n", together), together)
                with body.loop(0, covered, together) as position:
                    call(body, "abreast", position)
            with body.loop(covered, "%n") as position:
                call(body, "one", position)

        return function("row", parameters, self.declarations, write)


class _InAnyOrder(_Writer):
    """Combines the elements of each output one by one."""

    def _scalar_run(self, body: Body) -> None:
        slots = self._slots(body, body.at("%state", HEADER))
        first = self._add_chunks(body, slots)
        total = self._variables(body, 1)
        self._add_rows(body, total, first, "%n", self._along(1), GATHER, 1, 1)
        self._add_slots(body, slots, self._get(body, total, 1))

    def _add_chunks(self, body: Body, slots: list[str]) -> str:
        """Add the states of chunks that workers have done; returns the first element after them."""
        count, states = self._chunks_done(body)
        with body.loop(0, count) as number:
            chunk = self._chunk_slots(body, states, number)
            with body.loop(0, self.width) as k:
                places = [
                    body.place(slot, (k, each.dtype.itemsize))
                    for slot, each in zip(chunk, self.monoid.identity, strict=True)
                ]
                self._add_slots(body, slots, self._load_slots(body, places, 1))
        return body.integer("mul", count, CHUNK_ROWS * self.width)
