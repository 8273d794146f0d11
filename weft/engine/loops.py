"""The loop of elementwise kernels, as LLVM IR text. Loops of reductions are in `reduce.py`.

A kernel is a function `row(pointer, stride, ... , params, n)` over the innermost dim. The outer dims are walked by a function
`loop(operands, meta, begin, end)`, which is compiled once for each number of operands and shared by all kernels:
    operands   addresses (outputs first, then inputs), then the scalar parameters, eight bytes each
    meta       int64: number of dims D, the D sizes, then for each operand its D strides in bytes; dim 0 is outermost
    begin, end the part of the outermost dim that this call computes, so that several workers can run one kernel
Sizes and strides are arguments, so that a new size needs no new kernel. Only the class of the innermost stride of each operand
(contiguous, broadcast, ...) is part of the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.dtype import DType, bool_
from .expr import Expr, postorder
from .llvm import Block, emit, memory_type, value_type

# Classes of an operand's stride along the innermost dim.
CONTIGUOUS, BROADCAST, BACKWARDS, STRIDED = "c", "b", "r", "s"

# Classes of inputs of which every second, third or fourth element is read, such as the elements of windows, halves of pairs or one
# channel of an image. LLVM loads such elements as vectors if it knows the step. On AMD Zen 3 and one thread, a pooling of 2x2 takes 2.6 ms
# instead of 12.5; the sum of every third byte of two images takes 3.2 us instead of 11.9.
APART = {2: "2", 3: "3", 4: "4"}
_STEPS = {CONTIGUOUS: 1, BACKWARDS: -1, **{kind: step for step, kind in APART.items()}}


class Result(NamedTuple):
    """One output of an elementwise kernel: its element (or real and imaginary part), in the dtype that is stored."""

    parts: tuple[Expr, ...]


class MapKernel(NamedTuple):
    """Everything that the machine code of an elementwise kernel depends on. Equal kernels share their code."""

    results: tuple[Result, ...]
    operand_dtypes: tuple[DType, ...]  # of the inputs
    params: tuple[DType, ...]
    strides: str  # a class for each output, then each input


def element_size(result: Result) -> int:
    return sum(part.dtype.itemsize for part in result.parts)


METADATA = """
!0 = distinct !{}
!1 = distinct !{!1, !2, !3}
!2 = !{!"llvm.loop.parallel_accesses", !0}
!3 = !{!"llvm.loop.interleave.count", i32 1}
"""


class Inner:
    """Describes the innermost loop: `row(pointers..., strides..., params, n)`."""

    def __init__(self, kernel: Any):  # a MapKernel, or one with more to it
        self.kernel = kernel
        self.declarations: set[str] = set()
        self.operands = len(kernel.results) + len(kernel.operand_dtypes)
        self.itemsizes = [element_size(r) for r in kernel.results] + [
            d.itemsize for d in kernel.operand_dtypes
        ]

    def ir(self) -> str:
        text = self.text()
        declarations = "\n".join(sorted(self.declarations))
        return f"{declarations}\n{text}"

    def text(self) -> str:
        before, block = Block(self.declarations, "h"), Block(self.declarations)
        self._elements(before, block)
        return self._row(block.lines, before=before.lines)

    def _row(
        self,
        body: Sequence[str],
        *,
        before: Sequence[str] = (),
        states: Sequence[str] = (),
        finish: Sequence[str] = (),
        in_order: bool = False,
        called: bool = False,
    ) -> str:
        """The function with `body` for each element `%i`.

        `states` are variables that each element passes to the next one, and `finish` runs after the last element. `in_order`: an
        element depends on the elements before it. `called`: a loop in the same module calls the function, which is not inlined.
        """
        arguments = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in range(self.operands))
        linkage, attributes = ("internal ", "noinline #0") if called else ("", "#0")
        leave, together = "finish" if finish else "done", "" if in_order else ", !llvm.loop !1"
        lines = [
            f"define {linkage}void @row({arguments}, ptr %params, i64 %n) {attributes} {{",
            "start:",
            *before,
            "%empty = icmp sle i64 %n, 0",
            "br i1 %empty, label %done, label %step",
            "step:",
            "%i = phi i64 [0, %start], [%next, %step]",
            *states,
            *body,
            "%next = add nuw nsw i64 %i, 1",
            "%more = icmp slt i64 %next, %n",
            f"br i1 %more, label %step, label %{leave}{together}",
            *(["finish:", *finish] if finish else []),
            "done:",
            "ret void",
            "}",
        ]
        return "\n".join(lines)

    def _elements(self, before: Block, block: Block, i: str = "%i") -> None:
        """Load, compute and store element i of each result. Instructions that are the same for all elements go to `before`."""
        roots = [part for result in self.kernel.results for part in result.parts]
        leaves = [e for e in postorder(tuple(roots)) if e.op in ("load", "param")]
        names: dict[Expr, str] = {}
        for leaf in leaves:
            if leaf.op == "param":
                names[leaf] = self._param(before, leaf)
            else:
                operand = len(self.kernel.results) + self._index(leaf)
                hoist = self._hoisted(operand)
                names[leaf] = self._load(before if hoist else block, operand, leaf, "0" if hoist else i)
        self._store_all(block, emit(block, roots, names), i)

    def _hoisted(self, operand: int) -> bool:
        """Whether an operand is the same for all elements of the loop."""
        return self.kernel.strides[operand] == BROADCAST

    @staticmethod
    def _index(leaf: Expr) -> int:
        return leaf.value[0] if isinstance(leaf.value, tuple) else leaf.value

    def _param(self, block: Block, leaf: Expr) -> str:
        address = block.let(f"getelementptr i64, ptr %params, i64 {leaf.value}")
        return block.let(f"load {memory_type(leaf.dtype)}, ptr {address}")

    def _address(self, block: Block, operand: int, position: str, part_offset: int) -> str:
        kind = self.kernel.strides[operand]
        if kind in _STEPS:
            offset = block.let(f"mul nsw i64 {position}, {self.itemsizes[operand] * _STEPS[kind]}")
        else:
            offset = block.let(f"mul nsw i64 {position}, %s{operand}")
        if part_offset:
            offset = block.let(f"add nsw i64 {offset}, {part_offset}")
        return block.let(f"getelementptr i8, ptr %p{operand}, i64 {offset}")

    def _load(self, block: Block, operand: int, leaf: Expr, position: str) -> str:
        part = leaf.value[1] if isinstance(leaf.value, tuple) else 0
        address = self._address(block, operand, position, part * leaf.dtype.itemsize)
        align = leaf.dtype.itemsize
        loaded = block.let(
            f"load {memory_type(leaf.dtype)}, ptr {address}, align {align}, !llvm.access.group !0"
        )
        if leaf.dtype is bool_:  # memory from outside may hold bytes other than 0 and 1, which count as true
            return block.let(f"icmp ne i8 {loaded}, 0")
        return loaded

    def _store_all(self, block: Block, values: list[str], i: str = "%i") -> None:
        position = 0
        for operand, result in enumerate(self.kernel.results):
            offset = 0
            for part in result.parts:
                address = self._address(block, operand, i, offset)
                self._store(block, part.dtype, values[position], address)
                offset += part.dtype.itemsize
                position += 1

    @staticmethod
    def _store(block: Block, dtype: DType, value: str, address: str) -> None:
        if dtype is bool_:
            value = block.let(f"zext {value_type(bool_)} {value} to i8")
        kind = memory_type(dtype)
        block.do(f"store {kind} {value}, ptr {address}, align {dtype.itemsize}, !llvm.access.group !0")


def nest_ir(loop: str, row: str, operands: int, linkage: str = "") -> str:
    """`loop`: walks the outer dims like an odometer and calls `row` for each position of the innermost dim."""
    each = range(operands)
    load_pointers = "\n".join(
        f"%a{k} = getelementptr i64, ptr %operands, i64 {k}\n%base{k} = load ptr, ptr %a{k}" for k in each
    )
    # Strides of operand k start at meta[1 + D + k * D].
    rows = "\n".join(
        f"%t{k} = mul i64 %dims, {k + 1}\n%u{k} = add i64 %t{k}, 1\n%strides{k} = getelementptr i64, ptr %meta, i64 %u{k}"
        for k in each
    )
    inner = "\n".join(
        f"%si{k} = getelementptr i64, ptr %strides{k}, i64 %last\n%s{k} = load i64, ptr %si{k}\n"
        f"%so{k} = load i64, ptr %strides{k}\n%skip{k} = mul i64 %so{k}, %begin\n"
        f"%first{k} = getelementptr i8, ptr %base{k}, i64 %skip{k}"
        for k in each
    )
    flat = ", ".join(f"ptr %first{k}, i64 %s{k}" for k in each)
    call = ", ".join(f"ptr %q{k}, i64 %s{k}" for k in each)
    slots = "\n".join(f"%slot{k} = alloca ptr\nstore ptr %first{k}, ptr %slot{k}" for k in each)
    current = "\n".join(f"%q{k} = load ptr, ptr %slot{k}" for k in each)
    advance = "\n".join(
        f"%ms{k} = getelementptr i64, ptr %strides{k}, i64 %d\n%mv{k} = load i64, ptr %ms{k}\n"
        f"%mq{k} = load ptr, ptr %slot{k}\n%mn{k} = getelementptr i8, ptr %mq{k}, i64 %mv{k}\n"
        f"store ptr %mn{k}, ptr %slot{k}"
        for k in each
    )
    rewind = "\n".join(
        f"%wv{k} = mul i64 %mv{k}, %size\n%wq{k} = load ptr, ptr %slot{k}\n%wz{k} = sub i64 0, %wv{k}\n"
        f"%wn{k} = getelementptr i8, ptr %wq{k}, i64 %wz{k}\nstore ptr %wn{k}, ptr %slot{k}"
        for k in each
    )
    return f"""
define {linkage} void @{loop}(ptr %operands, ptr %meta, i64 %begin, i64 %end) #0 {{
start:
{load_pointers}
%params = getelementptr i64, ptr %operands, i64 {operands}
%dims = load i64, ptr %meta
%sizes = getelementptr i64, ptr %meta, i64 1
%last = sub i64 %dims, 1
{rows}
{inner}
%counters = alloca [64 x i64]
{slots}
%count = sub i64 %end, %begin
%flat = icmp eq i64 %dims, 1
br i1 %flat, label %once, label %outer
once:
call void @{row}({flat}, ptr %params, i64 %count)
ret void
outer:
call void @llvm.memset.p0.i64(ptr %counters, i8 0, i64 512, i1 false)
%pn = getelementptr i64, ptr %sizes, i64 %last
%n = load i64, ptr %pn
%idle = icmp sle i64 %count, 0
br i1 %idle, label %done, label %line
line:
{current}
call void @{row}({call}, ptr %params, i64 %n)
%innermost = sub i64 %last, 1
br label %carry
carry:
%d = phi i64 [%innermost, %line], [%below, %wrap]
{advance}
%pc = getelementptr [64 x i64], ptr %counters, i64 0, i64 %d
%c0 = load i64, ptr %pc
%c1 = add i64 %c0, 1
store i64 %c1, ptr %pc
%top = icmp eq i64 %d, 0
%psize = getelementptr i64, ptr %sizes, i64 %d
%whole = load i64, ptr %psize
%size = select i1 %top, i64 %count, i64 %whole
%full = icmp sge i64 %c1, %size
br i1 %full, label %check, label %line
check:
br i1 %top, label %done, label %wrap
wrap:
store i64 0, ptr %pc
{rewind}
%below = sub i64 %d, 1
br label %carry
done:
ret void
}}
"""


def shared_loop_ir(operands: int) -> str:
    """`loop` for all kernels with this number of operands; the address of the `row` to call stands before the operands."""
    nest = nest_ir("loop", "%row", operands).replace("@%row", "%row")
    return nest.replace(
        "start:\n",
        "start:\n%prow = getelementptr i64, ptr %operands, i64 -1\n%row = load ptr, ptr %prow\n",
        1,
    )


MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def meta_words(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """Return the int64 words of `meta`: the number of dims, the sizes, and the strides of each operand in bytes."""
    return [len(sizes), *sizes, *(stride for operand in strides for stride in operand)]
