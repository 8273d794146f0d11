"""Weighted sums of neighbouring elements along one dim, as LLVM IR, for resizing images.

The operands are seen as [outer, own, inner] and [outer, size, inner], both contiguous. Position i of the result is the sum of
`count[i]` elements from `first[i]` on, times the weights [size, taps]. Sums run from the first element to the last, by fused
multiply-adds, as the compiled loops of PyTorch have them; sums of bytes are exact.
"""

from __future__ import annotations

import functools

from ..core.dtype import DType, float32, float64, uint8
from .kernel import Code, loop_code
from .structured import Body
from .vectors import lanes_below, load_lanes, splat, store_lanes

LANES = 32  # elements of the innermost dim that are summed side by side

# memory type of elements, of weights, type of sums, bytes of an element, bytes of a weight
_TYPES = {
    uint8: ("i8", "i16", "i32", 1, 2),
    float32: ("float", "float", "float", 4, 4),
    float64: ("double", "double", "double", 8, 8),
}


@functools.cache
def resample_code(dtype: DType, colors: bool) -> Code:
    """Call `entry(result, input, weights, table, meta, outer * size)`.

    table: int64 [size, 2], first and count. meta: size, own, inner, taps, the bits behind the point of int16 weights, outer.
    colors: inner is 3, the channels of a pixel, which are loaded as if they were 4.
    """
    return loop_code(lambda body: _Loop(body, dtype, colors).write(), 4)


class Sums:
    """Weighted sums of elements, in vectors of any number of lanes. `bits`: see `resample_code`."""

    def __init__(self, body: Body, dtype: DType):
        self.body, self.dtype = body, dtype
        self.element, self.weight, self.sum, self.nbytes, self.weight_bytes = _TYPES[dtype]
        self.bits = ""

    def many(self, kind: str, lanes: int) -> str:
        """Return the LLVM type of so many elements of a type."""
        return kind if lanes == 1 else f"<{lanes} x {kind}>"

    def add(self, total: str, found: str, weight: str, lanes: int) -> None:
        """Add elements, times the weight at an address, to the variable `total`."""
        b, kind = self.body, self.many(self.sum, lanes)
        share = b.let(f"load {self.weight}, ptr {weight}")
        before = b.get(total, kind)
        if self.dtype is uint8:
            found = b.let(f"zext {self.many('i8', lanes)} {found} to {kind}")
            share = splat(b, self.sum, lanes, b.let(f"sext i16 {share} to i32"))
            b.set(total, kind, b.let(f"add {kind} {before}, {b.let(f'mul {kind} {found}, {share}')}"))
        else:
            b.set(
                total,
                kind,
                b.intrinsic("fma", self.dtype, lanes, found, splat(b, self.sum, lanes, share), before),
            )

    def result(self, total: str, lanes: int) -> str:
        """The elements that the variable `total` stands for."""
        value = self.body.get(total, self.many(self.sum, lanes))
        return self.byte(value, lanes) if self.dtype is uint8 else value

    def start(self, lanes: int) -> str:
        """What sums start with: 0, or for bytes a half, so that the shift at the end rounds."""
        if self.dtype is not uint8:
            return "0.0" if lanes == 1 else "zeroinitializer"
        b = self.body
        half = b.integer("shl", 1, b.integer("sub", self.bits, 1))
        return splat(b, self.sum, lanes, b.let(f"trunc i64 {half} to i32"))

    def byte(self, value: str, lanes: int) -> str:
        """Return a sum with `bits` behind the point as a byte."""
        b = self.body
        kind = "i32" if lanes == 1 else f"<{lanes} x i32>"
        suffix = "i32" if lanes == 1 else f"v{lanes}i32"
        bits = splat(b, self.sum, lanes, b.let(f"trunc i64 {self.bits} to i32"))
        value = b.let(f"ashr {kind} {value}, {bits}")
        for name, limit in (("smax", "0"), ("smin", "255")):
            b.declarations.add(f"declare {kind} @llvm.{name}.{suffix}({kind}, {kind})")
            bound = limit if lanes == 1 else f"splat (i32 {limit})"
            value = b.let(f"call {kind} @llvm.{name}.{suffix}({kind} {value}, {kind} {bound})")
        return b.let(f"trunc {kind} {value} to {'i8' if lanes == 1 else f'<{lanes} x i8>'}")


class _Loop(Sums):
    def __init__(self, body: Body, dtype: DType, colors: bool):
        super().__init__(body, dtype)
        self.colors = colors
        # Bytes under a mask need AVX512-BW: other processors would load them one by one, with a branch for each.
        self.masked = dtype is not uint8 and not colors

    def write(self) -> None:
        b = self.body
        result, input, weights, table = b.operands(4)
        size, own, inner, taps, self.bits, all_outer = b.meta(6)
        self.pitch = b.integer("mul", inner, self.nbytes)  # bytes from one position of the dim to the next
        whole = b.integer("sub", inner, b.integer("urem", inner, LANES))
        o = b.variable("i64", b.integer("sdiv", "%begin", size))
        i = b.variable("i64", b.integer("srem", "%begin", size))
        with b.loop("%begin", "%end") as row:
            outer, place = b.get(o, "i64"), b.get(i, "i64")
            entry = b.place(table, (place, 16))
            first, count = b.words(entry, 2)
            start = b.integer("add", b.integer("mul", outer, own), first)
            source = b.place(input, (start, self.pitch))
            weight = b.place(weights, (b.integer("mul", place, taps), self.weight_bytes))
            target = b.place(result, (row, self.pitch))
            begin = whole
            if self.colors:
                # The last row of pixels has no fourth element to load behind its end.
                inside = b.let(f"icmp slt i64 {b.integer('add', outer, 1)}, {all_outer}")
                with b.when(inside):
                    self.sums(source, weight, target, "0", count, 4)
                begin = b.let(f"select i1 {inside}, i64 {inner}, i64 0")
            else:
                with b.loop(0, whole, LANES) as k:
                    self.sums(source, weight, target, k, count, LANES)
            if self.masked:
                rest = b.integer("sub", inner, whole)
                with b.when(b.let(f"icmp sgt i64 {rest}, 0")):
                    self.sums(source, weight, target, whole, count, LANES, lanes_below(b, LANES, rest))
            else:
                with b.loop(begin, inner) as k:
                    self.sums(source, weight, target, k, count, 1)
            following = b.integer("add", place, 1)
            last = b.let(f"icmp eq i64 {following}, {size}")
            b.set(i, "i64", b.let(f"select i1 {last}, i64 0, i64 {following}"))
            b.set(o, "i64", b.integer("add", outer, b.let(f"zext i1 {last} to i64")))

    def sums(
        self, source: str, weight: str, target: str, k: str, count: str, lanes: int, mask: str = ""
    ) -> None:
        """Sum elements k to k + lanes of one position, or those of the mask."""
        b, kind = self.body, self.many(self.element, lanes)
        offset = b.integer("mul", k, self.nbytes)
        here = b.at(source, offset)
        total = b.variable(self.many(self.sum, lanes), self.start(lanes))
        with b.loop(0, count) as j:
            place = b.place(here, (j, self.pitch))
            found = load_lanes(b, self.dtype, lanes, place, mask)
            self.add(total, found, b.place(weight, (j, self.weight_bytes)), lanes)
        value = self.result(total, lanes)
        if self.colors and lanes == 4:
            for lane in range(3):  # the fourth element belongs to the next pixel
                one = b.let(f"extractelement {kind} {value}, i64 {lane}")
                b.do(
                    f"store {self.element} {one}, ptr {b.at(target, lane * self.nbytes)}, align {self.nbytes}"
                )
        else:
            store_lanes(b, self.dtype, lanes, value, b.at(target, offset), mask)
