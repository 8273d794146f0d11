"""The `row` of elementwise kernels: how LLVM is to write its loop."""

from __future__ import annotations

import functools

from ..core.dtype import bool_
from .expr import postorder
from .llvm import Block
from .loops import BROADCAST, CONTIGUOUS, METADATA, STRIDED, Inner, MapKernel
from .source import Source, source_of
from .vectors import has_avx2, has_masks


def _plain_ir(kernel: MapKernel) -> str:
    """The IR without what only passes read."""
    return Inner(kernel).ir().replace(", !llvm.access.group !0", "").replace(", !llvm.loop !1", "")


def _baseline(kernel: MapKernel) -> Source:
    """Write one kernel for contiguous and strided operands.

    An output that is broadcast has one element, and then all operands are strided. Otherwise inputs that are broadcast stay so,
    because the output may lie in the memory of an input.
    """
    if kernel.strides[0] == BROADCAST:
        strides = STRIDED * len(kernel.strides)
    else:
        strides = "".join(BROADCAST if each == BROADCAST else STRIDED for each in kernel.strides)
    return Source(_plain_ir, kernel._replace(strides=strides))


@functools.partial(source_of, baseline=_baseline)
def map_ir(kernel: MapKernel) -> str:
    """The IR of the kernel's `row`; `nest_ir` has the loop that calls it."""
    if _in_groups(kernel):
        return f"{_Groups(kernel).ir()}\n{_metadata(_abreast(kernel))}{_MASKED if has_masks() else _SINGLE}"
    return f"{Inner(kernel).ir()}\n{_metadata(2 if _operations(kernel) <= _FEW else 1)}"


# Operations on an element of loops without groups that take two vectors at a time.
_FEW = 4


def _operations(kernel: MapKernel) -> int:
    """How much a loop computes. If it is little, its loads and stores decide its time."""
    return sum(e.op not in ("load", "param", "const") for e in postorder(_roots(kernel)))


def _roots(kernel: MapKernel):
    return tuple(part for result in kernel.results for part in result.parts)


def _metadata(vectors: int) -> str:
    """How LLVM is to write the loop: with so many vectors side by side.

    With one, short rows are fast. LLVM itself would choose two or four, and then compute rows that are shorter element by element: on AMD
    Zen 4 softmax of 65536 rows of 32 takes 3.6 ms with one, and 7.4 ms as LLVM chooses. But with one, the instructions that compute read
    memory themselves. With two, both are loaded first: on AMD Zen 3 max(x, 0) of 10^6 float32 takes 218 us of one thread with one, and 141
    with two.
    """
    return METADATA.replace("i32 1", f"i32 {vectors}")


# ---- Groups of vectors -----------------------------------------------------------------------------------------------

# With four vectors side by side the processor need not look far ahead for an instruction whose operands are there: exp of 10^6 float32
# takes 95 us of one thread instead of 124, sigmoid 178 instead of 239, mish 0.71 ms instead of 1.21 (AMD Zen 5); at
# the level x86-64-v3 251 instead of 286, 344 instead of 440, and 1.50 instead of 2.44.
_ABREAST = 4

# Operations of loops that take two vectors at a time. They gain nothing from four, and a loop of 256 bytes for each turn reads memory beyond
# the caches more slowly: clamp of 10^7 float32 takes 1.9 ms instead of 1.3 (AMD Zen 5, two threads).
_SOME = 16

# Conditions of loops that take one vector at a time, because there are seven registers for masks: with four vectors at a time `pow`, which
# has 23, takes 1.7 ms instead of 1.3, digamma, which has 20, 2.8 instead of 4.1 (AMD Zen 5).
_MANY = 20

# The loop behind the groups takes one vector at a time, with masks the elements behind the last whole vector as well.
_SINGLE = """!4 = distinct !{!4, !2, !5}
!5 = !{!"llvm.loop.interleave.count", i32 1}
"""
_MASKED = """!4 = distinct !{!4, !2, !5, !6}
!5 = !{!"llvm.loop.interleave.count", i32 1}
!6 = !{!"llvm.loop.vectorize.predicate.enable", i1 true}
"""


def _in_groups(kernel: MapKernel) -> bool:
    """Whether the loop takes groups of vectors: with masks, and with AVX2 if it computes much.

    LLVM does not load and store parts of complex numbers under masks.
    """
    if not has_masks() and (_operations(kernel) <= _FEW or not has_avx2()):
        return False
    whole = all(len(result.parts) == 1 for result in kernel.results)
    leaves = [e for e in postorder(_roots(kernel)) if e.op == "load"]
    outputs = kernel.strides[: len(kernel.results)]
    return (
        whole
        and not any(isinstance(leaf.value, tuple) for leaf in leaves)
        and set(outputs) == {CONTIGUOUS}
        and set(kernel.strides) <= {CONTIGUOUS, BROADCAST}
    )


def _abreast(kernel: MapKernel) -> int:
    """How many vectors a group has."""
    if _operations(kernel) <= _SOME:
        return 2
    return 1 if has_masks() and _conditions(kernel) > _MANY else _ABREAST


def _conditions(kernel: MapKernel) -> int:
    return sum(e.dtype is bool_ for e in postorder(_roots(kernel)))


class _Groups(Inner):
    """Writes a loop over whole groups of vectors, and one over the elements behind them, vector by vector.

    The second takes all elements of short rows. Under masks 2000 rows of 15 float32 take 12 us for exp, with a loop that ends element by
    element 23; rows of 64 take 19 instead of 15 (AMD Zen 5, one thread).
    """

    def text(self) -> str:
        before, group, single = (Block(self.declarations, prefix) for prefix in "hvw")
        self._elements(before, group)
        self._elements(before, single, "%j")
        # A group has so many elements.
        size = _abreast(self.kernel) * (64 if has_masks() else 32) // max(self.itemsizes)
        arguments = ", ".join(f"ptr %p{k}, i64 %s{k}" for k in range(self.operands))
        lines = [
            f"define void @row({arguments}, ptr %params, i64 %n) #0 {{",
            "start:",
            *before.lines,
            f"%groups = and i64 %n, {-size}",
            "%any = icmp sgt i64 %groups, 0",
            "br i1 %any, label %step, label %rest",
            "step:",
            "%i = phi i64 [0, %start], [%next, %step]",
            *group.lines,
            "%next = add nuw nsw i64 %i, 1",
            "%more = icmp slt i64 %next, %groups",
            "br i1 %more, label %step, label %rest, !llvm.loop !1",
            "rest:",
            "%first = phi i64 [0, %start], [%groups, %step]",
            "%left = icmp slt i64 %first, %n",
            "br i1 %left, label %one, label %done",
            "one:",
            "%j = phi i64 [%first, %rest], [%after, %one]",
            *single.lines,
            "%after = add nuw nsw i64 %j, 1",
            "%again = icmp slt i64 %after, %n",
            "br i1 %again, label %one, label %done, !llvm.loop !4",
            "done:",
            "ret void",
            "}",
        ]
        return "\n".join(lines)
