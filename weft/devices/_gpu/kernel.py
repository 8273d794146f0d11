"""The body of a GPU kernel under construction, and what all kernels do: find positions, load, compute and store elements."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.dtype import DType, bool_, int64
from ...engine.expr import Expr, postorder
from ...engine.llvm import emit, memory_type
from ...engine.loops import Result
from ...engine.structured import Structured
from .rules import GPU
from .target import THREADS, Target

_SHARED = "addrspace(3)"


class Kernel(Structured):
    """A kernel: `parameter` and `let` add to it, `ir` is the module."""

    def __init__(self, target: Target):
        super().__init__(set())
        self.rules = GPU
        self.target = target
        self.space = target.space
        self.parameters: list[str] = []
        self.globals: list[str] = []

    def ir(self) -> str:
        text = self.target.kernel(self.parameters, [*self.variables, *self.lines])
        return "\n".join([*sorted(self.declarations), *self.globals, text])

    # ---- Arguments and positions -----------------------------------------------------------------------------------------

    def parameter(self, name: str) -> str:
        """Return a new argument, an int64 word."""
        name = f"{name}.{len(self.parameters)}"
        self.parameters.append(name)
        return f"%{name}"

    def words(self, name: str, count: int) -> list[str]:
        """Return so many new arguments."""
        return [self.parameter(f"{name}{k}") for k in range(count)]

    def number(self, word: str, dtype: DType) -> str:
        """Return a scalar argument of the caller from its word."""
        if dtype is bool_:
            return self.let(f"trunc i64 {word} to i1")
        bits = word
        if dtype.itemsize < 8:
            bits = self.let(f"trunc i64 {word} to i{8 * dtype.itemsize}")
        kind = memory_type(dtype)
        return bits if kind[0] == "i" else self.let(f"bitcast i{8 * dtype.itemsize} {bits} to {kind}")

    def _position(self, call: str) -> str:
        found = self.let(call)
        return found if self.target.kind == "i64" else self.let(f"zext i32 {found} to i64")

    def thread(self) -> str:
        """Return the position of this thread in its group, an int64 as all positions."""
        return self._position(self.target.thread)

    def group(self) -> str:
        """Return the position of this group in the grid."""
        return self._position(self.target.group)

    def groups(self) -> str:
        """How many groups there are."""
        return self._position(self.target.groups)

    def first_and_step(self) -> tuple[str, str]:
        """The number of this thread among all, and how many there are."""
        start = self.integer("mul", self.group(), THREADS)
        return self.integer("add", start, self.thread()), self.integer("mul", self.groups(), THREADS)

    def unravel(self, i: str, sizes: Sequence[str], wide: bool) -> list[str]:
        """The position of element `i` in each dim of these sizes, outermost first. `wide`: positions need 64 bits."""
        if len(sizes) < 2:
            return [i] * len(sizes)
        found = []
        rest = self._narrow(i, wide)
        for size in reversed(sizes[1:]):
            size = self._narrow(size, wide)
            kind = "i64" if wide else "i32"
            quotient = self.let(f"udiv {kind} {rest}, {size}")
            whole = self.let(f"mul {kind} {quotient}, {size}")
            found.append(self._widen(self.let(f"sub {kind} {rest}, {whole}"), wide))
            rest = quotient
        return [self._widen(rest, wide), *reversed(found)]

    def _narrow(self, value: str, wide: bool) -> str:
        return value if wide else self.let(f"trunc i64 {value} to i32")

    def _widen(self, value: str, wide: bool) -> str:
        return value if wide else self.let(f"zext i32 {value} to i64")

    def place(self, start: str, positions: Sequence[str], strides: Sequence[str | int]) -> str:
        """Return an address, as an int64."""
        for position, stride in zip(positions, strides, strict=True):
            start = self.integer("add", start, self.integer("mul", position, stride))
        return start

    # ---- Memory ----------------------------------------------------------------------------------------------------------

    def pointer(self, address: str, offset: int = 0) -> str:
        """Return a pointer into the memory of the device."""
        moved = self.integer("add", address, offset) if offset else address
        return self.let(f"inttoptr i64 {moved} to ptr addrspace(1)")

    def read(self, address: str, dtype: DType, offset: int = 0) -> str:
        """The element at an address as a value in a register."""
        kind = memory_type(dtype)
        loaded = self.let(
            f"load {kind}, ptr addrspace(1) {self.pointer(address, offset)}, align {dtype.itemsize}"
        )
        return self.let(f"icmp ne i8 {loaded}, 0") if dtype is bool_ else loaded

    def lane_of(self, vector: str, dtype: DType, lane: int, lanes: int) -> str:
        """An element of a vector that was loaded."""
        kind = memory_type(dtype)
        element = self.let(f"extractelement <{lanes} x {kind}> {vector}, i32 {lane}")
        return self.let(f"icmp ne i8 {element}, 0") if dtype is bool_ else element

    def write(self, address: str, dtype: DType, value: str, offset: int = 0) -> None:
        if dtype is bool_:
            value = self.let(f"zext i1 {value} to i8")
        pointer = self.pointer(address, offset)
        self.do(f"store {memory_type(dtype)} {value}, ptr addrspace(1) {pointer}, align {dtype.itemsize}")

    def shared(self, dtype: DType, count: int) -> str:
        """Return memory of the group for so many values of a dtype."""
        name = f"@shared{len(self.globals)}"
        self.globals.append(
            f"{name} = internal addrspace(3) global [{count * dtype.itemsize} x i8] undef, align 16"
        )
        return name

    def slot(self, memory: str, dtype: DType, position: str) -> str:
        """Return the place of a value in memory of the group."""
        offset = self.integer("mul", position, dtype.itemsize)
        return self.let(f"getelementptr i8, ptr {_SHARED} {memory}, i64 {offset}")

    def take(self, memory: str, dtype: DType, position: str) -> str:
        """Return a value from memory of the group."""
        kind = memory_type(dtype)
        slot = self.slot(memory, dtype, position)
        loaded = self.let(f"load {kind}, ptr {_SHARED} {slot}, align {dtype.itemsize}")
        return self.let(f"icmp ne i8 {loaded}, 0") if dtype is bool_ else loaded

    def put(self, memory: str, dtype: DType, position: str, value: str) -> None:
        """Store a value in memory of the group."""
        if dtype is bool_:
            value = self.let(f"zext i1 {value} to i8")
        slot = self.slot(memory, dtype, position)
        self.do(f"store {memory_type(dtype)} {value}, ptr {_SHARED} {slot}, align {dtype.itemsize}")

    def barrier(self) -> None:
        """Wait until all threads of the group are here and see what each has stored in the group's memory."""
        self.do(self.target.barrier)

    def sum_before(self, room: str, thread: str, value: str) -> str:
        """The sum of the int64 values of the threads up to this one, which is also in memory of the group (`room`)."""
        total = self.variable("i64", value)
        self.put(room, int64, thread, value)
        distance = 1
        while distance < THREADS:
            self.barrier()
            behind = self.let(f"icmp sge i64 {thread}, {distance}")
            with self.when(behind):
                left = self.take(room, int64, self.integer("sub", thread, distance))
                self.set(total, "i64", self.integer("add", self.get(total, "i64"), left))
            self.barrier()
            self.put(room, int64, thread, self.get(total, "i64"))
            distance *= 2
        return self.get(total, "i64")

    # ---- Elements --------------------------------------------------------------------------------------------------------

    def elements(self, exprs: Sequence[Expr], inputs: Sequence[str], numbers: Sequence[str]) -> list[str]:
        """Return the values of expressions, of inputs at these addresses and of scalar arguments."""
        names: dict[Expr, str] = {}
        for leaf in postorder(tuple(exprs)):
            if leaf.op == "param":
                names[leaf] = self.number(numbers[leaf.value], leaf.dtype)
            elif leaf.op == "load":
                operand, offset = place_of(leaf)
                names[leaf] = self.read(inputs[operand], leaf.dtype, offset)
        return emit(self, exprs, names)

    def store(self, results: Sequence[Result], addresses: Sequence[str], values: Sequence[str]) -> None:
        """Write the parts of results."""
        given = iter(values)
        for result, address in zip(results, addresses, strict=True):
            offset = 0
            for part in result.parts:
                self.write(address, part.dtype, next(given), offset)
                offset += part.dtype.itemsize


def is_wide(count: int) -> bool:
    """Whether positions among so many elements need 64 bits."""
    return count >= 1 << 31


def place_of(leaf: Expr) -> tuple[int, int]:
    """The number of the input that a load reads, and by how many bytes its part of a complex number lies behind."""
    operand, part = leaf.value if isinstance(leaf.value, tuple) else (leaf.value, 0)
    return operand, part * leaf.dtype.itemsize
