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
        """Write the function with `body` for each element `%i`.

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


def meta_words(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """Return the int64 words of `meta`: the number of dims, the sizes, and the strides of each operand in bytes."""
    return [len(sizes), *sizes, *(stride for operand in strides for stride in operand)]
