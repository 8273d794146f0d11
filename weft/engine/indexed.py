"""Loops whose addresses depend on data, as LLVM IR: gather, scatter, and packing by a mask.

Kernels have the interface of `loops.py`. For an index that is out of range, a kernel uses the element at index 0 and counts a
fault, so that it never touches other memory. The caller compares the count and raises the error.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.dtype import DType
from .llvm import Block, memory_type
from .loops import BROADCAST, METADATA, Inner, Result
from .nests import nest_ir
from .structured import Body, function


class IndexedKernel(NamedTuple):
    """A map, some of whose operands are displaced by indices (its last inputs).

    The only param is the address of a table of int64: the address of the counter of faults, then for each index the
    size of the dim that it counts along and that dim's stride in bytes.
    """

    results: tuple[Result, ...]  # none: the kernel only checks the indices
    operand_dtypes: tuple[DType, ...]  # of the inputs; the indices come last
    strides: str  # a class for each output, then each input
    indices: int
    displaced: tuple[int, ...]  # which operands the indices displace, outputs counted first
    wrap: bool  # negative indices count from the end
    in_order: bool  # an element may be written twice: keep the order of the writes
    in_blocks: bool  # compute the displacements of a block of elements before its elements are moved


def indexed_ir(kernel: IndexedKernel) -> str:
    row = _IndexedRow(kernel)
    text = row.text()
    loop = nest_ir("loop", row.operands, row.declarations, "row")
    return "\n".join([*sorted(row.declarations), text, loop, METADATA, _NO_VECTORS])


_NO_VECTORS = """
!5 = distinct !{!5, !6, !7}
!6 = !{!"llvm.loop.vectorize.enable", i1 false}
!7 = !{!"llvm.loop.unroll.count", i32 4}
"""


_COUNT_FAULTS = (
    "%fine = icmp eq i64 %faults.next, 0",
    "br i1 %fine, label %done, label %fault",
    "fault:",
    "%counter = load ptr, ptr %table",
    "%old = atomicrmw add ptr %counter, i64 1 monotonic",
    "br label %done",
)


# Elements whose displacements are computed together: 2 KiB stay in the first-level cache beside the operands.
_BLOCK = 256


class _IndexedRow(Inner):
    def text(self) -> str:
        before, block = Block(self.declarations, "h"), Block(self.declarations)
        if self.kernel.in_blocks:
            return self._in_blocks(before, block)
        bad = self._displace(before, block, "%i")
        self._elements(before, block)
        return self._row(
            [*block.lines, f"%faults.next = or i64 %faults, {bad}"],
            before=before.lines,
            states=["%faults = phi i64 [0, %start], [%faults.next, %step]"],
            finish=_COUNT_FAULTS,
            in_order=self.kernel.in_order,
            called=True,
        )

    def _in_blocks(self, before: Block, block: Block) -> str:
        """The row in two loops over blocks of elements: vectors compute the displacements, then elements are moved one by one.

        The displacements are kept in private memory, so that another thread that changes an index cannot change a checked one.
        """
        ahead = Block(self.declarations, "d")
        bad = self._displace(before, ahead, "%j")
        self._elements(before, block)
        self.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
        arguments = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in range(self.operands))
        return "\n".join(
            [
                f"define internal void @row({arguments}, ptr %params, i64 %n) noinline #0 {{",
                "start:",
                f"%room = alloca [{_BLOCK} x i64], align 64",
                *before.lines,
                "%empty = icmp sle i64 %n, 0",
                "br i1 %empty, label %done, label %block",
                "block:",
                "%first = phi i64 [0, %start], [%after, %moved]",
                "%known = phi i64 [0, %start], [%faults.next, %moved]",
                "%left = sub i64 %n, %first",
                f"%count = call i64 @llvm.smin.i64(i64 %left, i64 {_BLOCK})",
                "br label %look",
                "look:",
                "%at = phi i64 [0, %block], [%at.next, %look]",
                "%faults = phi i64 [%known, %block], [%faults.next, %look]",
                "%j = add nuw nsw i64 %first, %at",
                *ahead.lines,
                f"%faults.next = or i64 %faults, {bad}",
                "%place = getelementptr i64, ptr %room, i64 %at",
                "store i64 %displacement, ptr %place, align 8, !llvm.access.group !0",
                "%at.next = add nuw nsw i64 %at, 1",
                "%look.more = icmp slt i64 %at.next, %count",
                "br i1 %look.more, label %look, label %moves, !llvm.loop !1",
                "moves:",
                "br label %move",
                "move:",
                "%step = phi i64 [0, %moves], [%step.next, %move]",
                "%i = add nuw nsw i64 %first, %step",
                "%own = getelementptr i64, ptr %room, i64 %step",
                "%displacement.own = load i64, ptr %own, align 8",
                *(line.replace("%displacement", "%displacement.own") for line in block.lines),
                "%step.next = add nuw nsw i64 %step, 1",
                "%move.more = icmp slt i64 %step.next, %count",
                "br i1 %move.more, label %move, label %moved, !llvm.loop !5",
                "moved:",
                f"%after = add i64 %first, {_BLOCK}",
                "%more = icmp slt i64 %after, %n",
                "br i1 %more, label %block, label %finish",
                "finish:",
                *_COUNT_FAULTS,
                "done:",
                "ret void",
                "}",
            ]
        )

    def _displace(self, before: Block, block: Block, position: str) -> str:
        """Compute `%displacement`, in bytes, from the indices of an element; returns whether one is bad."""
        before.do("%table = load ptr, ptr %params")
        first = self.operands - self.kernel.indices
        total = bad = "0"
        for j in range(self.kernel.indices):
            size = self._table(before, 1 + 2 * j)
            stride = self._table(before, 2 + 2 * j)
            index = self._index_value(before, block, first + j, position)
            if self.kernel.wrap:
                negative = block.let(f"icmp slt i64 {index}, 0")
                wrapped = block.let(f"add i64 {index}, {size}")
                index = block.let(f"select i1 {negative}, i64 {wrapped}, i64 {index}")
            outside = block.let(f"icmp uge i64 {index}, {size}")
            index = block.let(f"select i1 {outside}, i64 0, i64 {index}")
            outside = block.let(f"zext i1 {outside} to i64")
            bad = block.let(f"or i64 {bad}, {outside}")
            step = block.let(f"mul i64 {index}, {stride}")
            total = block.let(f"add i64 {total}, {step}")
        block.do(f"%displacement = add i64 {total}, 0")
        return bad

    @staticmethod
    def _table(block: Block, position: int) -> str:
        address = block.let(f"getelementptr i64, ptr %table, i64 {position}")
        return block.let(f"load i64, ptr {address}")

    def _index_value(self, before: Block, block: Block, operand: int, position: str) -> str:
        dtype = self.kernel.operand_dtypes[operand - len(self.kernel.results)]
        if self.kernel.strides[operand] == BROADCAST:
            block, position = before, "0"
        address = self._address(block, operand, position, 0)
        kind = memory_type(dtype)
        value = block.let(f"load {kind}, ptr {address}, align {dtype.itemsize}, !llvm.access.group !0")
        return (
            value
            if kind == "i64"
            else block.let(f"{'sext' if dtype.kind == 'i' else 'zext'} {kind} {value} to i64")
        )

    def _hoisted(self, operand: int) -> bool:
        return super()._hoisted(operand) and operand not in self.kernel.displaced

    def _address(self, block: Block, operand: int, position: str, part_offset: int) -> str:
        address = super()._address(block, operand, position, part_offset)
        if operand not in self.kernel.displaced:
            return address
        return block.let(f"getelementptr i8, ptr {address}, i64 %displacement")


class PackKernel(NamedTuple):
    """Copy between the elements that a mask chooses, in order, and consecutive ones.

    Operands: the target, the source, the mask. Params: the address of the count so far, and the position of the last
    packed element. `spread` False: target[count] = source[i]; True: target[i] = source[count]. A count beyond the last
    position means that position: the mask may have more true elements than when they were counted, because another
    thread writes to it.
    """

    nbytes: int  # of an element, or of a row of elements
    itemsize: int
    spread: bool


def pack_ir(kernel: PackKernel) -> str:
    """No branches: every element is moved, and where the mask is false the next one overwrites it (or it is what was
    there before). So a packed target has one element more, the last, which nobody keeps.
    """
    kind, align = f"i{8 * kernel.nbytes}", min(kernel.itemsize, 8)
    declarations: set[str] = set()

    def write(b: Body) -> None:
        cursor, last = b.load("ptr", "%params"), b.load("i64", b.at("%params", 8))
        count = b.variable("i64", b.load("i64", cursor))
        with b.loop(0, "%n") as i:
            chosen = b.let(f"icmp ne i8 {b.load('i8', b.place('%p2', (i, '%s2')))}, 0")
            before = b.get(count, "i64")
            within = b.let(f"icmp ult i64 {before}, {last}")
            packed = b.let(f"select i1 {within}, i64 {before}, i64 {last}")
            to, where = (i, packed) if kernel.spread else (packed, i)
            target = b.place("%p0", (to, "%s0"))
            value = b.let(f"load {kind}, ptr {b.place('%p1', (where, '%s1'))}, align {align}")
            if kernel.spread:
                old = b.let(f"load {kind}, ptr {target}, align {align}")
                value = b.let(f"select i1 {chosen}, {kind} {value}, {kind} {old}")
            b.do(f"store {kind} {value}, ptr {target}, align {align}")
            b.set(count, "i64", b.integer("add", before, b.let(f"zext i1 {chosen} to i64")))
        b.do(f"store i64 {b.get(count, 'i64')}, ptr {cursor}")

    operands = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in range(3))
    row = function("row", f"{operands}, ptr %params, i64 %n", declarations, write, "internal")
    loop = nest_ir("loop", 3, declarations, "row")
    return "\n".join([*sorted(declarations), row, loop])
